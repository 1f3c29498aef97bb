/*
 * The interposer whole, linked into the test: a fake driver behind it, a daemon of the test's own
 * beside it. Each test runs in a child process, since a process attaches once and for good.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "child.h"
#include "client.h"
#include "clock.h"
#include "connect.h"
#include "daemon.h"
#include "fake_driver.h"
#include "futex.h"
#include "gate.h"
#include "heddle/atomic.h"
#include "message.h"
#include "peer.h"
#include "test.h"
#include "window.h"

int cuInit(unsigned flags);
int cuCtxCreate_v2(void **context, unsigned flags, int device);
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **params, void **extra);
int cuStreamSynchronize(void *stream);
int cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags,
                        int *status);

static char stream[16];

static struct fake_calls *calls(void) {
    void *driver = dlopen(getenv("HEDDLE_REAL_LIBCUDA"), RTLD_NOW | RTLD_NOLOAD);

    return dlsym(driver, "fake_calls");
}

static struct fake_answers *answers(void) {
    void *driver = dlopen(getenv("HEDDLE_REAL_LIBCUDA"), RTLD_NOW | RTLD_NOLOAD);

    return dlsym(driver, "fake_answers");
}

static int launch(void) {
    return cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
}

static void open_device(void) {
    void *context = NULL;

    CHECK_EQUAL(cuInit(0), 0);
    CHECK_EQUAL(cuCtxCreate_v2(&context, 0, 0), 0);
}

/* ---- without a daemon ---- */

static void no_daemon(void) {
    open_device();
    for (int i = 0; i < 100; i++) {
        CHECK_EQUAL(launch(), 0);
    }
    CHECK_EQUAL(calls()->launches, 100);
    CHECK_EQUAL(cuStreamSynchronize(stream), 0);
    CHECK_EQUAL(heddle_client()->threads[0].launches, 100);
    answers()->launch = 719;
    CHECK_EQUAL(launch(), 719);
}

TEST("without a daemon every launch goes on and is counted, errors are the driver's") {
    in_child(no_daemon);
}

static void arguments(void) {
    open_device();
    for (int i = 0; i < 2; i++) { /* the slow path, then the fast one */
        (void)cuLaunchKernel((void *)1, 2, 3, 4, 5, 6, 7, 8, (void *)16, (void **)10, (void **)11);
        CHECK_EQUAL(calls()->last_sum, 1 + 2 + 6 + 12 + 25 + 42 + 77 + 104 + 272 + 190 + 253);
    }
}

TEST("every argument of a launch reaches the driver on both paths") {
    in_child(arguments);
}

static void no_driver(void) {
    setenv("HEDDLE_REAL_LIBCUDA", "/nonexistent/libcuda.so.1", 1);
    CHECK_EQUAL(cuInit(0), 34);
    CHECK_EQUAL(launch(), 34);
}

TEST("without a driver every call says what the toolkit's stand-in says") {
    in_child(no_driver);
}

static void itself(void) {
    setenv("HEDDLE_REAL_LIBCUDA", getenv("HEDDLE_TEST_LIBRARY"), 1);
    CHECK_EQUAL(cuInit(0), 34);
}

TEST("the interposer never takes itself for the driver") {
    in_child(itself);
}

static void unnamed(void) {
    void *function = NULL;
    int (*call)(void) = NULL;

    open_device();
    CHECK_EQUAL(cuGetProcAddress_v2("cuUnexported", &function, 12000, 0, NULL), 0);
    memcpy(&call, &function, sizeof(call));
    CHECK_EQUAL(call(), 77);
    CHECK_EQUAL(heddle_client()->process.unnamed_addresses, 1);
    CHECK_EQUAL(cuGetProcAddress_v2("cuInit", &function, 12000, 0, NULL), 0);
    CHECK(function == (void *)(uintptr_t)&cuInit);
    CHECK_EQUAL(heddle_client()->process.unnamed_addresses, 1);
    CHECK_EQUAL(cuGetProcAddress_v2("cuNothing", &function, 12000, 0, NULL), 500);
}

TEST("an address without a name is handed on and counted") {
    in_child(unnamed);
}

/* ---- with one ---- */

