/* A timeline: what is told of launches, waits and idle times, and that nothing is without one. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "child.h"
#include "client.h"
#include "daemon.h"
#include "fake_driver.h"
#include "heddle/gate.h"
#include "heddle/profile.h"
#include "tell.h"
#include "trace.h"

int cuInit(unsigned flags);
int cuCtxCreate_v2(void **context, unsigned flags, int device);
int cuGraphLaunch(void *graph, void *stream);
int cuStreamSynchronize(void *stream);
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **params, void **extra);

enum { TIMELINE = 7 };

static char stream[16];
static char function[16];

static struct fake_answers *answers(void) {
    return dlsym(dlopen(getenv("HEDDLE_REAL_LIBCUDA"), RTLD_NOW | RTLD_NOLOAD), "fake_answers");
}

static void launch(unsigned grid) {
    CHECK_EQUAL(cuLaunchKernel(function, grid, 2, 3, 64, 2, 1, 512, stream, NULL, NULL), 0);
}

static uint64_t key_of(unsigned grid) {
    const uint32_t grids[3] = {grid, 2, 3};
    const uint32_t blocks[3] = {64, 2, 1};

    return heddle_profile_key(heddle_profile_name("saxpy", 5), grids, blocks, 512);
}

static void know(struct test_daemon *daemon, uint64_t key, uint64_t estimate, uint64_t gap) {
    struct heddle_profile_entry *entry =
        &test_daemon_verdict(daemon)->profile[key >> HEDDLE_PROFILE_SHIFT];

    entry->estimate_ns = estimate;
    entry->gap_ns = gap;
    heddle_store_release64(&entry->key, key);
}

static void ask(struct test_daemon *daemon, uint32_t timeline) {
    heddle_store_relaxed32(&test_daemon_verdict(daemon)->process.trace, timeline);
}

static struct test_daemon *start(uint32_t timeline, uint32_t every, uint32_t gate) {
    struct test_daemon *daemon = test_daemon_start(path, HEDDLE_STATUS_OK);
    void *context = NULL;

    CHECK_EQUAL(cuInit(0), 0);
    CHECK_EQUAL(cuCtxCreate_v2(&context, 0, 0), 0);
    launch(1);
    answers()->name = "saxpy";
    answers()->elapsed_ms = 0.25F;
    answers()->busy = 600;
    test_daemon_verdict(daemon)->process.measure_every = every;
    ask(daemon, timeline);
    test_daemon_publish(daemon, 0, gate);
    return daemon;
}

static void launches(void) {
    struct test_daemon *daemon = start(TIMELINE, 0, HEDDLE_GATE_MEASURE);
    const struct heddle_client_segment *client = test_daemon_client(daemon);
    const struct heddle_trace_record *trace = client->trace;

    know(daemon, key_of(8), 44000, 0);
    launch(7);
    launch(8);
    launch(7);
    CHECK_EQUAL(cuGraphLaunch(function, stream), 0);
    CHECK_EQUAL(client->process.trace_head, 4);
    CHECK_EQUAL(trace[0].sequence, 1);
    CHECK_EQUAL(trace[0].kind, HEDDLE_TRACE_LAUNCH);
    CHECK_EQUAL(trace[0].kernel, key_of(7));
    CHECK_EQUAL(trace[0].guess_ns, 0);
    CHECK_EQUAL(trace[0].flags, 0);
    CHECK_EQUAL(trace[0].device_slot, 0);
    CHECK(trace[0].time_ns != 0 && trace[0].duration_ns < 1000000000);
    CHECK(trace[0].stream != UINT32_MAX);
    CHECK_EQUAL(trace[1].kernel, key_of(8));
    CHECK_EQUAL(trace[1].guess_ns, 44000);
    CHECK_EQUAL(trace[1].stream, trace[0].stream);
    CHECK(trace[1].time_ns >= trace[0].time_ns + trace[0].duration_ns);
    CHECK_EQUAL(trace[3].flags, HEDDLE_TRACE_GRAPH);
    CHECK_EQUAL(client->process.samples_head, 0);
    CHECK_EQUAL(client->process.kernels_head, 3); /* one record for each kernel */
    ask(daemon, TIMELINE + 1);
    launch(8);
    CHECK_EQUAL(client->process.kernels_head, 4); /* and again in the next timeline */
    answers()->launch = 1;
    CHECK_EQUAL(cuLaunchKernel(function, 7, 2, 3, 64, 2, 1, 512, stream, NULL, NULL), 1);
    CHECK_EQUAL(client->process.trace_head, 5);
    answers()->launch = 0;
    ask(daemon, 0);
    launch(7);
    CHECK_EQUAL(client->process.trace_head, 5);
    test_daemon_kill(daemon);
}

