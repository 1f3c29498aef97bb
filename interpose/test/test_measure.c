/*
 * Kernels are recognised, measured and told of; what the daemon knows of them counts at the gate. The
 * interposer is linked into the test, with a fake driver behind it.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#include "child.h"
#include "client.h"
#include "clock.h"
#include "daemon.h"
#include "fake_driver.h"
#include "heddle/atomic.h"
#include "heddle/profile.h"
#include "kernel.h"
#include "window.h"

int cuInit(unsigned flags);
int cuCtxCreate_v2(void **context, unsigned flags, int device);
int cuModuleUnload(void *module);
int cuStreamCreate(void **stream, unsigned flags);
int cuStreamCreateWithPriority(void **stream, unsigned flags, int priority);
int cuStreamSynchronize(void *stream);
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **params, void **extra);

static char stream[16];
static char function[16];

static void *of_driver(const char *name) {
    return dlsym(dlopen(getenv("HEDDLE_REAL_LIBCUDA"), RTLD_NOW | RTLD_NOLOAD), name);
}

static struct fake_calls *calls(void) {
    return of_driver("fake_calls");
}

static struct fake_answers *answers(void) {
    return of_driver("fake_answers");
}

static void launch(unsigned grid) {
    CHECK_EQUAL(cuLaunchKernel(function, grid, 2, 3, 64, 2, 1, 512, stream, NULL, NULL), 0);
}

static uint64_t key_of(const char *name, unsigned grid) {
    const uint32_t grids[3] = {grid, 2, 3};
    const uint32_t blocks[3] = {64, 2, 1};

    return heddle_profile_key(heddle_profile_name(name, strlen(name)), grids, blocks, 512);
}

static struct test_daemon *measuring(uint32_t every, uint32_t gate) {
    struct test_daemon *daemon = test_daemon_start(path, HEDDLE_STATUS_OK);
    void *context = NULL;

    CHECK_EQUAL(cuInit(0), 0);
    CHECK_EQUAL(cuCtxCreate_v2(&context, 0, 0), 0);
    launch(1);
    answers()->name = "saxpy";
    answers()->elapsed_ms = 0.25F;
    answers()->busy = 600;
    test_daemon_verdict(daemon)->process.measure_every = every;
    test_daemon_publish(daemon, 0, gate);
    return daemon;
}

static void know(struct test_daemon *daemon, uint64_t key, uint64_t estimate, uint64_t gap) {
    struct heddle_profile_entry *entry =
        &test_daemon_verdict(daemon)->profile[key >> HEDDLE_PROFILE_SHIFT];

    entry->estimate_ns = estimate;
    entry->gap_ns = gap;
    heddle_store_release64(&entry->key, key);
}

static void told(void) {
    struct test_daemon *daemon = measuring(1, HEDDLE_GATE_MEASURE);
    const struct heddle_client_segment *client = test_daemon_client(daemon);
    const struct heddle_kernel_record *kernel = &client->kernels[0];

    launch(7);
    launch(8);
    CHECK_EQUAL(cuStreamSynchronize(stream), 0);
    CHECK_EQUAL(client->process.samples_head, 2);
    CHECK_EQUAL(client->samples[0].sequence, 1);
    CHECK_EQUAL(client->samples[0].kernel, key_of("saxpy", 7));
    CHECK_EQUAL(client->samples[0].previous, 0);
    CHECK_EQUAL(client->samples[0].device_ns, 250000);
    CHECK_EQUAL(client->samples[0].flags, HEDDLE_SAMPLE_MEASURED);
    CHECK_EQUAL(client->samples[1].kernel, key_of("saxpy", 8));
    CHECK_EQUAL(client->samples[1].previous, key_of("saxpy", 7));
    CHECK_EQUAL(client->devices[0].device_ns, 500000);
    CHECK_EQUAL(client->process.kernels_head, 2);
    CHECK_EQUAL(kernel->sequence, 1);
    CHECK_EQUAL(kernel->key, key_of("saxpy", 7));
    CHECK_EQUAL(kernel->grid[0], 7);
    CHECK_EQUAL(kernel->grid[2], 3);
    CHECK_EQUAL(kernel->block[0], 64);
    CHECK_EQUAL(kernel->block[1], 2);
    CHECK_EQUAL(kernel->dynamic_shared, 512);
    CHECK_EQUAL(kernel->static_shared, 11);
    CHECK_EQUAL(kernel->registers, 14);
    CHECK_EQUAL(kernel->threads_max, 1024);
    CHECK_EQUAL(kernel->blocks_per_sm, 16);
    CHECK_EQUAL(kernel->flags, HEDDLE_KERNEL_ATTRIBUTES);
    CHECK_EQUAL(kernel->length, 5);
    CHECK(memcmp(kernel->name, "saxpy", 5) == 0);
    CHECK_EQUAL(calls()->names_asked, 3); /* for the handle, and for each description */
    test_daemon_kill(daemon);
}