static void attach(void) {
    struct test_daemon *daemon = NULL;

    setenv("HEDDLE_PRIORITY", "low", 1);
    setenv("HEDDLE_WEIGHT", "250", 1);
    setenv("HEDDLE_NAME", "trainer", 1);
    setenv("HEDDLE_GANG", "job:2", 1);
    daemon = test_daemon_start(path, HEDDLE_STATUS_OK);
    open_device();
    CHECK(heddle_connect_alive());
    CHECK_EQUAL(test_daemon_hello(daemon).priority_hint, 7);
    CHECK_EQUAL(test_daemon_hello(daemon).weight_hint, 250);
    CHECK(strcmp(test_daemon_hello(daemon).name, "trainer") == 0);
    CHECK(strcmp(test_daemon_hello(daemon).gang, "job") == 0);
    CHECK_EQUAL(test_daemon_hello(daemon).gang_size, 2);
    CHECK_EQUAL(test_daemon_client(daemon)->header.magic, HEDDLE_MAGIC_CLIENT);
    CHECK_EQUAL(test_daemon_client(daemon)->process.pid, getpid());
    CHECK_EQUAL(test_daemon_device(daemon, 0).slot, 0);
    CHECK_EQUAL(test_daemon_device(daemon, 0).uuid[3], 0x40);
    CHECK_EQUAL(launch(), 0);
    CHECK_EQUAL(launch(), 0);
    CHECK_EQUAL(cuStreamSynchronize(stream), 0);
    CHECK_EQUAL(test_daemon_client(daemon)->threads[0].launches, 2);
    test_daemon_kill(daemon);
}

TEST("a client attaches at cuInit with its hints, and its device is told") {
    in_child(attach);
}

static bool off(void) {
    return heddle_load_acquire32(&heddle_connect_state) == HEDDLE_OFF;
}

static void refused(void) {
    struct test_daemon *daemon = test_daemon_start(path, HEDDLE_STATUS_REFUSED);

    CHECK_EQUAL(cuInit(0), 0);
    CHECK(eventually_(off));
    CHECK_EQUAL(launch(), 0);
    test_daemon_kill(daemon);
}

TEST("a refused client goes on without the daemon and does not come back") {
    in_child(refused);
}

static bool held(void) {
    return heddle_load_acquire64(&heddle_client()->devices[0].held_since_ns) != 0;
}

static void *launch_once(void *unused) {
    CHECK_EQUAL(launch(), 0);
    return unused;
}

static struct test_daemon *attached_daemon(void) {
    struct test_daemon *daemon = test_daemon_start(path, HEDDLE_STATUS_OK);

    open_device();
    CHECK_EQUAL(launch(), 0);
    return daemon;
}

static void closed(void) {
    struct test_daemon *daemon = attached_daemon();
    pthread_t thread;

    test_daemon_publish(daemon, 0, HEDDLE_GATE_CLOSED);
    CHECK(pthread_create(&thread, NULL, launch_once, NULL) == 0);
    CHECK(eventually_(held));
    CHECK_EQUAL(calls()->launches, 1);
    test_daemon_publish(daemon, 0, 0);
    pthread_join(thread, NULL);
    CHECK_EQUAL(calls()->launches, 2);
    CHECK_EQUAL(test_daemon_client(daemon)->devices[0].holds, 1);
    CHECK(test_daemon_client(daemon)->devices[0].held_ns > 0);
    CHECK(!held());
    test_daemon_kill(daemon);
}

TEST("a closed gate holds a launch until it opens") {
    in_child(closed);
}

static void fail_open(void) {
    struct test_daemon *daemon = attached_daemon();
    pthread_t thread;

    test_daemon_publish(daemon, 0, HEDDLE_GATE_CLOSED);
    CHECK(pthread_create(&thread, NULL, launch_once, NULL) == 0);
    CHECK(eventually_(held));
    test_daemon_kill(daemon);
    pthread_join(thread, NULL);
    CHECK_EQUAL(calls()->launches, 2);
    CHECK_EQUAL(launch(), 0);
}

TEST("when the daemon dies a closed gate opens") {
    in_child(fail_open);
}

static bool dead(void) {
    return heddle_load_acquire32(&heddle_connect_state) == HEDDLE_DETACHED;
}

static bool alive(void) {
    return heddle_connect_alive();
}