TEST("every launch that succeeds is told while there is a timeline, its kernel once in each") {
    in_child(launches);
}

static void measured(void) {
    struct test_daemon *daemon = start(TIMELINE, 2, HEDDLE_GATE_MEASURE);
    const struct heddle_client_segment *client = test_daemon_client(daemon);
    const struct heddle_trace_record *trace = client->trace;

    launch(7);
    launch(8);
    CHECK_EQUAL(cuStreamSynchronize(stream), 0);
    CHECK_EQUAL(client->process.samples_head, 1);
    CHECK_EQUAL(client->process.trace_head, 3);
    CHECK_EQUAL(trace[0].flags, 0);
    CHECK_EQUAL(trace[1].flags, HEDDLE_TRACE_MEASURED);
    CHECK_EQUAL(trace[2].kind, HEDDLE_TRACE_DEVICE);
    CHECK_EQUAL(trace[2].duration_ns, 250000);
    CHECK_EQUAL(trace[2].kernel, key_of(8));
    CHECK_EQUAL(trace[2].time_ns, trace[1].time_ns);
    CHECK_EQUAL(trace[2].stream, trace[1].stream);
    launch(7);
    launch(8);
    ask(daemon, 0);
    CHECK_EQUAL(cuStreamSynchronize(stream), 0);
    CHECK_EQUAL(client->process.samples_head, 3);
    CHECK_EQUAL(client->process.trace_head, 6); /* the idle time and the two launches alone */
    test_daemon_kill(daemon);
}

TEST("the device time of a measured launch is told by the launch's time and stream") {
    in_child(measured);
}

static void idle(void) {
    struct test_daemon *daemon = start(TIMELINE, 0, HEDDLE_GATE_PUBLISH | HEDDLE_GATE_MEASURE);
    const struct heddle_client_segment *client = test_daemon_client(daemon);
    const struct heddle_client_device *device = &client->devices[0];
    const struct heddle_trace_record *trace = client->trace;
    uint64_t since = 0;

    know(daemon, key_of(7), 0, 70000);
    launch(7);
    CHECK_EQUAL(client->process.trace_head, 1);
    CHECK_EQUAL(cuStreamSynchronize(stream), 0);
    since = device->idle_since_ns;
    launch(8);
    CHECK_EQUAL(client->process.trace_head, 3);
    CHECK_EQUAL(trace[1].kind, HEDDLE_TRACE_GAP);
    CHECK_EQUAL(trace[1].kernel, key_of(7));
    CHECK_EQUAL(trace[1].time_ns, since);
    CHECK_EQUAL(trace[1].guess_ns, 70000);
    CHECK_EQUAL(trace[1].duration_ns, device->busy_since_ns - since);
    CHECK_EQUAL(trace[2].kind, HEDDLE_TRACE_LAUNCH);
    CHECK_EQUAL(cuStreamSynchronize(stream), 0);
    ask(daemon, TIMELINE + 1);
    launch(7);
    CHECK_EQUAL(client->process.trace_head, 4); /* it began under another timeline */
    CHECK_EQUAL(trace[3].kind, HEDDLE_TRACE_LAUNCH);
    test_daemon_kill(daemon);
}

TEST("an idle time is told with its length and the one foretold, if all of it was watched") {
    in_child(idle);
}

static void overrun(void) {
    struct test_daemon *daemon = start(TIMELINE, 0, 0);
    struct heddle_verdict_device *verdict = &test_daemon_verdict(daemon)->devices[0];
    const struct heddle_client_segment *client = test_daemon_client(daemon);
    const struct heddle_trace_record *trace = client->trace;

    verdict->estimate_ns = 100000;
    verdict->window_ns = 150000;
    verdict->max_hold_ns = 2000000;
    answers()->query = 600;
    test_daemon_publish(daemon, 0, HEDDLE_GATE_WINDOW | HEDDLE_GATE_MEASURE);
    launch(7);
    launch(8);
    CHECK_EQUAL(client->process.trace_head, 3);
    CHECK_EQUAL(trace[1].kind, HEDDLE_TRACE_HOLD);
    CHECK_EQUAL(trace[1].reason, HEDDLE_GATE_HELD_WINDOW);
    CHECK_EQUAL(trace[1].flags, HEDDLE_TRACE_OVERRUN);
    CHECK_EQUAL(trace[1].kernel, key_of(8));
    CHECK_EQUAL(trace[1].guess_ns, 100000);
    CHECK(trace[1].time_ns >= trace[0].time_ns + trace[0].duration_ns);
    CHECK(trace[1].duration_ns >= 2000000);
    CHECK(trace[2].time_ns >= trace[1].time_ns + trace[1].duration_ns);
    test_daemon_kill(daemon);
}