TEST("a measured launch is told with its time, and its kernel with its name and needs") {
    in_child(told);
}

static void powers(void) {
    struct test_daemon *daemon = measuring(1, HEDDLE_GATE_MEASURE);
    const struct heddle_client_segment *client = test_daemon_client(daemon);

    for (int i = 0; i < 9; i++) {
        launch(7);
    }
    CHECK_EQUAL(client->process.kernels_head, 4); /* the first, 2, 4 and 8 */
    test_daemon_kill(daemon);
}

TEST("a kernel is described again when the count of its samples is a power of two") {
    in_child(powers);
}

static void seldom(void) {
    struct test_daemon *daemon = measuring(4, HEDDLE_GATE_MEASURE);
    const struct heddle_client_segment *client = test_daemon_client(daemon);

    for (int i = 0; i < 10; i++) {
        launch(7);
    }
    CHECK_EQUAL(calls()->events_recorded, 4);
    test_daemon_verdict(daemon)->process.measure_every = 0;
    test_daemon_publish(daemon, 0, 0);
    launch(7);
    CHECK_EQUAL(calls()->events_recorded, 4);
    CHECK_EQUAL(cuStreamSynchronize(stream), 0);
    CHECK_EQUAL(client->process.samples_head, 2);
    test_daemon_kill(daemon);
}

TEST("one launch in so many is measured, and none when nothing is asked") {
    in_child(seldom);
}

static void nameless(void) {
    struct test_daemon *daemon = measuring(1, HEDDLE_GATE_MEASURE);
    const struct heddle_client_segment *client = test_daemon_client(daemon);

    answers()->name = NULL;
    launch(7);
    CHECK_EQUAL(cuStreamSynchronize(stream), 0);
    CHECK_EQUAL(client->process.samples_head, 0);
    CHECK_EQUAL(client->process.kernels_head, 0);
    CHECK_EQUAL(client->devices[0].device_ns, 250000);
    test_daemon_kill(daemon);
}

TEST("a kernel whose name the driver does not tell is timed and not told") {
    in_child(nameless);
}

static void pending(void) {
    struct test_daemon *daemon = measuring(1, HEDDLE_GATE_MEASURE);
    const struct heddle_client_segment *client = test_daemon_client(daemon);

    answers()->query = 600;
    for (int i = 0; i < 100; i++) { /* more than there are events */
        launch(7);
    }
    CHECK_EQUAL(calls()->events_recorded, 64);
    CHECK_EQUAL(client->process.samples_head, 0);
    answers()->query = 0;
    launch(7);
    CHECK_EQUAL(client->process.samples_head, 32);
    test_daemon_kill(daemon);
}

TEST("launches that are not complete are waited for by nobody") {
    in_child(pending);
}

/* Iterations of more kernels than there are events, all launched before the first is complete. */
static void late(void) {
    enum { KERNELS = 200, PASSES = 200 };
    struct test_daemon *daemon = measuring(1, HEDDLE_GATE_MEASURE);
    const struct heddle_client_segment *client = test_daemon_client(daemon);
    unsigned half = 0; /* of the samples are of kernels in the first half of an iteration */
    unsigned last = 0; /* as many are of the last eighth */
    uint64_t read = 0;

    for (int pass = 0; pass < 2 * PASSES; pass++) {
        answers()->query = 600;
        for (unsigned i = 0; i < KERNELS; i++) {
            launch(1 + i);
        }
        answers()->query = 0;
        CHECK_EQUAL(cuStreamSynchronize(stream), 0);
        for (; read < client->process.samples_head; read++) {
            const uint64_t kernel = client->samples[read % HEDDLE_SAMPLES].kernel;

            for (unsigned i = 0; pass >= PASSES && i < KERNELS; i++) { /* all are known by then */
                half += kernel == key_of("saxpy", 1 + i) && i < KERNELS / 2;
                last += kernel == key_of("saxpy", 1 + i) && i >= KERNELS * 7 / 8;
            }
        }
    }
    for (unsigned i = 0; i < KERNELS; i++) {
        CHECK(!heddle_kernel_unproven(key_of("saxpy", 1 + i)));
    }
    CHECK(half != 0);
    CHECK(last > PASSES / 8);
    test_daemon_kill(daemon);
}