static void fail_closed(void) {
    struct test_daemon *daemon = attached_daemon();
    pthread_t thread;

    test_daemon_verdict(daemon)->process.fail_mode = HEDDLE_FAIL_CLOSED;
    test_daemon_publish(daemon, 0, HEDDLE_GATE_CLOSED);
    CHECK(pthread_create(&thread, NULL, launch_once, NULL) == 0);
    CHECK(eventually_(held));
    test_daemon_kill(daemon);
    CHECK(eventually_(dead));
    pause_us(200000); /* longer than any single sleep at a closed gate */
    CHECK_EQUAL(calls()->launches, 1);
    daemon = test_daemon_start(path, HEDDLE_STATUS_OK);
    CHECK(eventually_(alive));
    pthread_join(thread, NULL);
    CHECK_EQUAL(calls()->launches, 2);
    CHECK_EQUAL(test_daemon_hello(daemon).token[0], 0x5a);
    CHECK_EQUAL(test_daemon_device(daemon, 0).slot, 0);
    CHECK_EQUAL(test_daemon_client(daemon)->process.attach_count, 2);
    test_daemon_kill(daemon);
}

TEST("with fail-closed the gate stays closed until a new daemon opens it") {
    in_child(fail_closed);
}

static bool unmeasured(void) {
    return (heddle_load_acquire32(&heddle_verdict()->process.gate) & HEDDLE_GATE_MEASURE) == 0;
}

static bool measured(void) {
    return !unmeasured();
}

static void unread(void) {
    const uint32_t rest = HEDDLE_GATE_PUBLISH | HEDDLE_GATE_WINDOW;
    struct test_daemon *daemon = attached_daemon();

    test_daemon_verdict(daemon)->process.measure_every = 1;
    test_daemon_verdict(daemon)->process.trace = 1;
    test_daemon_verdict(daemon)->devices[0].window_ns = 5;
    test_daemon_publish(daemon, 0, rest | HEDDLE_GATE_MEASURE);
    CHECK_EQUAL(launch(), 0);
    test_daemon_kill(daemon);
    CHECK(eventually_(unmeasured));
    CHECK_EQUAL(heddle_verdict()->process.measure_every, 0);
    CHECK_EQUAL(heddle_verdict()->process.trace, 0);
    CHECK_EQUAL(heddle_verdict()->process.gate, rest);
    CHECK_EQUAL(heddle_verdict()->devices[0].gate, rest);
    CHECK_EQUAL(heddle_verdict()->devices[0].window_ns, 5);
    CHECK_EQUAL(launch(), 0);

    daemon = test_daemon_start(path, HEDDLE_STATUS_OK);
    CHECK(eventually_(alive));
    test_daemon_publish(daemon, 0, HEDDLE_GATE_MEASURE);
    CHECK(eventually_(measured));
    test_daemon_kill(daemon);
}

TEST("launches are not measured for a daemon that is gone, and are again for the next") {
    in_child(unread);
}

static struct heddle_client_segment *add_peer(struct test_daemon *daemon) {
    int file = -1;
    struct heddle_client_segment *peer = test_segment(sizeof(*peer), &file);
    struct heddle_msg_peer message = {.op = HEDDLE_PEER_ADD, .slot = 70, .peer_slot = 2};

    heddle_message_begin(&message.header, HEDDLE_MSG_PEER, sizeof(message));
    test_daemon_send(daemon, &message, sizeof(message), file);
    test_daemon_verdict(daemon)->devices[0].yields[1] = 1U << 6;
    test_daemon_verdict(daemon)->devices[0].max_hold_ns = 60000000000U;
    close(file);
    return peer;
}

static struct heddle_arena_segment *add_arena(struct test_daemon *daemon) {
    int file = -1;
    struct heddle_arena_segment *arena = test_segment(sizeof(*arena), &file);
    struct heddle_msg_arena message = {.priority = 7, .member = 65};

    heddle_message_begin(&message.header, HEDDLE_MSG_ARENA, sizeof(message));
    test_daemon_send(daemon, &message, sizeof(message), file);
    close(file);
    return arena;
}

static struct heddle_arena_segment *the_arena;

static bool sleeps(void) {
    return heddle_load_acquire64(&the_arena->sleepers[1]) == 2;
}

static bool awake(void) {
    return heddle_load_acquire64(&the_arena->sleepers[1]) == 0;
}

