/* Several processes on one device: faults, death, MPS, the last byte. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "api.h"
#include "check.h"
#include "state.h"

static CUfunction function(const char *file, const char *name) {
    CUmodule m;
    CUfunction f;
    OK(cuModuleLoad(&m, file));
    OK(cuModuleGetFunction(&f, m, name));
    return f;
}

static CUcontext begin(void) {
    CUcontext ctx;
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&ctx, 0, 0));
    return ctx;
}

static void spin(CUfunction f, uint64_t ns, CUstream s) {
    void *params[] = {&ns};
    OK(cuLaunchKernel(f, 264, 1, 1, 1024, 1, 1, 0, s, params, NULL));
}

/* A child that works until it is killed: launches, allocations, events, waits. */
static void work_for_ever(void) {
    begin();
    CUfunction f = function("tests/softgpu/kernels/basic.ptx", "spin");
    CUevent e;
    OK(cuEventCreate(&e, 0));
    for (;;) {
        CUdeviceptr p;
        OK(cuMemAlloc_v2(&p, 1 << 20));
        for (int i = 0; i < 5; i++) {
            spin(f, 20000, NULL);
        }
        OK(cuEventRecord(e, NULL));
        OK(cuEventSynchronize(e));
        OK(cuMemFree_v2(p));
    }
}

static pid_t start(void (*what)(void)) {
    pid_t pid = fork();
    if (pid == 0) {
        what();
        _exit(0);
    }
    return pid;
}

static int status_of(void (*what)(void)) {
    int status = 1;
    waitpid(start(what), &status, 0);
    return status;
}

/* Parent and child talk through these. */
static int to_parent[2];
static int to_child[2];

static void say(int fd) {
    CHECK_EQ(write(fd, "x", 1), 1);
}

static void hear(int fd) {
    char c;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    CHECK(poll(&p, 1, 20000) == 1 && read(fd, &c, 1) == 1);
}

