/*
 * Every launch is counted once: by the trampoline of a thread that has a counter, else by the slow
 * path. The interposer is linked into the test, with a fake driver behind it.
 */
#include <pthread.h>
#include <stdint.h>

#include "child.h"
#include "client.h"
#include "connect.h"
#include "daemon.h"
#include "heddle/atomic.h"
#include "thread.h"

int cuInit(unsigned flags);
int cuCtxCreate_v2(void **context, unsigned flags, int device);
int cuStreamSynchronize(void *stream);
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **params, void **extra);

enum {
    WAVES = 12,
    WAVE = 8,
    CROWD = HEDDLE_THREADS_MAX + 16, /* more threads than counters */
    EACH = 5000,                     /* more than are counted before they are told in any case */
};

static char stream[16];
static pthread_barrier_t all_there;

static void launch(unsigned times) {
    for (unsigned i = 0; i < times; i++) {
        if (cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL) != 0) {
            __atomic_add_fetch(&test_failures, 1, __ATOMIC_RELAXED);
        }
    }
}

static void open_device(void) {
    void *context = NULL;

    CHECK_EQUAL(cuInit(0), 0);
    CHECK_EQUAL(cuCtxCreate_v2(&context, 0, 0), 0);
}

/* As the daemon reads it, once the caller has waited for its launches. */
static uint64_t counted(const struct heddle_client_segment *client) {
    uint64_t sum = 0;

    CHECK_EQUAL(cuStreamSynchronize(stream), 0);
    for (int i = 0; i < HEDDLE_THREADS_MAX; i++) {
        sum += heddle_load_relaxed64(&client->threads[i].launches);
    }
    return sum;
}

static void *come_and_go(void *unused) {
    launch(EACH);
    return unused;
}

static void *stay(void *unused) {
    launch(EACH);
    pthread_barrier_wait(&all_there); /* so that all counters are taken at once */
    launch(EACH);
    return unused;
}

static void run(pthread_t *threads, int count, void *(*body)(void *)) {
    for (int i = 0; i < count; i++) {
        CHECK(pthread_create(&threads[i], NULL, body, NULL) == 0);
    }
}

static void join(const pthread_t *threads, int count) {
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
    }
}

static void coming_and_going(void) {
    pthread_t threads[WAVE];

    open_device();
    for (int i = 0; i < WAVES; i++) {
        run(threads, WAVE, come_and_go);
        join(threads, WAVE);
    }
    CHECK_EQUAL(counted(heddle_client()), WAVES * WAVE * EACH);
    for (int i = WAVE; i < HEDDLE_THREADS_MAX; i++) { /* who comes takes over from who went */
        CHECK_EQUAL(heddle_client()->threads[i].launches, 0);
    }
}

TEST("threads that come and go leave their counts behind and their counters to the next") {
    in_child(coming_and_going);
}

static void crowded(void) {
    pthread_t threads[CROWD];

    open_device();
    CHECK(pthread_barrier_init(&all_there, NULL, CROWD) == 0);
    run(threads, CROWD, stay);
    join(threads, CROWD);
    CHECK_EQUAL(counted(heddle_client()), 2 * CROWD * EACH);
    CHECK(heddle_client()->threads[HEDDLE_THREADS_MAX - 1].launches >= 16 * 2 * EACH);
}

TEST("more threads than there are counters share the last one and lose no launch") {
    in_child(crowded);
}

/* A fifth thread turns the gate word, so that launches change their path at any point. */
static void changing(void) {
    struct test_daemon *daemon = test_daemon_start(path, HEDDLE_STATUS_OK);
    pthread_t threads[4];

    open_device();
    run(threads, 4, come_and_go);
    for (uint32_t i = 0; i < 200; i++) {
        test_daemon_publish(daemon, 0, i % 2 == 0 ? HEDDLE_GATE_PUBLISH : 0);
        pause_us(20);
    }
    join(threads, 4);
    CHECK_EQUAL(counted(test_daemon_client(daemon)), 4 * EACH);
    test_daemon_publish(daemon, 0, HEDDLE_GATE_PUBLISH);
    launch(10);
    test_daemon_publish(daemon, 0, 0);
    launch(10);
    CHECK_EQUAL(counted(test_daemon_client(daemon)), 4 * EACH + 20);
    CHECK_EQUAL(cuStreamSynchronize(stream), 0);
    test_daemon_kill(daemon);
}

TEST("a launch is counted once, whatever the gate word says at which moment") {
    in_child(changing);
}

static bool dead(void) {
    return heddle_load_acquire32(&heddle_connect_state) == HEDDLE_DETACHED;
}

static bool alive(void) {
    return heddle_connect_alive();
}

static void again(void) {
    struct test_daemon *daemon = test_daemon_start(path, HEDDLE_STATUS_OK);

    open_device();
    launch(10);
    CHECK_EQUAL(counted(test_daemon_client(daemon)), 10);
    test_daemon_kill(daemon);
    CHECK(eventually_(dead));
    launch(10);
    daemon = test_daemon_start(path, HEDDLE_STATUS_OK);
    CHECK(eventually_(alive));
    CHECK_EQUAL(counted(test_daemon_client(daemon)), 20);
    launch(10);
    CHECK_EQUAL(counted(test_daemon_client(daemon)), 30);
    test_daemon_kill(daemon);
}

TEST("a new daemon reads what was counted before and while there was none") {
    in_child(again);
}

static void in_child_of_fork(void) {
    CHECK_EQUAL(counted(heddle_client()), 0);
#if !defined(__SANITIZE_THREAD__) && !defined(__aarch64__) /* no new threads here in TSan, qemu */
    pthread_t threads[WAVE];

    launch(10);
    CHECK_EQUAL(counted(heddle_client()), 10);
    run(threads, WAVE, come_and_go);
    join(threads, WAVE);
    CHECK_EQUAL(counted(heddle_client()), 10 + WAVE * EACH);
#endif
}

static void forked(void) {
    struct test_daemon *daemon = test_daemon_start(path, HEDDLE_STATUS_OK);
    int status = 0;
    pid_t child = 0;

    open_device();
    launch(30);
    test_daemon_kill(daemon);
    CHECK(eventually_(dead));
    child = fork();
    if (child == 0) {
        test_failures = 0;
        in_child_of_fork();
        _exit(test_failures != 0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK_EQUAL(counted(heddle_client()), 30);
    launch(10);
    CHECK_EQUAL(counted(heddle_client()), 40);
}

TEST("after a fork parent and child count for themselves") {
    in_child(forked);
}

static void nested(void) {
    struct test_daemon *daemon = test_daemon_start(path, HEDDLE_STATUS_OK);

    open_device();
    launch(10);
    test_daemon_publish(daemon, 0, HEDDLE_GATE_PUBLISH);
    heddle_thread.depth++;
    launch(10);
    heddle_thread.depth--;
    launch(10);
    CHECK_EQUAL(counted(test_daemon_client(daemon)), 20);
    CHECK_EQUAL(cuStreamSynchronize(stream), 0);
    test_daemon_kill(daemon);
}

TEST("a launch that comes out of another is not counted again") {
    in_child(nested);
}