static void yield(void) {
    struct test_daemon *daemon = attached_daemon();
    struct heddle_client_segment *peer = add_peer(daemon);
    pthread_t thread;

    the_arena = add_arena(daemon);
    heddle_store_release32(&peer->devices[2].busy_streams, 1);
    test_daemon_publish(daemon, 0, HEDDLE_GATE_YIELD);
    pause_us(50000); /* both messages have been read when the peer is looked at */
    CHECK(pthread_create(&thread, NULL, launch_once, NULL) == 0);
    CHECK(eventually_(sleeps));
    CHECK_EQUAL(calls()->launches, 1);
    heddle_store_release32(&peer->devices[2].busy_streams, 0);
    heddle_add_seq_cst32(&peer->devices[2].doorbell, 1);
    heddle_futex_wake(&peer->devices[2].doorbell);
    pthread_join(thread, NULL);
    CHECK_EQUAL(calls()->launches, 2);
    CHECK(awake());
    test_daemon_kill(daemon);
}

TEST("a launch waits for a busy peer, says so in its arena, and goes on when the peer is idle") {
    in_child(yield);
}

static void removed(void) {
    struct test_daemon *daemon = attached_daemon();
    struct heddle_client_segment *peer = add_peer(daemon);
    struct heddle_msg_peer message = {.op = HEDDLE_PEER_REMOVE, .slot = 70};
    pthread_t thread;

    heddle_store_release32(&peer->devices[2].busy_streams, 1);
    pause_us(50000);
    test_daemon_publish(daemon, 0, HEDDLE_GATE_YIELD);
    CHECK(pthread_create(&thread, NULL, launch_once, NULL) == 0);
    CHECK(eventually_(held));
    heddle_message_begin(&message.header, HEDDLE_MSG_PEER, sizeof(message));
    test_daemon_send(daemon, &message, sizeof(message), -1);
    pthread_join(thread, NULL);
    CHECK_EQUAL(calls()->launches, 2);
    test_daemon_kill(daemon);
}

TEST("a peer that is removed holds nobody") {
    in_child(removed);
}

/* The peer's segment is locked by nobody, as after its process died. */
static void orphaned(void) {
    struct test_daemon *daemon = attached_daemon();
    struct heddle_client_segment *peer = add_peer(daemon);
    pthread_t thread;

    heddle_store_release32(&peer->devices[2].busy_streams, 1);
    pause_us(50000);
    test_daemon_publish(daemon, 0, HEDDLE_GATE_YIELD);
    CHECK(pthread_create(&thread, NULL, launch_once, NULL) == 0);
    CHECK(eventually_(held));
    test_daemon_kill(daemon);
    pthread_join(thread, NULL);
    CHECK_EQUAL(calls()->launches, 2);
}

TEST("without a daemon a dead peer is found dead by its lock") {
    in_child(orphaned);
}

static void overrun(void) {
    struct test_daemon *daemon = attached_daemon();
    struct heddle_client_segment *peer = add_peer(daemon);

    test_daemon_verdict(daemon)->devices[0].max_hold_ns = 20000000;
    heddle_store_release32(&peer->devices[2].busy_streams, 1);
    pause_us(50000);
    test_daemon_publish(daemon, 0, HEDDLE_GATE_YIELD);
    CHECK_EQUAL(launch(), 0);
    CHECK_EQUAL(test_daemon_client(daemon)->devices[0].overruns, 1);
    test_daemon_kill(daemon);
}

TEST("a peer that never falls idle delays a launch and cannot stop it") {
    in_child(overrun);
}

/* The two are told one after the other. */
static bool wants(void) {
    return heddle_load_acquire64(&heddle_client()->devices[0].want_ns) == 400000 &&
           heddle_load_acquire64(&the_arena->heads[65]) == 400000;
}

static void wanting(void) {
    struct test_daemon *daemon = attached_daemon();
    struct heddle_client_segment *peer = add_peer(daemon);
    pthread_t thread;

    the_arena = add_arena(daemon);
    test_daemon_verdict(daemon)->devices[0].estimate_ns = 400000;
    heddle_store_release32(&peer->devices[2].busy_streams, 1);
    pause_us(50000);
    test_daemon_publish(daemon, 0, HEDDLE_GATE_YIELD);
    CHECK(pthread_create(&thread, NULL, launch_once, NULL) == 0);
    CHECK(eventually_(wants));
    heddle_store_release32(&peer->devices[2].busy_streams, 0);
    heddle_add_seq_cst32(&peer->devices[2].doorbell, 1);
    heddle_futex_wake(&peer->devices[2].doorbell);
    pthread_join(thread, NULL);
    CHECK_EQUAL(heddle_client()->devices[0].want_ns, 0);
    CHECK_EQUAL(the_arena->heads[65], 0);
    test_daemon_kill(daemon);
}

