/* Processes and threads that do everything at once on one node while others of them are killed,
 * stopped, or leave in the middle: none may wait for ever, and nothing of the gone may be left.
 *
 *     test_stress [SECONDS [SEED]]
 *
 * The seed decides who does what; what meets what is up to the machine. */
#define _GNU_SOURCE
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "api.h"
#include "check.h"
#include "state.h"

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

/* Leaving by exit() while threads are at work is what is tested. And TSan does not know
 * pthread_mutex_clocklock, and takes the unlock that follows for one too many. */
#define OPTIONS_OF(sanitizer, text)                                                                \
    __attribute__((visibility("default"))) const char *sanitizer(void);                            \
    const char *sanitizer(void) {                                                                  \
        return text;                                                                               \
    }
OPTIONS_OF(__asan_default_options, "detect_leaks=0")
OPTIONS_OF(__tsan_default_options, "report_thread_leaks=0:report_mutex_bugs=0")

enum {
    CHILDREN = 6,
    THREADS = 3,
    SHARED = 4,        /* streams and events of a child that all its threads use */
    BOUND_MS = 20000,  /* nobody may stand still for longer */
    LIFE_MS = 400,     /* a child leaves after about this, if nobody kills it */
    STOP_MS = 40,      /* a child is stopped for at most this */
    LONG_QUEUE = 1200, /* more than a stream takes at once */
};

/* What a thread is doing, for the parent to see. The text is in both processes' image. */
struct trace {
    _Atomic uint64_t steps;
    _Atomic(const char *) doing;
};

static struct common {
    atomic_bool ending;
    struct trace traces[CHILDREN][THREADS];
} * common;

struct worker {
    pthread_t thread;
    struct trace *trace;
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

static uint64_t draw(uint64_t *random, uint64_t below) {
    *random += 0x9e3779b97f4a7c15u;
    uint64_t x = *random;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (x ^ (x >> 31)) % below;
}

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
    uint64_t ns = draw(&w->random, longest_ns);
    void *params[] = {&ns};
    unsigned grid = 1 + (unsigned)draw(&w->random, 400);
    DO(w, cuLaunchKernel(spin, grid, 1, 1, 1024, 1, 1, 0, s, params, NULL));
}

static CUstream any_stream(struct worker *w) {
    return streams[draw(&w->random, SHARED)];
}

static CUevent any_event(struct worker *w) {
    return events[draw(&w->random, SHARED)];
}

static void some_launches(struct worker *w) {
    CUstream s = any_stream(w);
    for (uint64_t n = 1 + draw(&w->random, 8); n > 0; n--) {
        launch(w, s, 100000);
    }
}

