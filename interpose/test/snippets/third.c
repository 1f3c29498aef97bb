/* A library that somebody else preloads: it hooks cuInit, says who is next, and goes on there. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

__attribute__((visibility("default"))) int cuInit(unsigned flags);

int cuInit(unsigned flags) {
    void *next = dlsym(RTLD_NEXT, "cuInit");
    Dl_info info;

    if (next == NULL || dladdr(next, &info) == 0) {
        return -1;
    }
    printf("next %s\n", info.dli_fname);
    return ((int (*)(unsigned))(uintptr_t)next)(flags);
}