TEST("a launch that waits for a peer says for how long it would run, until it goes on") {
    in_child(wanting);
}

/* A peer that has just fallen idle and launches again in a minute: a gap, for whoever has the token. */
static struct test_daemon *daemon_with_gap(void) {
    struct test_daemon *daemon = attached_daemon();
    struct heddle_client_segment *peer = add_peer(daemon);
    struct heddle_verdict_device *verdict = &test_daemon_verdict(daemon)->devices[0];
    const uint64_t now = heddle_clock_now();

    the_arena = add_arena(daemon);
    verdict->estimate_ns = 400000;
    verdict->quiet_ns = 60000000000U;
    verdict->token_ns = 20000000000U;
    verdict->window_ns = 1000000;
    heddle_store_relaxed64(&peer->devices[2].idle_since_ns, now);
    heddle_store_release64(&peer->devices[2].next_launch_ns, now + 60000000000U);
    pause_us(50000);
    return daemon;
}

static void filling(void) {
    struct test_daemon *daemon = daemon_with_gap();

    answers()->query = 600; /* nothing is complete */
    test_daemon_publish(daemon, 0, HEDDLE_GATE_YIELD | HEDDLE_GATE_FILL | HEDDLE_GATE_WINDOW);
    CHECK_EQUAL(launch(), 0);
    CHECK_EQUAL(calls()->launches, 2);
    CHECK_EQUAL(the_arena->token_holder, 66);
    CHECK(the_arena->token_expiry_ns != 0);
    CHECK_EQUAL(heddle_client()->devices[0].holds, 0); /* it waited for nobody */
    CHECK_EQUAL(the_arena->heads[65], 0);
    __atomic_store_n(&answers()->query, 0, __ATOMIC_RELAXED);
    (void)heddle_window_outstanding(0);
    CHECK_EQUAL(the_arena->token_holder, 0);
    CHECK_EQUAL(the_arena->token_expiry_ns, 0);
    test_daemon_kill(daemon);
}

TEST("a launch fills a gap with the token, which is free again when it is complete") {
    in_child(filling);
}

static void outbid(void) {
    struct test_daemon *daemon = daemon_with_gap();

    the_arena->heads[3] = 500000;
    test_daemon_publish(daemon, 0, HEDDLE_GATE_YIELD | HEDDLE_GATE_FILL);
    CHECK_EQUAL(launch(), 0);
    CHECK_EQUAL(calls()->launches, 2);
    CHECK_EQUAL(heddle_client()->devices[0].holds, 1); /* it left the other the time to go first */
    CHECK_EQUAL(the_arena->token_expiry_ns, 0);        /* given back, as no event will tell */
    test_daemon_kill(daemon);
}

TEST("a launch fills a gap although a better one waits that does not take it") {
    in_child(outbid);
}

static void queued(void) {
    struct test_daemon *daemon = daemon_with_gap();
    pthread_t thread;

    the_arena->token_holder = 4; /* a member that will die with it */
    the_arena->token_expiry_ns = heddle_clock_now() + 200000000;
    test_daemon_publish(daemon, 0, HEDDLE_GATE_YIELD | HEDDLE_GATE_FILL);
    CHECK(pthread_create(&thread, NULL, launch_once, NULL) == 0);
    CHECK(eventually_(wants));
    CHECK_EQUAL(calls()->launches, 1);
    pthread_join(thread, NULL);
    CHECK_EQUAL(calls()->launches, 2);
    CHECK(heddle_client()->devices[0].held_ns < 30000000000U); /* not until the peer was quiet */
    CHECK_EQUAL(heddle_client()->devices[0].overruns, 0);
    test_daemon_kill(daemon);
}

TEST("a launch that waits for the token takes it when its holder is dead and its time is over") {
    in_child(queued);
}

static struct heddle_client_segment *the_peer;