static void fill_a_queue(struct worker *w) {
    if (draw(&w->random, 20) == 0) {
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
    uint32_t value = (uint32_t)draw(&w->random, 1000);
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
    DO(w, cuStreamCreate(&s, draw(&w->random, 2) == 0 ? 0 : CU_STREAM_NON_BLOCKING));
    launch(w, s, 50000);
    if (draw(&w->random, 2) == 0) {
        DO(w, cuStreamSynchronize(s));
    }
    DO(w, cuStreamDestroy_v2(s));
}

static void short_context(struct worker *w) {
    CUcontext c;
    DO(w, cuCtxCreate_v2(&c, 0, (CUdevice)draw(&w->random, 2)));
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
    uint64_t steps = 1 + draw(&w->random, 2000);
    DO(w, cuCtxSetCurrent(context));
    DO(w, cuStreamCreate(&w->own, CU_STREAM_NON_BLOCKING));
    while (!atomic_load(&common->ending) && steps-- > 0) {
        STEPS[draw(&w->random, sizeof(STEPS) / sizeof(STEPS[0]))](w);
        atomic_fetch_add(&w->trace->steps, 1);
    }
    DO(w, cuCtxSynchronize());
    atomic_store(&w->trace->doing, "leaves");
    return NULL;
}

/* Loads a kernel, makes what the threads share, and lets them work. Half of the children wait for
 * their threads, the others leave in the middle. */
static _Noreturn void live(struct trace *traces, uint64_t random) {
    struct worker workers[THREADS] = {0};
    struct worker self = {.trace = &traces[0], .random = random};
    CUmodule m;
    DO(&self, cuInit(0));
    DO(&self, cuCtxCreate_v2(&context, 0, (CUdevice)draw(&random, 2)));
    DO(&self, cuModuleLoad(&m, "tests/softgpu/kernels/basic.ptx"));
    DO(&self, cuModuleGetFunction(&spin, m, "spin"));
    for (int i = 0; i < SHARED; i++) {
        DO(&self, cuStreamCreate(&streams[i], i % 2 == 0 ? 0 : CU_STREAM_NON_BLOCKING));
        DO(&self, cuEventCreate(&events[i], 0));
    }
    streams[0] = NULL; /* the legacy one */
    for (int i = 0; i < THREADS; i++) {
        void *word = NULL;
        DO(&self, cuMemHostAlloc(&word, sizeof(uint32_t), 0));
        workers[i] =
            (struct worker){.trace = &traces[i], .random = draw(&random, UINT64_MAX), .word = word};
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    if (draw(&random, 2) == 0) {
        for (int i = 0; i < THREADS; i++) {
            pthread_join(workers[i].thread, NULL);
        }
    } else {
        for (uint64_t ms = draw(&random, LIFE_MS); ms > 0 && !atomic_load(&common->ending); ms--) {
            usleep(1000);
        }
    }
    exit(0);
}

struct child {
    pid_t pid; /* 0: there is none */
    uint64_t seen[THREADS];
    uint64_t since_ms[THREADS];
    uint64_t wake_ms; /* it is stopped until then, 0: it runs */
    bool killed;
};

static struct child children[CHILDREN];
static uint64_t lives;
static uint64_t kills;

static uint64_t now_ms(void) {
    return sg_monotonic_ns() / 1000000u;
}

static void begin_life(int i, uint64_t *random) {
    const uint64_t seed = draw(random, UINT64_MAX);
    memset((void *)common->traces[i], 0, sizeof(common->traces[i]));
    children[i] = (struct child){.pid = fork()};
    if (children[i].pid == 0) {
        live(common->traces[i], seed);
    }
    for (int t = 0; t < THREADS; t++) {
        children[i].since_ms[t] = now_ms();
    }
    lives++;
}

static void show_file(pid_t pid, const char *task, const char *name) {
    char path[300];
    char text[200] = "?";
    snprintf(path, sizeof(path), "/proc/%d/task/%s/%s", (int)pid, task, name);
    FILE *from = fopen(path, "re");
    if (from != NULL) {
        (void)fgets(text, sizeof(text), from);
        fclose(from);
    }
    text[strcspn(text, "\n")] = '\0';
    fprintf(stderr, " %s %s", name, text);
}

/* Where the kernel says that the threads of the process are. */
static void show_threads(pid_t pid) {
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    if (tasks == NULL) {
        return;
    }
    for (const struct dirent *task = readdir(tasks); task != NULL; task = readdir(tasks)) {
        if (task->d_name[0] != '.') {
            fprintf(stderr, "  task %s:", task->d_name);
            show_file(pid, task->d_name, "comm");
            show_file(pid, task->d_name, "wchan");
            show_file(pid, task->d_name, "syscall");
            fputc('\n', stderr);
        }
    }
    closedir(tasks);
}

static void look_at_life(int i) {
    struct child *c = &children[i];
    for (int t = 0; t < THREADS; t++) {
        const uint64_t steps = atomic_load(&common->traces[i][t].steps);
        if (steps != c->seen[t]) {
            c->seen[t] = steps;
            c->since_ms[t] = now_ms();
        }
    }
    int status;
    if (waitpid(c->pid, &status, WNOHANG) == c->pid) {
        const bool well =
            WIFEXITED(status) ? WEXITSTATUS(status) == 0 : c->killed && WTERMSIG(status) == SIGKILL;
        CHECK(well);
        c->pid = 0;
    }
}

/* A thread that stands still for long, with nobody stopped for long, waits for ever: the process is
 * still there, so at least one of its threads has something to do. */
static bool stands_still(int i) {
    const struct child *c = &children[i];
    uint64_t last = 0;
    for (int t = 0; t < THREADS; t++) {
        last = c->since_ms[t] > last ? c->since_ms[t] : last;
    }
    if (c->pid == 0 || now_ms() - last < BOUND_MS) {
        return false;
    }
    fprintf(stderr, "test_stress: child %d, pid %d, stands still:\n", i, (int)c->pid);
    for (int t = 0; t < THREADS; t++) {
        const char *doing = atomic_load(&common->traces[i][t].doing);
        fprintf(stderr, "  thread %d: step %llu, %s\n", t,
                (unsigned long long)atomic_load(&common->traces[i][t].steps),
                doing == NULL ? "not begun" : doing);
    }
    show_threads(c->pid);
    return true;
}

static void disturb(uint64_t *random) {
    struct child *c = &children[draw(random, CHILDREN)];
    const uint64_t what = draw(random, 10);
    if (c->pid == 0 || c->wake_ms != 0) {
        return;
    }
    if (what < 2) {
        c->killed = true;
        kill(c->pid, SIGKILL);
        kills++;
    } else if (what < 5) {
        c->wake_ms = now_ms() + 1 + draw(random, STOP_MS);
        kill(c->pid, SIGSTOP);
    }
}

static void wake_who_is_due(bool all) {
    for (int i = 0; i < CHILDREN; i++) {
        struct child *c = &children[i];
        if (c->pid != 0 && c->wake_ms != 0 && (all || now_ms() >= c->wake_ms)) {
            c->wake_ms = 0;
            kill(c->pid, SIGCONT);
        }
    }
}

/* One look at everybody; false when somebody hangs. */
static bool look_at_all(void) {
    bool well = true;
    for (int i = 0; i < CHILDREN; i++) {
        if (children[i].pid != 0) {
            look_at_life(i);
            well = !stands_still(i) && well;
        }
    }
    return well;
}

static bool anybody(void) {
    bool any = false;
    for (int i = 0; i < CHILDREN; i++) {
        any = any || children[i].pid != 0;
    }
    return any;
}

static void nothing_is_left(void) {
    struct sg_node node;
    OK(sg_state_open(&node, NULL, NULL));
    struct softgpu_state *st = node.st;
    sg_state_lock(&node);
    sg_reap(&node, SOFTGPU_NONE, true);
    for (uint32_t u = 0; u < st->header.unit_count; u++) {
        CHECK_EQ(st->units[u].used_bytes, 0);
    }
    for (uint32_t p = 0; p < st->header.proc_high; p++) {
        CHECK_EQ(st->procs[p].state, SOFTGPU_SLOT_FREE);
    }
    for (uint32_t c = 0; c < st->header.context_high; c++) {
        CHECK_EQ(st->contexts[c].state, SOFTGPU_SLOT_FREE);
    }
    uint32_t busy = 0;
    for (uint32_t s = 0; s < st->header.stream_high; s++) {
        busy += st->streams[s].state != SOFTGPU_SLOT_FREE;
    }
    for (uint32_t o = 0; o < st->header.op_high; o++) {
        busy += st->ops[o].state != SOFTGPU_OP_FREE;
    }
    CHECK_EQ(busy, 0);
    printf("test_stress: %llu lives, %llu killed, %llu found dead, lock repaired %llu times\n",
           (unsigned long long)lives, (unsigned long long)kills,
           (unsigned long long)st->header.reaped, (unsigned long long)st->header.repairs);
    sg_state_unlock(&node);
    sg_state_close(&node);
}

static void everything_at_once(uint64_t seconds, uint64_t random) {
    const uint64_t end = now_ms() + seconds * 1000;
    bool well = true;
    while (well && now_ms() < end && check_failures == 0) {
        for (int i = 0; i < CHILDREN; i++) {
            if (children[i].pid == 0) {
                begin_life(i, &random);
            }
        }
        usleep((useconds_t)draw(&random, 10000));
        disturb(&random);
        wake_who_is_due(false);
        well = look_at_all();
    }
    atomic_store(&common->ending, true);
    wake_who_is_due(true);
    while (well && anybody()) {
        usleep(1000);
        well = look_at_all();
    }
    CHECK(well);
    for (int i = 0; i < CHILDREN; i++) {
        if (children[i].pid != 0) {
            kill(children[i].pid, SIGKILL);
            waitpid(children[i].pid, NULL, 0);
        }
    }
}

int main(int argc, char **argv) {
    const uint64_t seconds = argc > 1 ? strtoull(argv[1], NULL, 10) : 3;
    const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : sg_monotonic_ns() % 1000000u;
    printf("test_stress: seed %llu\n", (unsigned long long)seed);
    fflush(stdout);
    common = mmap(NULL, sizeof(*common), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (common == MAP_FAILED) {
        return 1;
    }
    check_node("2xA30", seed % 4 == 0 ? "null" : "real-like");
    check_case = "everything at once";
    everything_at_once(seconds, seed);
    RUN("nothing is left", nothing_is_left);
    if (check_failures != 0) {
        fprintf(stderr, "test_stress: again with: test_stress %llu %llu\n",
                (unsigned long long)seconds, (unsigned long long)seed);
    }
    return finish("test_stress");
}