TEST("a wait at the gate is told with its reason, before the launch that waited") {
    in_child(overrun);
}

TEST("a wait whose reason changes is told in parts that follow each other") {
    static const struct {
        uint64_t now;
        uint32_t reason;
        uint32_t peer;
    } steps[] = {
        {1000, HEDDLE_GATE_HELD_PEER, 3},  {1100, HEDDLE_GATE_HELD_PEER, 3},
        {1500, HEDDLE_GATE_HELD_PEER, 4},  {1600, HEDDLE_GATE_HELD_TOKEN, 4},
        {1800, HEDDLE_GATE_HELD_TOKEN, 4}, {2000, HEDDLE_GATE_OPEN, 0},
        {3000, HEDDLE_GATE_OPEN, 0},
    };
    static const struct heddle_trace_record want[] = {
        {.time_ns = 1000, .duration_ns = 500, .reason = HEDDLE_GATE_HELD_PEER, .peer = 3},
        {.time_ns = 1500, .duration_ns = 100, .reason = HEDDLE_GATE_HELD_PEER, .peer = 4},
        {.time_ns = 1600, .duration_ns = 400, .reason = HEDDLE_GATE_HELD_TOKEN, .peer = 4},
    };
    const struct heddle_client_segment *client = heddle_client();
    struct heddle_verdict_segment verdict = {.process = {.trace = TIMELINE}};
    struct heddle_trace_wait wait = {0};
    const uint64_t first = client->process.trace_head;
    int file = -1;
    struct heddle_verdict_segment *shared = test_segment(sizeof(verdict), &file);

    verdict.header.magic = HEDDLE_MAGIC_VERDICT;
    verdict.header.abi_version = HEDDLE_ABI_VERSION;
    *shared = verdict;
    CHECK(heddle_client_adopt_verdict(file));
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        const struct heddle_gate_input input = {.now_ns = steps[i].now};
        const struct heddle_trace_wait next = {
            .since_ns = steps[i].now, .reason = steps[i].reason, .peer = steps[i].peer};

        heddle_trace_turn(&wait, &next, 2, 99, &input);
    }
    CHECK_EQUAL(client->process.trace_head, first + 3);
    for (uint64_t i = 0; i < 3; i++) {
        const struct heddle_trace_record *record = &client->trace[(first + i) % HEDDLE_TRACE];

        CHECK_EQUAL(record->kind, HEDDLE_TRACE_HOLD);
        CHECK_EQUAL(record->time_ns, want[i].time_ns);
        CHECK_EQUAL(record->duration_ns, want[i].duration_ns);
        CHECK_EQUAL(record->reason, want[i].reason);
        CHECK_EQUAL(record->peer, want[i].peer);
        CHECK_EQUAL(record->device_slot, 2);
        CHECK_EQUAL(record->kernel, 99);
    }
}

static void *tell_many(void *kernel) {
    for (uint64_t i = 0; i < 20000; i++) {
        const struct heddle_trace_record record = {
            .time_ns = i, .kernel = (uint64_t)(uintptr_t)kernel, .kind = HEDDLE_TRACE_LAUNCH};

        heddle_tell_trace(&record);
    }
    return NULL;
}

TEST("threads that tell at once lose nothing uncounted") {
    const struct heddle_client_segment *client = heddle_client();
    const uint64_t before = client->process.trace_head + client->process.trace_dropped;
    pthread_t threads[3];

    for (uintptr_t i = 0; i < 3; i++) {
        CHECK(pthread_create(&threads[i], NULL, tell_many, (void *)(i + 1)) == 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK_EQUAL(client->process.trace_head + client->process.trace_dropped, before + 60000);
    for (int i = 0; i < HEDDLE_TRACE; i++) {
        CHECK(client->trace[i].kernel >= 1 && client->trace[i].kernel <= 3);
    }
}
