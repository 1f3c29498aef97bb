/* Yield points: whom they wait for and for how long, and how programs find them. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#include "child.h"
#include "client.h"
#include "clock.h"
#include "daemon.h"
#include "futex.h"
#include "heddle/atomic.h"
#include "heddle/gate.h"
#include "heddle/yield.h"
#include "message.h"
#include "share.h"
#include "test.h"
#include "yield.h"

int cuInit(unsigned flags);
int cuCtxCreate_v2(void **context, unsigned flags, int device);
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **params, void **extra);

enum { DEVICE = 3, PEER = 70, MEMBER = 65, PPM = 1000000 };

static const uint64_t second = 1000000000U;
static const uint64_t minute = 60000000000U;

/* ---- shares ---- */

static void share_of(uint32_t ppm) {
    heddle_share_reset();
    heddle_client()->devices[DEVICE].device_ns = 0;
    heddle_verdict_page.segment.devices[DEVICE].time_share_ppm = ppm;
}

static bool behind(uint64_t now) {
    heddle_share_note(DEVICE, now);
    return heddle_share_behind(DEVICE, now);
}

TEST("a client without a share is never behind it, and nobody is when nothing is known") {
    share_of(0);
    CHECK(!behind(second));
    CHECK(!behind(11 * second));
    share_of(PPM);
    CHECK(!heddle_share_behind(DEVICE, second));
    heddle_share_note(DEVICE, second);
    CHECK(!heddle_share_behind(DEVICE, 12 * second)); /* too long ago */
}

TEST("a client is behind when it went without the device for longer than its share leaves") {
    share_of(PPM / 4);
    CHECK(!behind(100 * second));
    CHECK(!behind(100 * second + second * 15 / 2));
    CHECK(behind(100 * second + second * 15 / 2 + 1));
    heddle_client()->devices[DEVICE].device_ns = 1;
    CHECK(!behind(100 * second + second * 15 / 2 + 1));
}

TEST("a share of more than all is all, and what ran on several streams at once is no debt") {
    share_of(5 * PPM);
    CHECK(!behind(second));
    CHECK(behind(second + 1));
    heddle_client()->devices[DEVICE].device_ns = 100 * second;
    CHECK(!behind(second + 2));
    heddle_client()->devices[DEVICE].device_ns = 0; /* counts anew, as after a fork */
    CHECK(behind(second + 3));
}

enum { STEP_MS = 10, STEPS = 6000, SPAN = 10000 / STEP_MS };

TEST("what a client is to keep bounds its yield points, too, and its weight bounds only those") {
    share_of(PPM / 4);
    heddle_verdict_page.segment.devices[DEVICE].keep_ppm = PPM / 2;
    CHECK(!behind(second));
    CHECK(!behind(6 * second));
    CHECK(behind(6 * second + 1));
    CHECK(heddle_share_owed(DEVICE, 6 * second + 1));
    heddle_verdict_page.segment.devices[DEVICE].keep_ppm = PPM / 8;
    CHECK(behind(second + second * 15 / 2 + 1));
    CHECK(!heddle_share_owed(DEVICE, second + second * 15 / 2 + 1));
    heddle_verdict_page.segment.devices[DEVICE].keep_ppm = 0;
}

/* A client that always gives way while it may, and is alone on the device while it may not. */
static uint64_t least_in_ten_seconds(uint32_t ppm) {
    static uint64_t had[STEPS];
    uint64_t *served = &heddle_client()->devices[DEVICE].device_ns;
    uint64_t least = UINT64_MAX;

    share_of(ppm);
    for (int i = 0; i < STEPS; i++) {
        if (behind(second + (uint64_t)i * STEP_MS * 1000000U)) {
            *served += STEP_MS * 1000000U;
        }
        had[i] = *served;
        if (i >= SPAN && had[i] - had[i - SPAN] < least) {
            least = had[i] - had[i - SPAN];
        }
    }
    return least;
}

TEST("who gives way as long as it may keeps its share of every ten seconds, and little more") {
    static const uint32_t shares[] = {10000, 50000, 200000, 333333, 500000, 900000};

    for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
        const uint64_t due = 10 * second / PPM * shares[i];
        const uint64_t least = least_in_ten_seconds(shares[i]);

        CHECK(least + STEP_MS * 1000000U >= due); /* a step is late */
        CHECK(least <= due + second);
    }
}

