/* Makes 1000 cooperative launches, waits for them, says so, and stays until its input ends. */
#include "probe.h"

static const char ptx[] = ".version 6.4\n.target sm_70\n.address_size 64\n"
                          "// softgpu.kernel mark busy time_ns=1000\n"
                          ".visible .entry mark(.param .u64 buffer)\n{\n    ret;\n}\n";

int main(void) {
    void *handle = dlopen("libcuda.so.1", RTLD_NOW);
    void *context = NULL;
    void *module = NULL;
    void *function = NULL;
    unsigned long long buffer = 0;
    void *params[] = {&buffer};
    int failed = 0;
    int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                  void *, void **) = NULL;

    if (handle == NULL) {
        return 1;
    }
    failed |= ((init_call)(uintptr_t)probe_symbol(handle, "cuInit"))(0);
    failed |= ((int (*)(void **, unsigned, int))(uintptr_t)probe_symbol(handle, "cuCtxCreate_v2"))(
        &context, 0, 0);
    failed |= ((int (*)(void **, const void *))(uintptr_t)probe_symbol(handle, "cuModuleLoadData"))(
        &module, ptx);
    failed |= ((int (*)(void **, void *, const char *))(uintptr_t)probe_symbol(
        handle, "cuModuleGetFunction"))(&function, module, "mark");
    launch = (int (*)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                      void *, void **))(uintptr_t)probe_symbol(handle, "cuLaunchCooperativeKernel");
    for (int i = 0; i < 1000; i++) {
        failed |= launch(function, 1, 1, 1, 32, 1, 1, 0, NULL, params);
    }
    failed |= ((int (*)(void))(uintptr_t)probe_symbol(handle, "cuCtxSynchronize"))();
    printf("launched %d\n", failed);
    fflush(stdout);
    (void)getchar();
    return failed;
}
