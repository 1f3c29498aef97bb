/* The life of a process on the node: what its end leaves to late calls, what its death leaves to a
 * child, and that a launch without costs asks nobody. */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "api.h"
#include "check.h"
#include "state.h"

CUresult cuStreamWaitValue32_v2(CUstream s, CUdeviceptr p, uint32_t value, unsigned flags);

static CUcontext context;
static CUfunction spin;

static void begin(void) {
    CUmodule m;
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&context, 0, 0));
    OK(cuModuleLoad(&m, "tests/softgpu/kernels/basic.ptx"));
    OK(cuModuleGetFunction(&spin, m, "spin"));
}

static CUresult launch(uint64_t ns) {
    void *params[] = {&ns};
    return cuLaunchKernel(spin, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL);
}

static int status_of(void (*what)(void)) {
    int status = 1;
    pid_t pid = fork();
    if (pid == 0) {
        what();
        exit(check_failures);
    }
    waitpid(pid, &status, 0);
    return status;
}

/* Parent and child talk through these. */
static int to_parent[2];
static int to_child[2];

static void open_pipes(void) {
    OK(pipe(to_parent));
    OK(pipe(to_child));
}

static void close_pipes(void) {
    for (int i = 0; i < 2; i++) {
        close(to_parent[i]);
        close(to_child[i]);
    }
}

static void say(int fd) {
    CHECK_EQ(write(fd, "x", 1), 1);
}

static bool heard(int fd) {
    char c;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 20000) == 1 && read(fd, &c, 1) == 1;
}

static pthread_t waiter;
static CUresult waited; /* its answer */

/* Waits for what never comes. */
static void *wait_in_vain(void *gate) {
    CUstream s;
    OK(cuCtxSetCurrent(context));
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuStreamWaitValue32_v2(s, (CUdeviceptr)(uintptr_t)gate, 1, 0));
    say(to_parent[1]);
    waited = cuStreamSynchronize(s);
    return NULL;
}

/* exit() writes out what is left in its files last, after all destructors: the driver's too. */
static ssize_t after_the_driver(void *cookie, const char *text, size_t size) {
    CUdeviceptr p;
    CUcontext c;
    size_t bytes;
    (void)cookie;
    (void)text;
    CHECK_EQ(launch(1000), CUDA_ERROR_DEINITIALIZED);
    CHECK_EQ(cuMemAlloc_v2(&p, 64), CUDA_ERROR_DEINITIALIZED);
    CHECK_EQ(cuMemGetInfo_v2(&bytes, &bytes), CUDA_ERROR_DEINITIALIZED);
    CHECK_EQ(cuCtxSynchronize(), CUDA_ERROR_DEINITIALIZED);
    CHECK_EQ(cuCtxGetCurrent(&c), CUDA_ERROR_DEINITIALIZED);
    CHECK_EQ(cuCtxDestroy_v2(context), CUDA_ERROR_DEINITIALIZED);
    CHECK_EQ(cuInit(0), CUDA_ERROR_DEINITIALIZED);
    pthread_join(waiter, NULL);
    CHECK_EQ(waited, CUDA_ERROR_DEINITIALIZED);
    say(to_parent[1]);
    _exit(check_failures);
    return (ssize_t)size;
}

static void call_after_the_end(void) {
    const cookie_io_functions_t functions = {.write = after_the_driver};
    void *gate = NULL;
    begin();
    OK(launch(1000));
    OK(cuMemHostAlloc(&gate, sizeof(uint32_t), 0));
    pthread_create(&waiter, NULL, wait_in_vain, gate);
    CHECK(heard(to_parent[0]));
    FILE *last = fopencookie(NULL, "w", functions);
    CHECK(last != NULL && fputc('x', last) == 'x');
    exit(check_failures);
}

/* The slot and the memory of a process that ends are free at once, without a search for the dead. */
static void nothing_is_left(void) {
    struct sg_node node;
    OK(sg_state_open(&node, NULL, NULL));
    sg_state_lock(&node);
    CHECK_EQ(node.st->units[0].used_bytes, 0);
    CHECK_EQ(node.st->header.reaped, 0);
    for (uint32_t p = 0; p < node.st->header.proc_high; p++) {
        CHECK_EQ(node.st->procs[p].state, SOFTGPU_SLOT_FREE);
    }
    sg_state_unlock(&node);
    sg_state_close(&node);
}