TEST("what is launched late, while much is outstanding, is measured as well") {
    in_child(late);
}

static void unloaded(void) {
    struct test_daemon *daemon = measuring(1, HEDDLE_GATE_MEASURE);
    const struct heddle_client_segment *client = test_daemon_client(daemon);

    launch(7);
    CHECK_EQUAL(cuModuleUnload(NULL), 0);
    answers()->name = "gemm";
    launch(7);
    CHECK_EQUAL(cuStreamSynchronize(stream), 0);
    CHECK_EQUAL(client->samples[1].kernel, key_of("gemm", 7));
    CHECK_EQUAL(client->samples[1].previous, 0);
    test_daemon_kill(daemon);
}

TEST("a handle that is used again after an unload is another kernel") {
    in_child(unloaded);
}

static void foretold(void) {
    struct test_daemon *daemon = measuring(1000, HEDDLE_GATE_PUBLISH | HEDDLE_GATE_MEASURE);
    const struct heddle_client_segment *client = test_daemon_client(daemon);
    const struct heddle_client_device *device = &client->devices[0];
    const uint64_t pair = heddle_profile_pair(key_of("saxpy", 7), key_of("saxpy", 8));

    launch(7);
    CHECK_EQUAL(cuStreamSynchronize(stream), 0);
    CHECK_EQUAL(device->next_launch_ns, 0);
    know(daemon, key_of("saxpy", 8), 0, 5000000);
    launch(8);
    CHECK_EQUAL(cuStreamSynchronize(stream), 0);
    CHECK_EQUAL(device->next_launch_ns, device->idle_since_ns + 5000000);
    know(daemon, pair, 0, 70000);
    launch(7);
    launch(8);
    CHECK_EQUAL(cuStreamSynchronize(stream), 0);
    CHECK_EQUAL(device->next_launch_ns, device->idle_since_ns + 70000);
    CHECK_EQUAL(client->process.samples_head, 2);
    CHECK_EQUAL(client->samples[0].flags, HEDDLE_SAMPLE_GAP);
    CHECK_EQUAL(client->samples[0].kernel, key_of("saxpy", 7));
    CHECK(client->samples[0].gap_ns > 0);
    CHECK_EQUAL(client->samples[1].kernel, key_of("saxpy", 8));
    CHECK_EQUAL(client->samples[1].previous, key_of("saxpy", 7));
    CHECK_EQUAL(calls()->events_recorded, 0);
    test_daemon_kill(daemon);
}

TEST("the next launch is foretold by the last two kernels, else by the last") {
    in_child(foretold);
}

static void estimated(void) {
    struct test_daemon *daemon = measuring(0, 0);
    struct heddle_verdict_device *verdict = &test_daemon_verdict(daemon)->devices[0];

    verdict->estimate_ns = 100000;
    verdict->window_ns = 10000000;
    verdict->max_hold_ns = 60000000000U;
    know(daemon, key_of("saxpy", 7), 3000000, 0);
    answers()->query = 600;
    test_daemon_publish(daemon, 0, HEDDLE_GATE_WINDOW);
    launch(7);
    launch(8);
    CHECK_EQUAL(heddle_window_outstanding(0), 3100000);
    answers()->query = 0;
    CHECK_EQUAL(heddle_window_outstanding(0), 0);
    CHECK_EQUAL(test_daemon_client(daemon)->devices[0].device_ns, 3100000);
    test_daemon_kill(daemon);
}

TEST("a window counts what is known of each kernel, else the estimate of the class") {
    in_child(estimated);
}

