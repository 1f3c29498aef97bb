/* Many threads in one process: every launch has its effect once, in the order of its stream. */
#define _GNU_SOURCE
#include <pthread.h>

#include "api.h"
#include "check.h"

CUresult cuLaunchHostFunc(CUstream s, CUhostFn fn, void *user);
CUresult cuMemAllocAsync(CUdeviceptr *p, size_t size, CUstream s);
CUresult cuMemFreeAsync(CUdeviceptr p, CUstream s);

enum { THREADS = 8, ROUNDS = 40 };

static CUcontext ctx;
static CUfunction busy;
static const uint64_t FOLD = 6364136223846793005u;

struct lane {
    pthread_t thread;
    CUstream stream; /* NULL: one of its own */
    uint64_t first;
    uint64_t got;
    int called;
};

static void bump(void *user) {
    __atomic_add_fetch((int *)user, 1, __ATOMIC_RELAXED);
}

static void *play(void *arg) {
    struct lane *l = arg;
    CUstream s = l->stream;
    CUdeviceptr state;
    CUevent e;
    OK(cuCtxSetCurrent(ctx));
    if (s == NULL) {
        OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    }
    OK(cuEventCreate(&e, 0));
    OK(cuMemAllocAsync(&state, 8, s));
    OK(cuMemsetD32Async(state, 0, 2, s));
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t ns = 2000;
        uint64_t tag = l->first + (uint64_t)i;
        void *params[] = {&state, &ns, &ns, &tag};
        OK(cuLaunchKernel(busy, 1, 1, 1, 32, 1, 1, 0, s, params, NULL));
        if (i % 8 == 0) {
            OK(cuLaunchHostFunc(s, bump, &l->called));
            OK(cuEventRecord(e, s));
            OK(cuEventSynchronize(e));
            CHECK_EQ(cuEventQuery(e), CUDA_SUCCESS);
        }
    }
    OK(cuMemcpyDtoHAsync_v2(&l->got, state, 8, s));
    OK(cuStreamSynchronize(s));
    OK(cuMemFreeAsync(state, s));
    OK(cuEventDestroy_v2(e));
    if (l->stream == NULL) {
        OK(cuStreamDestroy_v2(s));
    }
    return NULL;
}

static void every_launch_has_its_effect_once(void) {
    struct lane lanes[THREADS];
    memset(lanes, 0, sizeof(lanes));
    for (int i = 0; i < THREADS; i++) {
        lanes[i].first = (uint64_t)i * 1000 + 1;
        lanes[i].stream = i % 2 == 0 ? NULL : CU_STREAM_PER_THREAD;
        pthread_create(&lanes[i].thread, NULL, play, &lanes[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(lanes[i].thread, NULL);
        uint64_t want = 0;
        for (int k = 0; k < ROUNDS; k++) {
            want = want * FOLD + lanes[i].first + (uint64_t)k;
        }
        CHECK(lanes[i].got == want);
        CHECK_EQ(lanes[i].called, ROUNDS / 8);
    }
}

int main(int argc, char **argv) {
    CUmodule m;
    check_node("H200", argc > 1 ? argv[1] : "real-like");
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&ctx, 0, 0));
    OK(cuModuleLoad(&m, "tests/softgpu/kernels/compute.ptx"));
    OK(cuModuleGetFunction(&busy, m, "busy"));
    RUN("every launch has its effect once", every_launch_has_its_effect_once);
    OK(cuCtxDestroy_v2(ctx));
    return finish("test_threads");
}