static void fifty_kills_leave_the_device_as_it_was(void) {
    srand(7);
    for (int i = 0; i < 50; i++) {
        pid_t pid = start(work_for_ever);
        usleep((useconds_t)(rand() % 8000));
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    struct sg_node node;
    OK(sg_state_open(&node, NULL, NULL));
    sg_state_lock(&node);
    sg_reap(&node, SOFTGPU_NONE, true);
    CHECK_EQ(node.st->units[0].used_bytes, 0);
    for (uint32_t p = 0; p < node.st->header.proc_high; p++) {
        CHECK_EQ(node.st->procs[p].state, SOFTGPU_SLOT_FREE);
    }
    for (uint32_t s = 0; s < node.st->header.stream_high; s++) {
        CHECK_EQ(node.st->streams[s].state, SOFTGPU_SLOT_FREE);
    }
    uint32_t live = 0;
    for (uint32_t o = 0; o < node.st->header.op_high; o++) {
        live += node.st->ops[o].state != SOFTGPU_OP_FREE;
    }
    CHECK_EQ(live, 0);
    sg_state_unlock(&node);
    sg_state_close(&node);
}

/* A holder of the lock that dies in the middle of changing things. */
static void die_with_the_lock(void) {
    struct sg_node node;
    begin();
    CUfunction f = function("tests/softgpu/kernels/basic.ptx", "spin");
    spin(f, 1000000, NULL);
    spin(f, 1000000, NULL);
    OK(sg_state_open(&node, NULL, NULL));
    sg_state_lock(&node);
    node.st->streams[0].tail = 12345; /* half of an append */
    node.st->header.op_free = 54321;
    kill(getpid(), SIGKILL);
}

static void use_it(void) {
    begin();
    CUfunction f = function("tests/softgpu/kernels/basic.ptx", "spin");
    spin(f, 100000, NULL);
    OK(cuCtxSynchronize());
}

static void a_dead_holder_of_the_lock_is_repaired(void) {
    pid_t pid = start(die_with_the_lock);
    waitpid(pid, NULL, 0);
    int status = 1;
    pid = start(use_it);
    waitpid(pid, &status, 0);
    CHECK_EQ(status, 0);
    struct sg_node node;
    OK(sg_state_open(&node, NULL, NULL));
    CHECK(node.st->header.repairs >= 1);
    sg_state_close(&node);
}

/* True when the child has ended well; it is killed if that takes 20 s. */
static bool ends_well(pid_t pid) {
    int status = 1;
    for (int i = 0; i < 2000; i++) {
        if (waitpid(pid, &status, WNOHANG) == pid) {
            return status == 0;
        }
        usleep(10000);
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return false;
}

static void lock_and_unlock(void) {
    struct sg_node node;
    OK(sg_state_open(&node, NULL, NULL));
    sg_state_lock(&node);
    sg_state_unlock(&node);
}

/* Holds the lock until somebody waits, and lets go of it without a wake: to the waiter that is what
 * the death of a woken neighbour looks like. */
static void lose_a_wake(void) {
    struct sg_node node;
    OK(sg_state_open(&node, NULL, NULL));
    uint32_t *word = (uint32_t *)node.st->header.lock;
    sg_state_lock(&node);
    say(to_parent[1]);
    for (int i = 0; i < 2000 && (__atomic_load_n(word, __ATOMIC_ACQUIRE) & FUTEX_WAITERS) == 0;
         i++) {
        usleep(10000);
    }
    CHECK((__atomic_load_n(word, __ATOMIC_ACQUIRE) & FUTEX_WAITERS) != 0);
    usleep(1000); /* the bit is set just before the sleep */
    __atomic_store_n(word, 0, __ATOMIC_RELEASE);
    say(to_parent[1]);
    hear(to_child[0]);
    _exit(check_failures);
}

static void a_waiter_for_the_lock_outlives_a_lost_wake(void) {
    OK(pipe(to_parent));
    OK(pipe(to_child));
    pid_t holder = start(lose_a_wake);
    hear(to_parent[0]);
    pid_t waiter = start(lock_and_unlock);
    hear(to_parent[0]);
    CHECK(ends_well(waiter));
    say(to_child[1]);
    CHECK(ends_well(holder));
    for (int i = 0; i < 2; i++) {
        close(to_parent[i]);
        close(to_child[i]);
    }
}

/* Has the lock most of the time. */
static void hog_the_lock(void) {
    struct sg_node node;
    OK(sg_state_open(&node, NULL, NULL));
    say(to_parent[1]);
    for (;;) {
        sg_state_lock(&node);
        uint64_t until = sg_monotonic_ns() + 300000;
        while (sg_monotonic_ns() < until) {
        }
        sg_state_unlock(&node);
        usleep(20);
    }
}

static int stop_with_tool(pid_t pid) {
    const char *build = getenv("BUILD");
    char tool[256];
    char number[16];
    int status = 1;
    snprintf(tool, sizeof(tool), "%s/softgpu/bin/softgpu", build != NULL ? build : "build");
    snprintf(number, sizeof(number), "%d", (int)pid);
    pid_t child = fork();
    if (child == 0) {
        execl(tool, tool, "stop", number, (char *)NULL);
        _exit(127);
    }
    waitpid(child, &status, 0);
    return status;
}

static void a_process_can_be_stopped_without_the_lock(void) {
    struct sg_node node;
    OK(pipe(to_parent));
    OK(sg_state_open(&node, NULL, NULL));
    pid_t pid = start(hog_the_lock);
    hear(to_parent[0]);
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(stop_with_tool(pid), 0);
        bool free = sg_state_lock_within(&node, 10000000000u);
        CHECK(free);
        if (free) {
            sg_state_unlock(&node);
        }
        kill(pid, SIGCONT);
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    sg_state_close(&node);
    close(to_parent[0]);
    close(to_parent[1]);
}

static void wait_for_the_stopped(void) {
    struct sg_node node;
    OK(sg_state_open(&node, NULL, NULL));
    CHECK(!sg_state_lock_within(&node, 50000000));
    exit(check_failures);
}

static void stop_with_the_lock(void) {
    struct sg_node node;
    OK(sg_state_open(&node, NULL, NULL));
    sg_state_lock(&node);
    raise(SIGSTOP);
    sg_state_unlock(&node);
}

/* Nobody takes the lock from a stopped holder, and whoever may give up does. */
static void a_stopped_holder_keeps_the_lock(void) {
    int status;
    pid_t pid = start(stop_with_the_lock);
    waitpid(pid, &status, WUNTRACED);
    CHECK(WIFSTOPPED(status));
    CHECK_EQ(status_of(wait_for_the_stopped), 0);
    kill(pid, SIGCONT);
    CHECK(ends_well(pid));
    CHECK_EQ(status_of(lock_and_unlock), 0);
}

/* Leaves behind a child that the C library knows nothing of, with all open files. */
static void leave_an_heir(void) {
    begin();
    long pid = syscall(SYS_clone, (unsigned long)SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0) {
        char c;
        ssize_t n = read(to_child[0], &c, 1);
        syscall(SYS_exit_group, n == 1 ? 0 : 1);
    }
    kill(getpid(), SIGKILL);
}

static void a_dead_parent_is_noticed_while_its_child_lives(void) {
    OK(pipe(to_child));
    waitpid(start(leave_an_heir), NULL, 0);
    struct sg_node node;
    OK(sg_state_open(&node, NULL, NULL));
    sg_state_lock(&node);
    sg_reap(&node, SOFTGPU_NONE, true);
    for (uint32_t p = 0; p < node.st->header.proc_high; p++) {
        CHECK_EQ(node.st->procs[p].state, SOFTGPU_SLOT_FREE);
    }
    sg_state_unlock(&node);
    sg_state_close(&node);
    CHECK_EQ(status_of(use_it), 0); /* the heir still has the lock on the slot's byte */
    say(to_child[1]);
    close(to_child[0]);
    close(to_child[1]);
}

static void arm(const char *entry, uint32_t result, uint32_t flags, uint64_t after) {
    struct sg_node node;
    OK(sg_state_open(&node, NULL, NULL));
    struct softgpu_fault f = {.flags = flags, .result = result, .after = after, .armed = 1};
    snprintf(f.entry, sizeof(f.entry), "%s", entry);
    node.st->faults[0] = f;
    node.st->header.faults_armed = 1;
    sg_state_close(&node);
}

static void disarm(void) {
    struct sg_node node;
    OK(sg_state_open(&node, NULL, NULL));
    node.st->header.faults_armed = 0;
    node.st->faults[0].armed = 0;
    sg_state_close(&node);
}

static uint32_t faults_armed(void) {
    struct sg_node node;
    OK(sg_state_open(&node, NULL, NULL));
    uint32_t armed = node.st->header.faults_armed;
    sg_state_close(&node);
    return armed;
}

static void strike_after_three(void) {
    begin();
    CUdeviceptr p;
    for (int i = 0; i < 3; i++) {
        OK(cuMemAlloc_v2(&p, 64));
    }
    CHECK_EQ(cuMemAlloc_v2(&p, 64), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemAlloc_v2(&p, 64)); /* once only */
    _exit(check_failures);
}

static void strike_for_good(void) {
    begin();
    CHECK_EQ(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
    CUdeviceptr p;
    CHECK_EQ(cuMemAlloc_v2(&p, 64), CUDA_ERROR_LAUNCH_FAILED);
    _exit(check_failures);
}

static void injected_faults_strike_where_they_should(void) {
    arm("cuMemAlloc_v2", CUDA_ERROR_OUT_OF_MEMORY, 0, 3);
    CHECK_EQ(status_of(strike_after_three), 0);
    CHECK_EQ(faults_armed(), 0);
    arm("cuCtxSynchronize", CUDA_ERROR_LAUNCH_FAILED, SOFTGPU_FAULT_STICKY, 0);
    CHECK_EQ(status_of(strike_for_good), 0);
    disarm();
}

static void neighbour(void) {
    begin();
    say(to_parent[1]);
    hear(to_child[0]);
    CUdeviceptr p;
    CUresult rc = cuMemAlloc_v2(&p, 64);
    _exit(rc == CUDA_ERROR_ILLEGAL_ADDRESS ? 1 : rc == CUDA_SUCCESS ? 0 : 2);
}

static void crash_a_context(void) {
    begin();
    CUfunction f = function("tests/softgpu/kernels/basic.ptx", "fill");
    CUdeviceptr wild = 4096;
    uint32_t value = 1;
    uint64_t n = 16;
    void *params[] = {&wild, &value, &n};
    OK(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
    CHECK_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    _exit(check_failures);
}

/* What a neighbour gets from its next call after a fatal fault of another client. */
static int fault_seen_by_neighbour(void) {
    OK(pipe(to_parent));
    OK(pipe(to_child));
    pid_t pid = start(neighbour);
    hear(to_parent[0]);
    CHECK_EQ(status_of(crash_a_context), 0);
    say(to_child[1]);
    int status = -1;
    waitpid(pid, &status, 0);
    for (int i = 0; i < 2; i++) {
        close(to_parent[i]);
        close(to_child[i]);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void set_mps(uint32_t on) {
    struct sg_node node;
    OK(sg_state_open(&node, NULL, NULL));
    node.st->devices[0].mps = on;
    sg_state_close(&node);
}

static void a_fatal_fault_hits_all_clients_of_the_mps_server(void) {
    CHECK_EQ(fault_seen_by_neighbour(), 0);
    set_mps(1);
    CHECK_EQ(fault_seen_by_neighbour(), 1);
    set_mps(0);
}

/* Each takes single megabytes until none is left, and says how many it got. */
static void take_all(void) {
    begin();
    int got = 0;
    CUdeviceptr p;
    while (cuMemAlloc_v2(&p, 512u << 20) == CUDA_SUCCESS) {
        got++;
    }
    CHECK_EQ(write(to_parent[1], &got, sizeof(got)), sizeof(got));
    hear(to_child[0]); /* keep it until both have counted */
    _exit(check_failures);
}

static void two_processes_race_for_the_last_byte(void) {
    OK(pipe(to_parent));
    OK(pipe(to_child));
    pid_t a = start(take_all);
    pid_t b = start(take_all);
    int n[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(read(to_parent[0], &n[i], sizeof(n[i])), sizeof(n[i]));
    }
    struct sg_node node;
    OK(sg_state_open(&node, NULL, NULL));
    const struct softgpu_unit *u = &node.st->units[0];
    CHECK(u->used_bytes <= u->memory_bytes);
    CHECK(u->memory_bytes - u->used_bytes < 512u << 20);
    CHECK_EQ(u->used_bytes, ((uint64_t)n[0] + (uint64_t)n[1]) * (512u << 20) + (512u << 20));
    sg_state_close(&node);
    say(to_child[1]);
    say(to_child[1]);
    waitpid(a, NULL, 0);
    waitpid(b, NULL, 0);
}

static void keep_a_context(void) {
    begin();
    say(to_parent[1]);
    hear(to_child[0]);
    _exit(check_failures);
}

static void be_refused(void) {
    CUcontext ctx;
    OK(cuInit(0));
    CHECK_EQ(cuCtxCreate_v2(&ctx, 0, 0), CUDA_ERROR_DEVICE_UNAVAILABLE);
    _exit(check_failures);
}

static void set_compute_mode(uint32_t mode) {
    struct sg_node node;
    OK(sg_state_open(&node, NULL, NULL));
    node.st->devices[0].compute_mode = mode;
    sg_state_close(&node);
}

static void an_exclusive_device_takes_one_process(void) {
    OK(pipe(to_parent));
    OK(pipe(to_child));
    set_compute_mode(3);
    pid_t pid = start(keep_a_context);
    hear(to_parent[0]);
    CHECK_EQ(status_of(be_refused), 0);
    say(to_child[1]);
    waitpid(pid, NULL, 0);
    CHECK_EQ(status_of(use_it), 0);
    set_compute_mode(0);
    for (int i = 0; i < 2; i++) {
        close(to_parent[i]);
        close(to_child[i]);
    }
}

#ifndef __SANITIZE_ADDRESS__
static void use_it_in_a_child_too(void) {
    CUdeviceptr p;
    begin();
    CUfunction f = function("tests/softgpu/kernels/basic.ptx", "spin");
    spin(f, 100000, NULL);
    OK(cuMemAlloc_v2(&p, 1 << 20));
    int status = 1;
    pid_t pid = fork();
    if (pid == 0) {
        CHECK_EQ(cuCtxSynchronize(), CUDA_ERROR_NOT_INITIALIZED);
        use_it();
        exit(check_failures);
    }
    waitpid(pid, &status, 0);
    CHECK_EQ(status, 0);
    OK(cuCtxSynchronize());
    OK(cuMemFree_v2(p));
    exit(check_failures);
}

static void a_forked_child_begins_afresh(void) {
    CHECK_EQ(status_of(use_it_in_a_child_too), 0);
}
#else
/* The sanitizer's allocator does not survive a fork beside another thread that allocates. */
static void a_forked_child_begins_afresh(void) {
    printf("%s: left out under ASan\n", check_case);
}
#endif

int main(void) {
    check_node("A30", "real-like");
    /* The parent never calls the driver: its children each begin afresh. */
    RUN("50 kills leave the device as it was", fifty_kills_leave_the_device_as_it_was);
    RUN("a dead holder of the lock is repaired", a_dead_holder_of_the_lock_is_repaired);
    RUN("a waiter for the lock outlives a lost wake", a_waiter_for_the_lock_outlives_a_lost_wake);
    RUN("a process can be stopped without the lock", a_process_can_be_stopped_without_the_lock);
    RUN("a stopped holder keeps the lock", a_stopped_holder_keeps_the_lock);
    RUN("a dead parent is noticed while its child lives",
        a_dead_parent_is_noticed_while_its_child_lives);
    RUN("injected faults strike where they should", injected_faults_strike_where_they_should);
    RUN("a fatal fault hits all clients of the MPS server",
        a_fatal_fault_hits_all_clients_of_the_mps_server);
    RUN("a forked child begins afresh", a_forked_child_begins_afresh);
    RUN("an exclusive device takes one process", an_exclusive_device_takes_one_process);
    RUN("two processes race for the last byte", two_processes_race_for_the_last_byte);
    return finish("test_share");
}
