/* The corners of cuGetProcAddress: no place for a status, unknown names, names yet to come. */
#include "probe.h"

typedef int (*address_call_v2)(const char *, void **, int, uint64_t, int *);

static void ask(address_call_v2 call, const char *name, int version, int *status) {
    void *answer = (void *)(uintptr_t)1;
    const int result = call(name, &answer, version, 0, status);

    printf("%s %d: result %d, status %d, %s\n", name, version, result,
           status == NULL ? -1 : *status, answer == NULL ? "null" : "an address");
}

int main(void) {
    void *handle = dlopen("libcuda.so.1", RTLD_NOW);
    address_call_v2 call = NULL;
    int status = -1;

    if (handle == NULL) {
        return 1;
    }
    call = (address_call_v2)(uintptr_t)probe_symbol(handle, "cuGetProcAddress_v2");
    if (call == NULL) {
        return 0; /* an older driver */
    }
    ask(call, "cuInit", 12000, NULL);
    ask(call, "cuLaunchKernel", 11000, NULL);
    ask(call, "cuNoSuchFunction", 12000, &status);
    ask(call, "cuNoSuchFunction", 12000, NULL);
    ask(call, "cuLaunchKernelEx", 11000, &status);
    ask(call, "cuLibraryLoadData", 11080, &status);
    ask(call, "cuSoftgpuFuture", 14000, &status);
    return 0;
}
