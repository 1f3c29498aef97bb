/* The way of an ordinary program: device, context, module, memory, launch, wait. */
#define _GNU_SOURCE
#include "api.h"
#include "check.h"

static CUcontext ctx;
static CUmodule module;

static CUfunction function(const char *name) {
    CUfunction f = NULL;
    OK(cuModuleGetFunction(&f, module, name));
    return f;
}

static void calls_before_init_are_refused(void) {
    int n;
    CHECK_EQ(cuDeviceGetCount(&n), CUDA_ERROR_NOT_INITIALIZED);
}

static void a_context_is_needed(void) {
    CUdeviceptr p;
    CHECK_EQ(cuMemAlloc_v2(&p, 16), CUDA_ERROR_INVALID_CONTEXT);
}

static void the_device_is_described(void) {
    char name[64];
    int sms = 0;
    size_t total = 0;
    OK(cuDeviceGetName(name, sizeof(name), 0));
    OK(cuDeviceGetAttribute(&sms, 16, 0));
    OK(cuDeviceTotalMem_v2(&total, 0));
    CHECK(strstr(name, "H100") != NULL);
    CHECK_EQ(sms, 132);
    CHECK(total > 70ull << 30);
    CHECK_EQ(cuDeviceGetName(name, sizeof(name), 7), CUDA_ERROR_INVALID_DEVICE);
}

static void kernels_have_effects_in_order(void) {
    enum { N = 1000 };
    uint32_t host[N];
    CUdeviceptr a;
    CUdeviceptr b;
    CUdeviceptr sum;
    uint64_t n = N;
    uint32_t seven = 7;
    OK(cuMemAlloc_v2(&a, sizeof(host)));
    OK(cuMemAlloc_v2(&b, sizeof(host)));
    OK(cuMemAlloc_v2(&sum, 8));
    OK(cuMemsetD8_v2(sum, 0, 8));
    void *fill[] = {&a, &seven, &n};
    void *stream[] = {&b, &a, &n};
    void *check[] = {&sum, &b, &n};
    OK(cuLaunchKernel(function("fill"), 4, 1, 1, 256, 1, 1, 0, NULL, fill, NULL));
    OK(cuLaunchKernel(function("stream"), 4, 1, 1, 256, 1, 1, 0, NULL, stream, NULL));
    OK(cuLaunchKernel(function("checksum"), 4, 1, 1, 256, 1, 1, 0, NULL, check, NULL));
    uint64_t total = 0;
    OK(cuMemcpyDtoH_v2(&total, sum, 8));
    OK(cuMemcpyDtoH_v2(host, b, sizeof(host)));
    CHECK_EQ(total, 8 * N);
    CHECK_EQ(host[N - 1], 8);
    OK(cuMemFree_v2(a));
    OK(cuMemFree_v2(b));
    OK(cuMemFree_v2(sum));
}

static void extra_is_as_good_as_params(void) {
    struct {
        CUdeviceptr state;
        uint64_t time_ns, block_ns, tag;
    } args = {0, 1000, 1000, 5};
    size_t size = sizeof(args);
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &args, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    CUmodule m;
    CUfunction busy;
    OK(cuModuleLoad(&m, "tests/softgpu/kernels/compute.ptx"));
    OK(cuModuleGetFunction(&busy, m, "busy"));
    OK(cuMemAlloc_v2(&args.state, 8));
    OK(cuMemsetD8_v2(args.state, 0, 8));
    OK(cuLaunchKernel(busy, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, extra));
    args.tag = 6;
    OK(cuLaunchKernel(busy, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, extra));
    uint64_t state = 0;
    OK(cuMemcpyDtoH_v2(&state, args.state, 8));
    CHECK_EQ(state, 5 * 6364136223846793005u + 6);
    OK(cuMemFree_v2(args.state));
    OK(cuModuleUnload(m));
}

CUresult cuFuncSetBlockShape(CUfunction f, int x, int y, int z);
CUresult cuParamSetv(CUfunction f, int offset, void *value, unsigned bytes);
CUresult cuParamSetSize(CUfunction f, unsigned bytes);
CUresult cuLaunchGrid(CUfunction f, int width, int height);

