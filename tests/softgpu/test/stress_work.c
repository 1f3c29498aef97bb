/* The stress test's children: threads that do everything at once with one context. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "api.h"
#include "stress.h"

CUresult cuLaunchHostFunc(CUstream s, CUhostFn fn, void *user);
CUresult cuMemAllocAsync(CUdeviceptr *p, size_t size, CUstream s);
CUresult cuMemFreeAsync(CUdeviceptr p, CUstream s);
CUresult cuStreamWriteValue32_v2(CUstream s, CUdeviceptr p, uint32_t value, unsigned flags);
CUresult cuStreamWaitValue32_v2(CUstream s, CUdeviceptr p, uint32_t value, unsigned flags);
CUresult cuStreamBeginCapture_v2(CUstream s, int mode);
CUresult cuStreamEndCapture(CUstream s, CUgraph *out);
CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph g, unsigned long long flags);
CUresult cuGraphLaunch(CUgraphExec e, CUstream s);
CUresult cuGraphExecDestroy(CUgraphExec e);
CUresult cuGraphDestroy(CUgraph g);

enum {
    SHARED = 4,        /* streams and events of a child that all its threads use */
    LIFE_MS = 400,     /* a child leaves after about this, if nobody kills it */
    LONG_QUEUE = 1200, /* more than a stream takes at once */
};

static struct stress_common *common;

struct worker {
    pthread_t thread;
    struct stress_trace *trace;
    uint64_t random;
    CUstream own;
    uint32_t *word; /* pinned; only `own` writes it, so that it only grows */
    uint32_t value;
    _Atomic int called;
};

/* Of this child. */
static CUcontext context;
static CUfunction spin;
static CUstream streams[SHARED];
static CUevent events[SHARED];

/* Another thread may have begun to end the process: then this one has nothing to do any more. */
static void judge(CUresult rc, const char *call) {
    if (rc == CUDA_ERROR_DEINITIALIZED) {
        for (;;) {
            pause();
        }
    }
    if (rc != CUDA_SUCCESS) {
        fprintf(stderr, "test_stress: %s answers %d\n", call, (int)rc);
        _exit(3);
    }
}

