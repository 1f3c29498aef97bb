/* Many threads in one process: every launch has its effect once, in the order of its stream. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>

#include "api.h"
#include "check.h"

CUresult cuLaunchHostFunc(CUstream s, CUhostFn fn, void *user);
CUresult cuMemAllocAsync(CUdeviceptr *p, size_t size, CUstream s);
CUresult cuMemFreeAsync(CUdeviceptr p, CUstream s);
CUresult cuStreamWaitValue32_v2(CUstream s, CUdeviceptr p, uint32_t value, unsigned flags);

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

static void put(CUstream s, int count) {
    uint64_t ns = 0;
    uint64_t none = 0;
    void *params[] = {&none, &ns, &ns, &none};
    for (int i = 0; i < count; i++) {
        OK(cuLaunchKernel(busy, 1, 1, 1, 32, 1, 1, 0, s, params, NULL));
    }
}

struct full {
    CUstream stream;
    CUevent event;
};

static void *record_in_full(void *arg) {
    struct full *f = arg;
    OK(cuCtxSetCurrent(ctx));
    OK(cuEventRecord(f->event, f->stream)); /* waits for room */
    return NULL;
}

/* True when the answer comes within 20 s. */
static bool comes(CUresult (*ask)(void *), void *of, CUresult want) {
    for (int i = 0; i < 2000; i++) {
        if (ask(of) == want) {
            return true;
        }
        usleep(10000);
    }
    return false;
}

static CUresult ask_event(void *of) {
    return cuEventQuery(of);
}

static CUresult ask_stream(void *of) {
    return cuStreamQuery(of);
}

/* The event's place is an old one far on in one stream, then one in another that is full: whoever
 * waits for it between must not wait for the old position in the new stream. */
static void an_event_that_is_being_recorded_can_be_waited_for(void) {
    enum { FAR = 3000, DEPTH = 1024 };
    struct full f;
    CUstream far;
    CUstream waiting;
    pthread_t thread;
    void *gate = NULL;
    OK(cuStreamCreate(&far, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&waiting, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&f.stream, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&f.event, 0));
    OK(cuMemHostAlloc(&gate, sizeof(uint32_t), 0));
    OK(cuStreamWaitValue32_v2(f.stream, (CUdeviceptr)(uintptr_t)gate, 1, 0));
    put(far, FAR);
    OK(cuEventRecord(f.event, far));
    OK(cuStreamSynchronize(far));
    put(f.stream, DEPTH - 1);
    pthread_create(&thread, NULL, record_in_full, &f);
    CHECK(comes(ask_event, f.event, CUDA_ERROR_NOT_READY));
    OK(cuStreamWaitEvent(waiting, f.event, 0));
    __atomic_store_n((uint32_t *)gate, 1, __ATOMIC_RELEASE);
    CHECK(comes(ask_stream, waiting, CUDA_SUCCESS));
    CHECK(comes(ask_event, f.event, CUDA_SUCCESS));
    pthread_join(thread, NULL);
    OK(cuStreamDestroy_v2(far));
    OK(cuStreamDestroy_v2(waiting));
    OK(cuStreamDestroy_v2(f.stream));
    OK(cuEventDestroy_v2(f.event));
    OK(cuMemFreeHost(gate));
}

int main(int argc, char **argv) {
    CUmodule m;
    check_node("H200", argc > 1 ? argv[1] : "real-like");
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&ctx, 0, 0));
    OK(cuModuleLoad(&m, "tests/softgpu/kernels/compute.ptx"));
    OK(cuModuleGetFunction(&busy, m, "busy"));
    RUN("every launch has its effect once", every_launch_has_its_effect_once);
    RUN("an event that is being recorded can be waited for",
        an_event_that_is_being_recorded_can_be_waited_for);
    OK(cuCtxDestroy_v2(ctx));
    return finish("test_threads");
}