/* ---- waiting ---- */

static struct test_daemon *the_daemon;
static struct heddle_client_device *the_peer;
static struct heddle_arena_segment *the_arena;

static void send_segment(enum heddle_msg_type type, void *message, size_t size, int file) {
    heddle_message_begin(message, type, (uint32_t)size);
    test_daemon_send(the_daemon, message, size, file);
    close(file);
}

/* Attached, with a context, a peer of a higher class, and an arena to sleep in. */
static void beside_a_peer(void) {
    struct heddle_msg_peer peer = {.op = HEDDLE_PEER_ADD, .slot = PEER, .peer_slot = 2};
    struct heddle_msg_arena arena = {.priority = 7, .member = MEMBER};
    struct heddle_client_segment *segment = NULL;
    void *context = NULL;
    int file = -1;

    the_daemon = test_daemon_start(path, HEDDLE_STATUS_OK);
    CHECK_EQUAL(cuInit(0), 0);
    CHECK_EQUAL(cuCtxCreate_v2(&context, 0, 0), 0);
    segment = test_segment(sizeof(*segment), &file);
    the_peer = &segment->devices[2];
    send_segment(HEDDLE_MSG_PEER, &peer, sizeof(peer), file);
    the_arena = test_segment(sizeof(*the_arena), &file);
    send_segment(HEDDLE_MSG_ARENA, &arena, sizeof(arena), file);
    test_daemon_verdict(the_daemon)->devices[0].yields[PEER / 64] = 1U << PEER % 64;
    test_daemon_verdict(the_daemon)->devices[0].max_hold_ns = minute;
    pause_us(50000); /* both messages have been read when the peer is looked at */
}

static void peer_busy(uint32_t streams) {
    heddle_store_release32(&the_peer->busy_streams, streams);
    if (streams == 0) {
        heddle_add_seq_cst32(&the_peer->doorbell, 1);
        heddle_futex_wake(&the_peer->doorbell);
    }
}

static void alone(void) {
    struct heddle_verdict_device *verdict = NULL;
    void *context = NULL;

    CHECK_EQUAL(heddle_yield_v1(minute), 0); /* before cuInit */
    CHECK_EQUAL(heddle_wanted_v1(), 0);
    beside_a_peer();
    verdict = &test_daemon_verdict(the_daemon)->devices[0];
    peer_busy(1);
    test_daemon_publish(the_daemon, 0, HEDDLE_GATE_PUBLISH);
    CHECK_EQUAL(heddle_yield_v1(minute), 0); /* it yields to nobody */
    test_daemon_publish(the_daemon, 0, HEDDLE_GATE_YIELD);
    CHECK_EQUAL(heddle_wanted_v1(), 1);
    verdict->yields[PEER / 64] = 0;
    CHECK_EQUAL(heddle_wanted_v1(), 0);
    CHECK_EQUAL(cuCtxCreate_v2(&context, 0, 0), 0);
    test_daemon_kill(the_daemon);
}

TEST("without anybody to yield to nothing is wanted and nobody waits") {
    in_child(alone);
}

static void *yield_long(void *waited) {
    *(uint64_t *)waited = heddle_yield_v1(HEDDLE_YIELD_LONG);
    return NULL;
}

static bool sleeps(void) {
    return heddle_load_acquire64(&the_arena->sleepers[1]) == 1U << MEMBER % 64;
}

static void waits(void) {
    const struct heddle_trace_record *told = NULL;
    pthread_t thread;
    uint64_t waited = 0;

    beside_a_peer();
    test_daemon_verdict(the_daemon)->process.trace = 1;
    peer_busy(1);
    test_daemon_publish(the_daemon, 0, HEDDLE_GATE_YIELD | HEDDLE_GATE_PUBLISH);
    CHECK(pthread_create(&thread, NULL, yield_long, &waited) == 0);
    CHECK(eventually_(sleeps));
    peer_busy(0);
    pthread_join(thread, NULL);
    CHECK(waited > 0);
    CHECK_EQUAL(heddle_load_acquire64(&the_arena->sleepers[1]), 0);
    CHECK_EQUAL(test_daemon_client(the_daemon)->devices[0].held_ns, waited);
    CHECK_EQUAL(test_daemon_client(the_daemon)->devices[0].holds, 0); /* no launch was held */
    CHECK_EQUAL(heddle_wanted_v1(), 0);
    told = &test_daemon_client(the_daemon)->trace[0];
    CHECK_EQUAL(test_daemon_client(the_daemon)->process.trace_head, 1);
    CHECK_EQUAL(told->kind, HEDDLE_TRACE_HOLD);
    CHECK_EQUAL(told->reason, HEDDLE_GATE_HELD_PEER);
    CHECK_EQUAL(told->flags, HEDDLE_TRACE_YIELD);
    CHECK_EQUAL(told->peer, PEER);
    CHECK_EQUAL(told->duration_ns, waited);
    test_daemon_kill(the_daemon);
}

