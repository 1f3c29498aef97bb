/*
 * One resolution fills everything. There is no lock around it on purpose: opening the driver takes
 * the loader's lock and runs constructors, and a program may call us while it holds that lock, or
 * the driver's constructor may call an export of ours on this very thread. Resolution gives the same
 * answers every time, so whoever comes while it goes on does it again and stores the same words.
 */
#include "resolve.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "inner.h"
#include "locate.h"
#include "log.h"
#include "names.h"
#include "settings.h"
#include "thread.h"

heddle_code heddle_real[HEDDLE_SYM_COUNT];

static struct heddle_reverse *reverse; /* published once, never freed */

static heddle_result not_supported(void) {
    return HEDDLE_CUDA_NOT_SUPPORTED;
}

/* What a program gets from the toolkit's own stand-in where no driver is installed. */
static heddle_result no_driver(void) {
    return HEDDLE_CUDA_STUB_LIBRARY;
}

static heddle_code look_up(void *driver, uint32_t index) {
    void *address = driver != NULL ? dlsym(driver, heddle_names[index].name) : NULL;
    heddle_code code = NULL;

    memcpy(&code, &address, sizeof(code));
    return code;
}

static void publish_reverse(const heddle_code *found) {
    struct heddle_reverse *map = malloc(sizeof(*map));
    struct heddle_reverse *expected = NULL;

    if (map == NULL) {
        return; /* every address is then unknown and handed on */
    }
    heddle_reverse_build(map, found);
    if (!__atomic_compare_exchange_n(&reverse, &expected, map, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE)) {
        free(map);
    }
}

static void resolve_all(void) {
    const heddle_code missing[2] = {(heddle_code)no_driver, (heddle_code)not_supported};
    heddle_code found[HEDDLE_SYM_COUNT];
    const bool disabled = heddle_settings()->disabled;
    char path[PATH_MAX] = "";
    void *driver = heddle_locate_open(path, sizeof(path));

    for (uint32_t i = 0; i < HEDDLE_SYM_COUNT; i++) {
        found[i] = look_up(driver, i);
        __atomic_store_n(&heddle_real[i], found[i] != NULL ? found[i] : missing[driver != NULL],
                         __ATOMIC_RELEASE);
    }
    publish_reverse(found);
    if (driver != NULL && heddle_inner_calls(driver)) {
        heddle_thread_careful();
    }
    heddle_log(driver != NULL ? HEDDLE_LOG_INFO : HEDDLE_LOG_ERROR,
               driver != NULL ? "driver %s" : "no driver library found, last tried %s", path);
    for (uint32_t i = 0; i < HEDDLE_SYM_COUNT; i++) {
        const bool hooked = heddle_hooks[i] != NULL && found[i] != NULL && !disabled;

        __atomic_store_n(&heddle_entry[i], hooked ? heddle_hooks[i] : heddle_real[i],
                         __ATOMIC_RELEASE);
    }
}

heddle_code heddle_resolve(uint32_t index) {
    resolve_all();
    return __atomic_load_n(&heddle_entry[index], __ATOMIC_ACQUIRE);
}

void *heddle_resolve_export(const void *address, const char *asked) {
    const struct heddle_reverse *map = __atomic_load_n(&reverse, __ATOMIC_ACQUIRE);
    const int index =
        map != NULL ? heddle_reverse_find(map, address, asked) : HEDDLE_REVERSE_UNKNOWN;
    void *export = NULL;

    if (index >= 0) {
        memcpy(&export, &heddle_exports[index], sizeof(export));
    }
    return export;
}

bool heddle_resolve_has(enum heddle_symbol_index index) {
    return heddle_real[index] != (heddle_code)not_supported &&
           heddle_real[index] != (heddle_code)no_driver && heddle_real[index] != NULL;
}
