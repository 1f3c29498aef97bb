#include "driver.h"

#include <dlfcn.h>
#include <string.h>

static bool find(void *library, const char *symbol, void *field, struct play_error *err) {
    void *address = dlsym(library, symbol);

    if (address == NULL) {
        return play_fail(err, "CUDA driver library: no symbol %s, the driver is too old", symbol);
    }
    /* A function pointer, written as an object pointer: POSIX promises that this works. */
    memcpy(field, &address, sizeof address);
    return true;
}

bool play_driver_open(struct play_driver *driver, struct play_error *err) {
    memset(driver, 0, sizeof *driver);
    driver->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (driver->library == NULL) {
        return play_fail(err, "open the CUDA driver library: %s", dlerror());
    }
#define PLAY_DRIVER_FIND(field, symbol, parameters)                                                \
    if (!find(driver->library, #symbol, &driver->field, err)) {                                    \
        return false;                                                                              \
    }
    PLAY_DRIVER_FUNCTIONS(PLAY_DRIVER_FIND)
    return play_driver_ok(driver, driver->init(0), "cuInit", err);
}

bool play_driver_ok(const struct play_driver *driver, CUresult result, const char *what,
                    struct play_error *err) {
    const char *name = NULL;

    if (result == PLAY_CUDA_SUCCESS) {
        return true;
    }
    if (driver->error_name(result, &name) != PLAY_CUDA_SUCCESS || name == NULL) {
        name = "unknown error";
    }
    return play_fail(err, "%s: %s (%d)", what, name, result);
}