TEST("a yield point waits while a higher class is at work, and tells it and timelines so") {
    in_child(waits);
}

static void waits_for_pauses(void) {
    pthread_t thread;
    uint64_t waited = 0;

    beside_a_peer();
    test_daemon_verdict(the_daemon)->devices[0].quiet_ns = minute;
    heddle_store_relaxed64(&the_peer->idle_since_ns, heddle_clock_now());
    test_daemon_publish(the_daemon, 0, HEDDLE_GATE_YIELD);
    CHECK_EQUAL(heddle_wanted_v1(), 1); /* it may be between two kernels */
    CHECK(pthread_create(&thread, NULL, yield_long, &waited) == 0);
    CHECK(eventually_(sleeps));
    heddle_store_relaxed64(&the_peer->idle_since_ns, 1);
    peer_busy(0);
    pthread_join(thread, NULL);
    CHECK(waited > 0);
    test_daemon_kill(the_daemon);
}

TEST("a pause of a higher class that is shorter than its quiet time is no reason to go on") {
    in_child(waits_for_pauses);
}

static void bounded(void) {
    struct heddle_verdict_device *verdict = NULL;
    uint64_t waited = 0;

    beside_a_peer();
    peer_busy(1);
    verdict = &test_daemon_verdict(the_daemon)->devices[0];
    test_daemon_publish(the_daemon, 0, HEDDLE_GATE_YIELD);
    CHECK_EQUAL(heddle_yield_v1(0), 0);
    waited = heddle_yield_v1(20000000);
    CHECK(waited >= 20000000 && waited < minute);
    verdict->max_hold_ns = 30000000;
    waited = heddle_yield_v1(HEDDLE_YIELD_LONG);
    CHECK(waited >= 30000000 && waited < minute);
    verdict->max_hold_ns = minute;
    verdict->time_share_ppm = PPM;
    CHECK(heddle_yield_v1(HEDDLE_YIELD_LONG) < minute);
    CHECK_EQUAL(heddle_wanted_v1(), 1);
    test_daemon_kill(the_daemon);
}

TEST("a wait ends after the time asked for, after the longest hold, and when the share is due") {
    in_child(bounded);
}

static void left_to_launches(void) {
    beside_a_peer();
    test_daemon_publish(the_daemon, 0, HEDDLE_GATE_CLOSED | HEDDLE_GATE_YIELD);
    CHECK_EQUAL(heddle_yield_v1(minute), 0);
    test_daemon_publish(the_daemon, 0, HEDDLE_GATE_YIELD | 1U << 31);
    CHECK_EQUAL(heddle_yield_v1(minute), 0);
    test_daemon_kill(the_daemon);
}

TEST("that the daemon closed the gate is no reason to wait at a yield point") {
    in_child(left_to_launches);
}

static void *launch_once(void *unused) {
    CHECK_EQUAL(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), 0);
    return unused;
}

static void kept(void) {
    const uint64_t *holds = NULL;
    pthread_t thread;

    beside_a_peer();
    holds = &test_daemon_client(the_daemon)->devices[0].holds;
    peer_busy(1);
    test_daemon_verdict(the_daemon)->devices[0].keep_ppm = PPM;
    test_daemon_publish(the_daemon, 0, HEDDLE_GATE_YIELD);
    CHECK(pthread_create(&thread, NULL, launch_once, NULL) == 0);
    CHECK(eventually_(sleeps)); /* without yield points nothing is kept */
    CHECK_EQUAL(heddle_yield_v1(0), 0);
    pthread_join(thread, NULL);
    CHECK_EQUAL(heddle_load_acquire64(holds), 1);
    (void)launch_once(NULL);
    CHECK_EQUAL(heddle_load_acquire64(holds), 1);
    CHECK_EQUAL(heddle_wanted_v1(), 1);
    test_daemon_kill(the_daemon);
}