static void *ring_on(void *unused) {
    while (heddle_load_relaxed32(&the_peer->devices[2].busy_streams) != 0) {
        heddle_add_seq_cst32(&the_peer->devices[2].doorbell, 1);
        /* So that it ends a sleep also where the two share a processor. */
        heddle_futex_wake(&the_peer->devices[2].doorbell);
    }
    return unused;
}

static bool paused(void) {
    return heddle_peer_pauses() > 0;
}

static void restless(void) {
    struct test_daemon *daemon = attached_daemon();
    pthread_t ringer;
    pthread_t launcher;

    the_peer = add_peer(daemon);
    test_daemon_verdict(daemon)->devices[0].max_hold_ns = 60000000000U;
    heddle_store_release32(&the_peer->devices[2].busy_streams, 1);
    pause_us(50000);
    test_daemon_publish(daemon, 0, HEDDLE_GATE_YIELD);
    CHECK(pthread_create(&ringer, NULL, ring_on, NULL) == 0);
    CHECK(pthread_create(&launcher, NULL, launch_once, NULL) == 0);
    CHECK(eventually_(paused));
    heddle_store_release32(&the_peer->devices[2].busy_streams, 0);
    pthread_join(ringer, NULL);
    pthread_join(launcher, NULL);
    test_daemon_kill(daemon);
}

TEST("a peer that rings without end makes nobody spin") {
    in_child(restless);
}

/* More sleepers than one ring wakes, none of which gives up by itself in time. */
enum { CROWD = 40 };

static uint32_t crowd_bell;
static uint32_t crowd_out;

static void *crowd_member(void *unused) {
    while (heddle_futex_wait(&crowd_bell, 0, 60000000000U) != HEDDLE_FUTEX_WOKEN) {
    }
    heddle_add_seq_cst32(&crowd_out, 1);
    return unused;
}

static bool some_out(void) {
    return heddle_load_acquire32(&crowd_out) != 0;
}

