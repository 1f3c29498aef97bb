/*
 * Does what a statically linked runtime does: opens the driver by its SONAME, asks it for the one
 * function by which all others are found, and takes those from it at the version it was built for.
 */
#include "probe.h"

typedef int (*address_call)(const char *, void **, int, uint64_t, int *);

enum { VERSION = 12040 };

static void *ask(address_call call, const char *name) {
    void *function = NULL;
    int status = -1;

    if (call(name, &function, VERSION, 0, &status) != 0 || status != 0) {
        printf("no %s, status %d\n", name, status);
    }
    return function;
}

int main(void) {
    void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    address_call first = NULL;
    address_call call = NULL;

    if (handle == NULL) {
        printf("%s\n", dlerror());
        return 1;
    }
    first = (address_call)(uintptr_t)probe_symbol(handle, "cuGetProcAddress_v2");
    if (first == NULL) {
        return 1;
    }
    /* Asking it for itself must not lead past whoever stands before the driver. */
    call = (address_call)(uintptr_t)ask(first, "cuGetProcAddress");
    return call == NULL ? 1 : probe_report(ask(call, "cuInit"));
}
