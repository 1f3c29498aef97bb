/* Processes and threads that do everything at once on one node while others of them are killed,
 * stopped, or leave in the middle: none may wait for ever, and nothing of the gone may be left.
 *
 *     test_stress [SECONDS [SEED]]
 *
 * The seed decides who does what; what meets what is up to the machine. */
#define _GNU_SOURCE
#include <dirent.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "check.h"
#include "state.h"
#include "stress.h"

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
    BOUND_MS = 20000, /* nobody may stand still for longer */
    ROUND_MS = 700,
    STOP_MS = 40, /* a child is stopped for at most this */
};

static struct stress_common *common;

struct child {
    pid_t pid; /* 0: there is none */
    uint64_t seen[STRESS_THREADS];
    uint64_t since_ms[STRESS_THREADS];
    uint64_t wake_ms; /* it is stopped until then, 0: it runs */
    bool killed;
};

static struct child children[STRESS_CHILDREN];
static uint64_t lives;
static uint64_t kills;

static uint64_t now_ms(void) {
    return sg_monotonic_ns() / 1000000u;
}

static void begin_life(int i, uint64_t *random) {
    const uint64_t seed = stress_draw(random, UINT64_MAX);
    memset((void *)common->traces[i], 0, sizeof(common->traces[i]));
    children[i] = (struct child){.pid = fork()};
    if (children[i].pid == 0) {
        stress_live(common, common->traces[i], seed);
    }
    for (int t = 0; t < STRESS_THREADS; t++) {
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
    for (int t = 0; t < STRESS_THREADS; t++) {
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
    for (int t = 0; t < STRESS_THREADS; t++) {
        last = c->since_ms[t] > last ? c->since_ms[t] : last;
    }
    if (c->pid == 0 || now_ms() - last < BOUND_MS) {
        return false;
    }
    fprintf(stderr, "test_stress: child %d, pid %d, stands still:\n", i, (int)c->pid);
    for (int t = 0; t < STRESS_THREADS; t++) {
        const char *doing = atomic_load(&common->traces[i][t].doing);
        fprintf(stderr, "  thread %d: step %llu, %s\n", t,
                (unsigned long long)atomic_load(&common->traces[i][t].steps),
                doing == NULL ? "not begun" : doing);
    }
    show_threads(c->pid);
    return true;
}

static void disturb(uint64_t *random) {
    struct child *c = &children[stress_draw(random, STRESS_CHILDREN)];
    const uint64_t what = stress_draw(random, 10);
    if (c->pid == 0 || c->wake_ms != 0) {
        return;
    }
    if (what < 1) {
        c->killed = true;
        kill(c->pid, SIGKILL);
        kills++;
    } else if (what < 4) {
        c->wake_ms = now_ms() + 1 + stress_draw(random, STOP_MS);
        kill(c->pid, SIGSTOP);
    }
}

static void wake_who_is_due(bool all) {
    for (int i = 0; i < STRESS_CHILDREN; i++) {
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
    for (int i = 0; i < STRESS_CHILDREN; i++) {
        if (children[i].pid != 0) {
            look_at_life(i);
            well = !stands_still(i) && well;
        }
    }
    return well;
}

static bool anybody(void) {
    bool any = false;
    for (int i = 0; i < STRESS_CHILDREN; i++) {
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
    sg_state_unlock(&node);
    sg_state_close(&node);
}

/* Those who are there when the round ends must end by themselves: a thread that waits for ever is
 * seen only if nobody kills it. */
static bool all_end_well(void) {
    bool well = true;
    atomic_store(&common->ending, true);
    wake_who_is_due(true);
    while (well && anybody()) {
        usleep(1000);
        well = look_at_all();
    }
    atomic_store(&common->ending, false);
    return well;
}

static bool play_round(uint64_t end_ms, uint64_t *random) {
    bool well = true;
    while (well && now_ms() < end_ms) {
        for (int i = 0; i < STRESS_CHILDREN; i++) {
            if (children[i].pid == 0) {
                begin_life(i, random);
            }
        }
        usleep((useconds_t)stress_draw(random, 10000));
        disturb(random);
        wake_who_is_due(false);
        well = look_at_all();
    }
    return well && all_end_well();
}

static void everything_at_once(uint64_t seconds, uint64_t random) {
    const uint64_t end = now_ms() + seconds * 1000;
    while (now_ms() < end && check_failures == 0) {
        CHECK(play_round(now_ms() + ROUND_MS, &random));
        nothing_is_left();
    }
    for (int i = 0; i < STRESS_CHILDREN; i++) {
        if (children[i].pid != 0) {
            kill(children[i].pid, SIGKILL);
            waitpid(children[i].pid, NULL, 0);
        }
    }
}

static void say_what_happened(void) {
    struct sg_node node;
    OK(sg_state_open(&node, NULL, NULL));
    printf("test_stress: %llu lives, %llu killed, %llu found dead, lock repaired %llu times\n",
           (unsigned long long)lives, (unsigned long long)kills,
           (unsigned long long)node.st->header.reaped, (unsigned long long)node.st->header.repairs);
    sg_state_close(&node);
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
    say_what_happened();
    if (check_failures != 0) {
        fprintf(stderr, "test_stress: again with: test_stress %llu %llu\n",
                (unsigned long long)seconds, (unsigned long long)seed);
    }
    return finish("test_stress");
}