static void the_old_launch_calls_work(void) {
    struct {
        CUdeviceptr dst;
        uint32_t value;
        uint32_t pad;
        uint64_t n;
    } args = {0, 11, 0, 1};
    uint32_t got = 0;
    CUfunction f = function("fill");
    OK(cuMemAlloc_v2(&args.dst, 4));
    OK(cuFuncSetBlockShape(f, 32, 1, 1));
    OK(cuParamSetv(f, 0, &args, sizeof(args)));
    OK(cuParamSetSize(f, sizeof(args)));
    OK(cuLaunchGrid(f, 1, 1));
    OK(cuMemcpyDtoH_v2(&got, args.dst, 4));
    CHECK_EQ(got, 11);
    CHECK_EQ(cuParamSetv(f, 4096, &args, 8), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree_v2(args.dst));
}

static void a_kernel_is_as_good_as_a_function(void) {
    static const char ptx[] = ".version 6.4\n.target sm_70\n"
                              "// softgpu.kernel k spin time_ns=1000 regs=64 threads=128\n"
                              ".visible .entry k()\n{ret;}\n";
    CUlibrary l;
    CUkernel k;
    const char *name = NULL;
    OK(cuLibraryLoadData(&l, ptx, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetKernel(&k, l, "k"));
    OK(cuFuncGetName(&name, k));
    CHECK(strcmp(name, "k") == 0);
    OK(cuLaunchKernel(k, 1, 1, 1, 128, 1, 1, 0, NULL, NULL, NULL));
    CHECK_EQ(cuLaunchKernel(k, 1, 1, 1, 256, 1, 1, 0, NULL, NULL, NULL),
             CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    CHECK_EQ(cuLaunchKernel(k, 0, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    CUlaunchConfig config = {.gridDimX = 1,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = 32,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .hStream = CU_STREAM_PER_THREAD};
    OK(cuLaunchKernelEx(&config, k, NULL, NULL));
    OK(cuCtxSynchronize());
}

static void events_measure_simulated_time(void) {
    CUstream s;
    CUevent a;
    CUevent b;
    float ms = 0;
    uint64_t ns = 3000000;
    void *params[] = {&ns};
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&a, 0));
    OK(cuEventCreate(&b, 0));
    OK(cuEventRecord(a, s));
    OK(cuLaunchKernel(function("spin"), 1, 1, 1, 32, 1, 1, 0, s, params, NULL));
    OK(cuEventRecord(b, s));
    CHECK_EQ(cuEventQuery(b), CUDA_ERROR_NOT_READY);
    CHECK_EQ(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
    OK(cuEventSynchronize(b));
    CHECK_EQ(cuEventQuery(b), CUDA_SUCCESS);
    OK(cuEventElapsedTime(&ms, a, b));
    CHECK(ms >= 3.0f && ms < 3.1f);
    OK(cuStreamSynchronize(s));
    OK(cuEventDestroy_v2(a));
    OK(cuEventDestroy_v2(b));
    OK(cuStreamDestroy_v2(s));
}

static void streams_wait_for_events_of_others(void) {
    CUstream s[2];
    CUevent e;
    CUdeviceptr p;
    uint32_t host = 0;
    uint64_t ns = 500000;
    uint64_t one = 1;
    uint32_t value = 3;
    OK(cuMemAlloc_v2(&p, 4));
    OK(cuStreamCreate(&s[0], CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&s[1], CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    void *spin[] = {&ns};
    void *fill[] = {&p, &value, &one};
    OK(cuLaunchKernel(function("spin"), 1, 1, 1, 32, 1, 1, 0, s[0], spin, NULL));
    OK(cuLaunchKernel(function("fill"), 1, 1, 1, 32, 1, 1, 0, s[0], fill, NULL));
    OK(cuEventRecord(e, s[0]));
    OK(cuStreamWaitEvent(s[1], e, 0));
    OK(cuMemcpyDtoHAsync_v2(&host, p, 4, s[1]));
    OK(cuStreamSynchronize(s[1]));
    CHECK_EQ(host, 3);
    OK(cuEventDestroy_v2(e));
    OK(cuStreamDestroy_v2(s[0]));
    OK(cuStreamDestroy_v2(s[1]));
    OK(cuMemFree_v2(p));
}

static void free_and_used_are_the_total(void) {
    size_t before = 0;
    size_t after = 0;
    size_t total = 0;
    CUdeviceptr p;
    OK(cuMemGetInfo_v2(&before, &total));
    OK(cuMemAlloc_v2(&p, 1u << 30));
    OK(cuMemGetInfo_v2(&after, &total));
    CHECK_EQ(before - after, 1u << 30);
    CHECK_EQ(cuMemFree_v2(p + 8), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree_v2(p));
    CHECK_EQ(cuMemFree_v2(p), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemGetInfo_v2(&after, &total));
    CHECK_EQ(before, after);
    CHECK_EQ(cuMemAlloc_v2(&p, before + 1), CUDA_ERROR_OUT_OF_MEMORY);
}

static void a_wild_pointer_takes_the_context(void) {
    CUcontext other;
    CUmodule m;
    CUfunction f;
    CUdeviceptr wild = 4096;
    uint64_t n = 16;
    uint32_t value = 1;
    void *params[] = {&wild, &value, &n};
    OK(cuCtxCreate_v2(&other, 0, 0));
    OK(cuModuleLoad(&m, "tests/softgpu/kernels/basic.ptx"));
    OK(cuModuleGetFunction(&f, m, "fill"));
    OK(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
    CHECK_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    CUdeviceptr p;
    CHECK_EQ(cuMemAlloc_v2(&p, 16), CUDA_ERROR_ILLEGAL_ADDRESS);
    OK(cuCtxDestroy_v2(other));
    OK(cuMemAlloc_v2(&p, 16)); /* the first context is current again, and well */
    OK(cuMemFree_v2(p));
}

static void proc_address_knows_versions(void) {
    void *p = NULL;
    int status = -1;
    OK(cuGetProcAddress_v2("cuMemAlloc", &p, 12000, 0, &status));
    CHECK(p == (void *)(uintptr_t)&cuMemAlloc_v2);
    CHECK_EQ(status, 0);
    CHECK_EQ(cuGetProcAddress_v2("cuNoSuchThing", &p, 12000, 0, &status), CUDA_ERROR_NOT_FOUND);
    CHECK_EQ(status, 1);
    CHECK_EQ(cuGetProcAddress_v2("cuLibraryLoadData", &p, 11000, 0, &status), CUDA_ERROR_NOT_FOUND);
    CHECK_EQ(status, 2);
    CHECK(p == NULL);
    CHECK_EQ(cuGetProcAddress_v2("cuNoSuchThing", &p, 12000, 0, NULL), CUDA_ERROR_NOT_FOUND);
}

int main(void) {
    check_node("H100", "real-like");
    RUN("calls before cuInit are refused", calls_before_init_are_refused);
    OK(cuInit(0));
    RUN("a context is needed", a_context_is_needed);
    RUN("the device is described", the_device_is_described);
    OK(cuDevicePrimaryCtxRetain(&ctx, 0));
    OK(cuCtxSetCurrent(ctx));
    OK(cuModuleLoad(&module, "tests/softgpu/kernels/basic.ptx"));
    RUN("kernels have effects in order", kernels_have_effects_in_order);
    RUN("extra is as good as params", extra_is_as_good_as_params);
    RUN("the old launch calls work", the_old_launch_calls_work);
    RUN("a kernel is as good as a function", a_kernel_is_as_good_as_a_function);
    RUN("events measure simulated time", events_measure_simulated_time);
    RUN("streams wait for events of others", streams_wait_for_events_of_others);
    RUN("free and used are the total", free_and_used_are_the_total);
    RUN("a wild pointer takes the context", a_wild_pointer_takes_the_context);
    RUN("cuGetProcAddress knows versions", proc_address_knows_versions);
    OK(cuModuleUnload(module));
    OK(cuDevicePrimaryCtxRelease_v2(0));
    return finish("test_basic");
}