static void calls_after_the_end_are_refused(void) {
    open_pipes();
    CHECK_EQ(status_of(call_after_the_end), 0);
    CHECK(heard(to_parent[0]));
    close_pipes();
    nothing_is_left();
}

static void launch_beside_a_held_lock(void) {
    begin();
    OK(launch(1000)); /* the first one of a thread takes its counter */
    say(to_parent[1]);
    CHECK(heard(to_child[0]));
    for (int i = 0; i < 100000; i++) {
        OK(launch(1000));
    }
    say(to_parent[1]);
    CHECK(heard(to_child[0]));
}

static void a_launch_without_costs_takes_no_lock(void) {
    struct sg_node node;
    int status = 1;
    open_pipes();
    OK(sg_state_open(&node, NULL, NULL));
    pid_t pid = fork();
    if (pid == 0) {
        launch_beside_a_held_lock();
        exit(check_failures);
    }
    CHECK(heard(to_parent[0]));
    sg_state_lock(&node);
    say(to_child[1]);
    CHECK(heard(to_parent[0]));
    sg_state_unlock(&node);
    say(to_child[1]);
    waitpid(pid, &status, 0);
    CHECK_EQ(status, 0);
    sg_state_close(&node);
    close_pipes();
}

#ifndef __SANITIZE_ADDRESS__
/* The orphan: waits until its parent is gone, and works. */
static void work_as_an_orphan(void) {
    CHECK(heard(to_child[0]));
    CHECK_EQ(cuCtxSynchronize(), CUDA_ERROR_NOT_INITIALIZED);
    begin();
    OK(launch(10000));
    OK(cuCtxSynchronize());
    CHECK_EQ(write(to_parent[1], check_failures == 0 ? "y" : "n", 1), 1);
    CHECK(heard(to_child[0]));
    exit(check_failures);
}

static void die_with_a_child(void) {
    CUdeviceptr p;
    begin();
    OK(launch(1000000000));
    OK(cuMemAlloc_v2(&p, 1 << 30));
    if (fork() == 0) {
        work_as_an_orphan();
    }
    kill(getpid(), SIGKILL);
}

static void a_child_outlives_its_parent(void) {
    struct sg_node node;
    char answer = 'n';
    open_pipes();
    OK(sg_state_open(&node, NULL, NULL));
    CHECK(WIFSIGNALED(status_of(die_with_a_child)));
    sg_state_lock(&node);
    sg_reap(&node, SOFTGPU_NONE, true);
    CHECK_EQ(node.st->units[0].used_bytes, 0);
    sg_state_unlock(&node);
    say(to_child[1]);
    struct pollfd ready = {.fd = to_parent[0], .events = POLLIN};
    CHECK(poll(&ready, 1, 20000) == 1 && read(to_parent[0], &answer, 1) == 1);
    CHECK_EQ(answer, 'y');
    uint32_t used = 0;
    sg_state_lock(&node);
    for (uint32_t i = 0; i < node.st->header.proc_high; i++) {
        used += node.st->procs[i].state == SOFTGPU_SLOT_USED;
    }
    sg_state_unlock(&node);
    CHECK_EQ(used, 1); /* the orphan's own */
    say(to_child[1]);
    sg_state_close(&node);
    close_pipes();
}
#else
/* The sanitizer's allocator does not survive a fork beside another thread that allocates. */
static void a_child_outlives_its_parent(void) {
    printf("%s: left out under ASan\n", check_case);
    fflush(stdout); /* before the next fork */
}
#endif

int main(void) {
    /* This process never calls the driver: its children each begin afresh. */
    check_node("H100", "real-like");
    RUN("calls after the end are refused", calls_after_the_end_are_refused);
    RUN("a child outlives its parent", a_child_outlives_its_parent);
    check_node("H100", "null");
    RUN("calls after the end are refused, without costs", calls_after_the_end_are_refused);
    RUN("a launch without costs takes no lock", a_launch_without_costs_takes_no_lock);
    return finish("test_life");
}
