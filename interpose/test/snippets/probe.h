/* What every way of opening the driver is asked afterwards. */
#ifndef HEDDLE_SNIPPET_PROBE_H
#define HEDDLE_SNIPPET_PROBE_H

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

typedef int (*init_call)(unsigned);

static inline void *probe_symbol(void *handle, const char *name) {
    void *symbol = dlsym(handle, name);

    if (symbol == NULL) {
        printf("no %s\n", name);
    }
    return symbol;
}

/* Prints the library that a function lives in, and what cuInit answers. */
static inline int probe_report(void *function) {
    Dl_info info;
    int result = 0;

    if (function == NULL || dladdr(function, &info) == 0) {
        printf("nowhere\n");
        return 1;
    }
    result = ((init_call)(uintptr_t)function)(0);
    printf("%s %d\n", info.dli_fname, result);
    return result != 0;
}

#endif /* HEDDLE_SNIPPET_PROBE_H */