TEST("one ring wakes a few of a crowd, so that a crowd cannot delay who rings") {
    pthread_t threads[CROWD];

    for (int i = 0; i < CROWD; i++) {
        CHECK(pthread_create(&threads[i], NULL, crowd_member, NULL) == 0);
    }
    pause_us(100000);
    heddle_futex_wake_few(&crowd_bell);
    CHECK(eventually_(some_out));
    pause_us(100000);
    CHECK(heddle_load_acquire32(&crowd_out) < CROWD);
    for (int i = 0; i < 100 && heddle_load_acquire32(&crowd_out) < CROWD; i++) {
        heddle_futex_wake_few(&crowd_bell);
        pause_us(20000);
    }
    for (int i = 0; i < CROWD; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK_EQUAL(crowd_out, CROWD);
}

static void publish(void) {
    struct test_daemon *daemon = attached_daemon();
    const struct heddle_client_segment *client = test_daemon_client(daemon);

    test_daemon_publish(daemon, 0, HEDDLE_GATE_PUBLISH);
    CHECK_EQUAL(launch(), 0);
    CHECK_EQUAL(launch(), 0);
    CHECK_EQUAL(client->devices[0].busy_streams, 1);
    CHECK_EQUAL(cuStreamSynchronize(stream), 0);
    CHECK_EQUAL(client->devices[0].busy_streams, 0);
    CHECK_EQUAL(client->devices[0].doorbell, 1);
    CHECK(client->devices[0].busy_ns > 0);
    CHECK_EQUAL(calls()->events_recorded, 0);
    test_daemon_kill(daemon);
}

TEST("a client that others watch shows when it is busy, at the cost of no event") {
    in_child(publish);
}

static bool paced(void) {
    return heddle_load_acquire64(&heddle_client()->devices[0].paced_ns) != 0;
}

static void window(void) {
    struct test_daemon *daemon = attached_daemon();
    struct heddle_verdict_segment *verdict = test_daemon_verdict(daemon);
    pthread_t thread;

    verdict->devices[0].window_ns = 250000;
    verdict->devices[0].estimate_ns = 100000;
    verdict->devices[0].max_hold_ns = 60000000000U;
    test_daemon_publish(daemon, 0, HEDDLE_GATE_WINDOW);
    answers()->query = 600; /* nothing is ever complete */
    CHECK_EQUAL(launch(), 0);
    CHECK_EQUAL(launch(), 0);
    CHECK_EQUAL(calls()->events_recorded, 2);
    CHECK(pthread_create(&thread, NULL, launch_once, NULL) == 0);
    CHECK(eventually_(paced));
    CHECK(!held());
    CHECK_EQUAL(calls()->launches, 3);
    __atomic_store_n(&answers()->query, 0, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    CHECK_EQUAL(calls()->launches, 4);
    test_daemon_kill(daemon);
}

TEST("a window bounds the work that is outstanding") {
    in_child(window);
}

/* The client's end of the connection: the daemon's, in the same process, has a peer without name. */
static int connection(void) {
    for (int i = 3; i < 1024; i++) {
        struct sockaddr_un peer = {0};
        socklen_t size = sizeof(peer);

        if (getpeername(i, (struct sockaddr *)&peer, &size) == 0 && peer.sun_family == AF_UNIX &&
            strcmp(peer.sun_path, path) == 0) {
            return i;
        }
    }
    return -1;
}

/* A program closes what it does not know, and gets the number for a socket of its own. */
static void swept(void) {
    struct test_daemon *daemon = attached_daemon();
    const int reused = connection();
    int pair[2] = {-1, -1};
    char byte = 0;

    CHECK(reused >= 0);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0);
    CHECK(dup2(pair[1], reused) == reused);
    CHECK(write(pair[0], "x", 1) == 1);
    test_daemon_kill(daemon);
    CHECK(eventually_(dead));
    pause_us(50000);
    CHECK(read(reused, &byte, 1) == 1 && byte == 'x');
    CHECK(read(pair[0], &byte, 1) < 0);
    CHECK_EQUAL(launch(), 0);
}

TEST("a connection whose number was reused is left to the program") {
    in_child(swept);
}

static void evicted(void) {
    struct test_daemon *daemon = attached_daemon();
    struct heddle_msg_evict message;

    memset(&message, 'x', sizeof(message));
    heddle_message_begin(&message.header, HEDDLE_MSG_EVICT, sizeof(message));
    test_daemon_send(daemon, &message, sizeof(message), -1);
    CHECK(eventually_(off));
    CHECK_EQUAL(launch(), 0);
    test_daemon_kill(daemon);
}

TEST("an evicted client goes on alone and does not come back") {
    in_child(evicted);
}

static void strange(void) {
    struct test_daemon *daemon = attached_daemon();
    struct heddle_msg_peer message = {.op = HEDDLE_PEER_ADD, .slot = 9999};
    int file = -1;
    void *segment = test_segment(64, &file);

    heddle_message_begin(&message.header, (enum heddle_msg_type)77, sizeof(message));
    test_daemon_send(daemon, &message, sizeof(message), file);
    message.header.type = HEDDLE_MSG_PEER;
    test_daemon_send(daemon, &message, sizeof(message), file); /* no such slot */
    message.slot = 1;
    test_daemon_send(daemon, &message, sizeof(message), file); /* too small a segment */
    test_daemon_send(daemon, &message, sizeof(message), -1);   /* no segment at all */
    test_daemon_publish(daemon, 0, HEDDLE_GATE_CLOSED);
    test_daemon_publish(daemon, 0, 0);
    CHECK_EQUAL(launch(), 0);
    CHECK(heddle_connect_alive());
    munmap(segment, 64);
    close(file);
    test_daemon_kill(daemon);
}

TEST("messages of an unknown type or with nonsense in them are passed over") {
    in_child(strange);
}

static void forked(void) {
    struct test_daemon *daemon = attached_daemon();
    const struct heddle_client_segment *client = test_daemon_client(daemon);
    const uint64_t before = client->threads[0].launches;
    int status = 0;
    pid_t child = 0;

    test_daemon_publish(daemon, 0, HEDDLE_GATE_CLOSED);
    child = fork();
    if (child == 0) {
        /* The parent's verdict does not hold the child, and its counters are not the child's. */
        const bool fresh = heddle_load_acquire32(&heddle_connect_state) == HEDDLE_UNINIT &&
                           heddle_load_acquire32(&heddle_verdict()->process.gate) == 0 &&
                           heddle_client()->threads[0].launches == 0 &&
                           heddle_client_descriptor() == -1;

        _exit(fresh ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK_EQUAL(client->threads[0].launches, before);
    CHECK(heddle_connect_alive());
    test_daemon_kill(daemon);
}

TEST("the child of a fork starts afresh and leaves its parent's segment alone") {
    in_child(forked);
}