static void boasting(void) {
    struct test_daemon *daemon = measuring(1000, 0);
    struct heddle_verdict_device *verdict = &test_daemon_verdict(daemon)->devices[0];

    verdict->estimate_ns = 100000;
    verdict->window_ns = 10000000;
    verdict->max_hold_ns = 60000000000U;
    know(daemon, key_of("saxpy", 7), 1, 0);
    test_daemon_publish(daemon, 0, HEDDLE_GATE_WINDOW | HEDDLE_GATE_MEASURE);
    answers()->query = 600;
    launch(7);
    CHECK_EQUAL(heddle_window_outstanding(0), 100000);
    answers()->query = 0;
    CHECK_EQUAL(heddle_window_outstanding(0), 0);
    CHECK_EQUAL(cuStreamSynchronize(stream), 0); /* what was measured is known now */
    answers()->query = 600;
    launch(7);
    CHECK_EQUAL(heddle_window_outstanding(0), 250000);
    know(daemon, key_of("saxpy", 7), 300000, 0);
    launch(7);
    CHECK_EQUAL(heddle_window_outstanding(0), 550000);
    test_daemon_kill(daemon);
}

TEST("a profile is not believed that says less than was measured here, or before anything was") {
    in_child(boasting);
}

static void swarming(void) {
    struct test_daemon *daemon = measuring(0, 0);
    struct heddle_verdict_device *verdict = &test_daemon_verdict(daemon)->devices[0];

    verdict->estimate_ns = 1;
    verdict->window_ns = 10000000;
    verdict->max_hold_ns = 1000000;
    answers()->query = 600;
    test_daemon_publish(daemon, 0, HEDDLE_GATE_WINDOW);
    for (int i = 0; i < 64; i++) {
        launch(7);
    }
    CHECK_EQUAL(test_daemon_client(daemon)->devices[0].overruns, 0);
    launch(7);
    CHECK_EQUAL(test_daemon_client(daemon)->devices[0].overruns, 1);
    test_daemon_kill(daemon);
}

TEST("no more launches are outstanding than can be watched, however short they are said to be") {
    in_child(swarming);
}

static void crowding(void) {
    struct test_daemon *daemon = measuring(0, 0);

    CHECK(heddle_window_reserve(1, 1000, 400)); /* one is always allowed */
    CHECK(!heddle_window_reserve(1, 1, 400));
    heddle_window_leave(1, 1000);
    CHECK(heddle_window_reserve(1, 300, 400));
    CHECK(heddle_window_reserve(1, 100, 400));
    CHECK(!heddle_window_reserve(1, 100, 400));
    CHECK_EQUAL(heddle_window_outstanding(1), 400);
    CHECK(heddle_window_reserve(1, 100, UINT64_MAX)); /* has waited for its longest time */
    heddle_window_leave(1, 500);
    CHECK_EQUAL(heddle_window_outstanding(1), 0);
    test_daemon_kill(daemon);
}

TEST("threads that launch at once do not take the same room") {
    in_child(crowding);
}

TEST("a wait sleeps to the end of a steady kernel, and looks more often at others") {
    CHECK_EQUAL(heddle_window_pause(0, 600000, true), 600000);
    CHECK_EQUAL(heddle_window_pause(100000, 5000000, true), 1000000); /* no longer than this */
    CHECK_EQUAL(heddle_window_pause(0, 600000, false), 15000);
    CHECK_EQUAL(heddle_window_pause(400000, 200000, false), 50000);
    CHECK_EQUAL(heddle_window_pause(400000, 30000, false), 30000); /* the end comes first */
    CHECK_EQUAL(heddle_window_pause(400000, 0, true), 50000);      /* overdue */
    CHECK_EQUAL(heddle_window_pause(UINT64_MAX, 0, false), 200000);
    CHECK_EQUAL(heddle_window_pause(0, 3000, true), 15000);
}

static void priorities(void) {
    struct test_daemon *daemon = measuring(0, 0);
    int32_t *priority = &test_daemon_verdict(daemon)->devices[0].stream_priority;
    void *created = NULL;

    CHECK_EQUAL(cuStreamCreateWithPriority(&created, 0, -2), 0);
    CHECK_EQUAL((unsigned)calls()->last_priority, (unsigned)-2);
    *priority = 1;
    CHECK_EQUAL(cuStreamCreate(&created, 0), 0);
    CHECK_EQUAL((unsigned)calls()->last_priority, (unsigned)-5);
    *priority = -1;
    CHECK_EQUAL(cuStreamCreateWithPriority(&created, 0, -2), 0);
    CHECK_EQUAL(calls()->last_priority, 0);
    test_daemon_kill(daemon);
}

TEST("streams get the priority that the verdict says, else the program's") {
    in_child(priorities);
}