#define DO(w, call)                                                                                \
    do {                                                                                           \
        atomic_store(&(w)->trace->doing, #call);                                                   \
        judge(call, #call);                                                                        \
    } while (0)

static void launch(struct worker *w, CUstream s, uint64_t longest_ns) {
    uint64_t ns = stress_draw(&w->random, longest_ns);
    void *params[] = {&ns};
    unsigned grid = 1 + (unsigned)stress_draw(&w->random, 400);
    DO(w, cuLaunchKernel(spin, grid, 1, 1, 1024, 1, 1, 0, s, params, NULL));
}

static CUstream any_stream(struct worker *w) {
    return streams[stress_draw(&w->random, SHARED)];
}

static CUevent any_event(struct worker *w) {
    return events[stress_draw(&w->random, SHARED)];
}

static void some_launches(struct worker *w) {
    CUstream s = any_stream(w);
    for (uint64_t n = 1 + stress_draw(&w->random, 8); n > 0; n--) {
        launch(w, s, 100000);
    }
}

static void fill_a_queue(struct worker *w) {
    if (stress_draw(&w->random, 20) == 0) {
        for (int i = 0; i < LONG_QUEUE; i++) {
            launch(w, w->own, 1000);
        }
    }
}

static void record(struct worker *w) {
    DO(w, cuEventRecord(any_event(w), any_stream(w)));
}

static void wait_in_stream(struct worker *w) {
    DO(w, cuStreamWaitEvent(any_stream(w), any_event(w), 0));
}

static void wait_for_event(struct worker *w) {
    DO(w, cuEventSynchronize(any_event(w)));
}

static void wait_for_stream(struct worker *w) {
    DO(w, cuStreamSynchronize(any_stream(w)));
}

static void wait_for_all(struct worker *w) {
    DO(w, cuCtxSynchronize());
}

static void ask(struct worker *w) {
    CUresult rc = cuStreamQuery(any_stream(w));
    judge(rc == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : rc, "cuStreamQuery");
    rc = cuEventQuery(any_event(w));
    judge(rc == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : rc, "cuEventQuery");
}

static void move_memory(struct worker *w) {
    enum { WORDS = 1024 };
    uint32_t back[WORDS];
    uint32_t value = (uint32_t)stress_draw(&w->random, 1000);
    CUdeviceptr p;
    DO(w, cuMemAlloc_v2(&p, sizeof(back)));
    DO(w, cuMemsetD32Async(p, value, WORDS, w->own));
    DO(w, cuMemcpyDtoHAsync_v2(back, p, sizeof(back), w->own));
    DO(w, cuStreamSynchronize(w->own));
    judge(back[WORDS - 1] == value ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN, "the copied memory");
    DO(w, cuMemFree_v2(p));
}

static void pass_memory(struct worker *w) {
    CUdeviceptr p;
    DO(w, cuMemAllocAsync(&p, 1 << 16, w->own));
    launch(w, w->own, 20000);
    DO(w, cuMemFreeAsync(p, w->own));
}

static void bump(void *user) {
    atomic_fetch_add((_Atomic int *)user, 1);
}

static void call_the_host(struct worker *w) {
    DO(w, cuLaunchHostFunc(any_stream(w), bump, &w->called));
}

static void signal_by_value(struct worker *w) {
    CUdeviceptr p = (CUdeviceptr)(uintptr_t)w->word;
    DO(w, cuStreamWriteValue32_v2(w->own, p, ++w->value, 0));
    DO(w, cuStreamWaitValue32_v2(any_stream(w), p, w->value, 0));
}

/* Destroyed with work in it, or after. */
static void short_stream(struct worker *w) {
    CUstream s;
    DO(w, cuStreamCreate(&s, stress_draw(&w->random, 2) == 0 ? 0 : CU_STREAM_NON_BLOCKING));
    launch(w, s, 50000);
    if (stress_draw(&w->random, 2) == 0) {
        DO(w, cuStreamSynchronize(s));
    }
    DO(w, cuStreamDestroy_v2(s));
}

static void short_context(struct worker *w) {
    CUcontext c;
    DO(w, cuCtxCreate_v2(&c, 0, (CUdevice)stress_draw(&w->random, 2)));
    DO(w, cuCtxDestroy_v2(c));
    DO(w, cuCtxSetCurrent(context));
}

static void play_a_graph(struct worker *w) {
    CUgraph g;
    CUgraphExec e;
    DO(w, cuStreamBeginCapture_v2(w->own, 2));
    launch(w, w->own, 10000);
    launch(w, w->own, 10000);
    DO(w, cuStreamEndCapture(w->own, &g));
    DO(w, cuGraphInstantiateWithFlags(&e, g, 0));
    DO(w, cuGraphLaunch(e, w->own));
    DO(w, cuGraphExecDestroy(e));
    DO(w, cuGraphDestroy(g));
}

static void (*const STEPS[])(struct worker *) = {
    some_launches, some_launches, record,       wait_in_stream, wait_for_event, wait_for_stream,
    wait_for_all,  ask,           move_memory,  pass_memory,    call_the_host,  signal_by_value,
    short_stream,  short_context, play_a_graph, fill_a_queue,
};

static void *work(void *argument) {
    struct worker *w = argument;
    uint64_t steps = 1 + stress_draw(&w->random, 2000);
    DO(w, cuCtxSetCurrent(context));
    DO(w, cuStreamCreate(&w->own, CU_STREAM_NON_BLOCKING));
    while (!atomic_load(&common->ending) && steps-- > 0) {
        STEPS[stress_draw(&w->random, sizeof(STEPS) / sizeof(STEPS[0]))](w);
        atomic_fetch_add(&w->trace->steps, 1);
    }
    DO(w, cuCtxSynchronize());
    atomic_store(&w->trace->doing, "leaves");
    return NULL;
}

/* Loads a kernel, makes what the threads share, and lets them work. Half of the children wait for
 * their threads, the others leave in the middle. */
_Noreturn void stress_live(struct stress_common *shared, struct stress_trace *traces,
                           uint64_t random) {
    common = shared;
    struct worker workers[STRESS_THREADS] = {0};
    struct worker self = {.trace = &traces[0], .random = random};
    CUmodule m;
    DO(&self, cuInit(0));
    DO(&self, cuCtxCreate_v2(&context, 0, (CUdevice)stress_draw(&random, 2)));
    DO(&self, cuModuleLoad(&m, "tests/softgpu/kernels/basic.ptx"));
    DO(&self, cuModuleGetFunction(&spin, m, "spin"));
    for (int i = 0; i < SHARED; i++) {
        DO(&self, cuStreamCreate(&streams[i], i % 2 == 0 ? 0 : CU_STREAM_NON_BLOCKING));
        DO(&self, cuEventCreate(&events[i], 0));
    }
    streams[0] = NULL; /* the legacy one */
    for (int i = 0; i < STRESS_THREADS; i++) {
        void *word = NULL;
        DO(&self, cuMemHostAlloc(&word, sizeof(uint32_t), 0));
        workers[i] = (struct worker){
            .trace = &traces[i], .random = stress_draw(&random, UINT64_MAX), .word = word};
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    if (stress_draw(&random, 2) == 0) {
        for (int i = 0; i < STRESS_THREADS; i++) {
            pthread_join(workers[i].thread, NULL);
        }
    } else {
        for (uint64_t ms = stress_draw(&random, LIFE_MS); ms > 0 && !atomic_load(&common->ending);
             ms--) {
            usleep(1000);
        }
    }
    exit(0);
}