TEST("a client with yield points that has had less than it is to keep passes its peers") {
    in_child(kept);
}

static void gaps(void) {
    struct heddle_verdict_device *verdict = NULL;
    const uint64_t now = (uint64_t)heddle_clock_now();

    beside_a_peer();
    verdict = &test_daemon_verdict(the_daemon)->devices[0];
    verdict->quiet_ns = minute;
    verdict->estimate_ns = second;
    heddle_store_relaxed64(&the_peer->idle_since_ns, now);
    heddle_store_relaxed64(&the_peer->next_launch_ns, now + minute);
    test_daemon_publish(the_daemon, 0, HEDDLE_GATE_YIELD | HEDDLE_GATE_FILL);
    CHECK_EQUAL(heddle_wanted_v1(), 0);
    verdict->estimate_ns = 2 * minute;
    CHECK_EQUAL(heddle_wanted_v1(), 1);
    test_daemon_kill(the_daemon);
}

TEST("a predicted gap in which a kernel fits is not wanted") {
    in_child(gaps);
}

static void side_by_side(void) {
    struct heddle_verdict_device *verdict = NULL;

    beside_a_peer();
    peer_busy(1);
    verdict = &test_daemon_verdict(the_daemon)->devices[0];
    verdict->estimate_ns = second;
    verdict->corun[PEER / 64] = 1U << PEER % 64;
    test_daemon_publish(the_daemon, 0, HEDDLE_GATE_YIELD);
    CHECK_EQUAL(heddle_wanted_v1(), 1);
    verdict->corun_ns = 1;
    CHECK_EQUAL(heddle_wanted_v1(), 0);
    test_daemon_kill(the_daemon);
}

TEST("a higher class beside which the client may run does not want the device for itself") {
    in_child(side_by_side);
}

static void orphaned(void) {
    pthread_t thread;
    uint64_t waited = 0;

    beside_a_peer();
    peer_busy(1);
    test_daemon_publish(the_daemon, 0, HEDDLE_GATE_YIELD);
    CHECK(pthread_create(&thread, NULL, yield_long, &waited) == 0);
    CHECK(eventually_(sleeps));
    test_daemon_kill(the_daemon);
    pthread_join(thread, NULL); /* the peer's segment is locked by nobody */
    CHECK(waited > 0 && waited < minute);
}

TEST("without a daemon nobody waits for a dead peer") {
    in_child(orphaned);
}

/* ---- finding ---- */

static void absent(void) {
    int final = 1;

    CHECK(heddle_yield_find("heddle_yield_v1", &final) == NULL);
    CHECK_EQUAL(final, 0); /* a driver may still come */
    CHECK_EQUAL(heddle_yield(minute), 0);
    CHECK_EQUAL(heddle_wanted(), 0);
    CHECK(dlopen(getenv("HEDDLE_REAL_LIBCUDA"), RTLD_NOW) != NULL);
    CHECK(heddle_yield_find("heddle_yield_v1", &final) == NULL);
    CHECK_EQUAL(final, 1);
    CHECK_EQUAL(heddle_yield(minute), 0);
    CHECK_EQUAL(heddle_wanted(), 0);
}

TEST("without Heddle the header's functions do nothing") {
    in_child(absent);
}

static void present(void) {
    void *library = dlopen(getenv("HEDDLE_TEST_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
    int final = 0;

    CHECK(library != NULL);
    CHECK(heddle_yield_find("heddle_yield_v1", &final) == dlsym(library, "heddle_yield_v1"));
    CHECK(heddle_yield_find("heddle_wanted_v1", &final) == dlsym(library, "heddle_wanted_v1"));
    CHECK(dlsym(library, "heddle_wanted_v1") != NULL);
    CHECK_EQUAL(heddle_yield(minute), 0); /* it is not attached */
    CHECK_EQUAL(heddle_wanted(), 0);
}

TEST("the header finds the interposer in the driver's place") {
    in_child(present);
}
