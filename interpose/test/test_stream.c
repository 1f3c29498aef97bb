/* The states of streams, and what a wait that returned proves. */
#include "stream.h"

#include <pthread.h>

#include "busy.h"
#include "client.h"
#include "driver.h"
#include "event.h"
#include "settle.h"
#include "symbols.h"
#include "test.h"
#include "thread.h"

static char streams[64][16];
static char context[1];
static void *current;

static heddle_result get_current(void **answer) {
    *answer = current;
    return 0;
}

static heddle_result get_device(heddle_device *device) {
    *device = 0;
    return 0;
}

static heddle_result get_flags(void *stream, unsigned *flags) {
    *flags = ((uintptr_t)stream >> 4) % 2; /* every other stream is non-blocking */
    return 0;
}

static heddle_result get_uuid(struct heddle_uuid *uuid, heddle_device device) {
    memset(uuid, device, sizeof(*uuid));
    return 0;
}

static void fresh(void) {
    heddle_busy_reset();
    heddle_stream_reset();
    heddle_event_reset();
    heddle_client_reset();
    memset(&heddle_thread, 0, sizeof(heddle_thread));
    current = context;
    heddle_real[HEDDLE_SYM_cuCtxGetCurrent] = (heddle_code)get_current;
    heddle_real[HEDDLE_SYM_cuCtxGetDevice] = (heddle_code)get_device;
    heddle_real[HEDDLE_SYM_cuStreamGetFlags] = (heddle_code)get_flags;
    heddle_real[HEDDLE_SYM_cuDeviceGetUuid_v2] = (heddle_code)get_uuid;
}

static uint32_t busy(void) {
    return heddle_client()->devices[0].busy_streams;
}

static void launch(void *stream) {
    struct heddle_stream *entry = heddle_stream_obtain(stream, false, 0);

    heddle_stream_dirty(entry);
    heddle_stream_dirty(entry);
}

static void sync_stream(void *stream, int result) {
    struct heddle_settle settle;

    heddle_settle_stream(&settle, stream, false);
    CHECK_EQUAL(heddle_settle_end(&settle, result), result);
}

TEST("a launch makes a stream busy and a wait that returns makes it idle") {
    fresh();
    launch(streams[0]);
    launch(streams[0]);
    CHECK_EQUAL(busy(), 1);
    CHECK(heddle_client()->devices[0].busy_since_ns != 0);
    sync_stream(streams[0], HEDDLE_CUDA_SUCCESS);
    CHECK_EQUAL(busy(), 0);
    CHECK_EQUAL(heddle_client()->devices[0].doorbell, 1);
    CHECK(heddle_client()->devices[0].idle_since_ns != 0);
    CHECK_EQUAL(heddle_client()->devices[0].busy_since_ns, 0);
}

TEST("the device is busy until its last stream is idle") {
    fresh();
    launch(streams[0]);
    launch(streams[1]);
    CHECK_EQUAL(busy(), 2);
    sync_stream(streams[0], HEDDLE_CUDA_SUCCESS);
    CHECK_EQUAL(busy(), 1);
    CHECK_EQUAL(heddle_client()->devices[0].doorbell, 0);
    sync_stream(streams[1], HEDDLE_CUDA_SUCCESS);
    CHECK_EQUAL(busy(), 0);
}

TEST("a wait that failed or was not ready proves nothing") {
    fresh();
    launch(streams[0]);
    sync_stream(streams[0], HEDDLE_CUDA_NOT_READY);
    sync_stream(streams[0], 1);
    CHECK_EQUAL(busy(), 1);
}

TEST("an error that ends the context ends its work") {
    fresh();
    launch(streams[0]);
    launch(streams[1]);
    sync_stream(streams[0], HEDDLE_CUDA_FATAL_FIRST);
    CHECK_EQUAL(busy(), 0);
}

TEST("a launch during a wait keeps the stream busy") {
    struct heddle_settle settle;

    fresh();
    launch(streams[0]);
    heddle_settle_stream(&settle, streams[0], false);
    launch(streams[0]);
    (void)heddle_settle_end(&settle, HEDDLE_CUDA_SUCCESS);
    CHECK_EQUAL(busy(), 1);
}

/* The launch looked before the wait began and came to the driver after it had ended. */
TEST("a launch that was on its way during a whole wait keeps the stream busy") {
    struct heddle_stream *entry = NULL;

    fresh();
    entry = heddle_stream_obtain(streams[0], false, 0);
    heddle_stream_dirty(entry);
    sync_stream(streams[0], HEDDLE_CUDA_SUCCESS);
    CHECK_EQUAL(busy(), 0);
    heddle_stream_dirty(entry);
    CHECK_EQUAL(busy(), 1);
}

TEST("an event proves what came before its record, not what came after") {
    struct heddle_settle settle;

    fresh();
    launch(streams[0]);
    heddle_settle_stream(&settle, streams[0], false);
    heddle_event_set(streams[9], &settle);
    heddle_event_get(streams[9], &settle);
    (void)heddle_settle_end(&settle, HEDDLE_CUDA_SUCCESS);
    CHECK_EQUAL(busy(), 0);

    launch(streams[0]);
    heddle_settle_stream(&settle, streams[0], false);
    heddle_event_set(streams[9], &settle);
    launch(streams[0]);
    heddle_settle_stream(&settle, streams[0], false);
    heddle_event_set(streams[8], &settle);
    heddle_event_get(streams[9], &settle); /* the older event: a later launch is outstanding */
    (void)heddle_settle_end(&settle, HEDDLE_CUDA_SUCCESS);
    CHECK_EQUAL(busy(), 1);
    heddle_event_get(streams[8], &settle);
    (void)heddle_settle_end(&settle, HEDDLE_CUDA_SUCCESS);
    CHECK_EQUAL(busy(), 0);
}

TEST("a forgotten event proves nothing") {
    struct heddle_settle settle;

    fresh();
    launch(streams[0]);
    heddle_settle_stream(&settle, streams[0], false);
    heddle_event_set(streams[9], &settle);
    heddle_event_forget(streams[9]);
    heddle_event_get(streams[9], &settle);
    (void)heddle_settle_end(&settle, HEDDLE_CUDA_SUCCESS);
    CHECK_EQUAL(busy(), 1);
}

TEST("a wait for the context covers its streams and no other context's") {
    static char other[1];
    struct heddle_settle settle;

    fresh();
    launch(streams[0]);
    launch(streams[1]);
    current = other;
    launch(streams[2]);
    heddle_settle_context(&settle, context);
    (void)heddle_settle_end(&settle, HEDDLE_CUDA_SUCCESS);
    CHECK_EQUAL(busy(), 1);
    heddle_settle_context(&settle, NULL);
    (void)heddle_settle_end(&settle, HEDDLE_CUDA_SUCCESS);
    CHECK_EQUAL(busy(), 0);
}

TEST("a wait for the context does not cover what was launched meanwhile") {
    struct heddle_settle settle;

    fresh();
    launch(streams[0]);
    launch(streams[1]);
    heddle_settle_context(&settle, NULL);
    launch(streams[1]);
    sync_stream(streams[1], HEDDLE_CUDA_NOT_READY); /* a later wait's mark is not ours */
    (void)heddle_settle_end(&settle, HEDDLE_CUDA_SUCCESS);
    CHECK_EQUAL(busy(), 1);
}

TEST("a synchronous copy covers blocking streams only") {
    struct heddle_settle settle;
    const uintptr_t first = (uintptr_t)streams[0] >> 4;
    char *blocking = streams[first % 2];
    char *other = streams[1 - first % 2];

    fresh();
    launch(NULL);
    launch(blocking);
    launch(other);
    CHECK_EQUAL(busy(), 3);
    heddle_settle_copy(&settle, false);
    (void)heddle_settle_end(&settle, HEDDLE_CUDA_SUCCESS);
    CHECK_EQUAL(busy(), 1);
    sync_stream(other, HEDDLE_CUDA_SUCCESS);
    CHECK_EQUAL(busy(), 0);
}

TEST("the default streams of two devices, and of two threads, are different") {
    CHECK(heddle_stream_key(NULL, false, 0) != heddle_stream_key(NULL, false, 1));
    CHECK(heddle_stream_key(NULL, true, 0) != heddle_stream_key(NULL, false, 0));
    CHECK(heddle_stream_key((void *)1, true, 0) == heddle_stream_key(NULL, false, 0));
    CHECK(heddle_stream_key((void *)2, false, 3) == heddle_stream_key(NULL, true, 3));
}

TEST("a destroyed stream is idle, and its handle can come again") {
    fresh();
    launch(streams[0]);
    heddle_stream_forget((uint64_t)(uintptr_t)streams[0]);
    CHECK_EQUAL(busy(), 0);
    launch(streams[0]);
    CHECK_EQUAL(busy(), 1);
    sync_stream(streams[0], HEDDLE_CUDA_SUCCESS);
    CHECK_EQUAL(busy(), 0);
}

TEST("streams without number come and go and the table does not fill") {
    fresh();
    for (uintptr_t i = 1; i < 100000; i++) {
        void *stream = (void *)(i << 8);

        launch(stream);
        CHECK_EQUAL(busy(), 1);
        heddle_stream_forget(i << 8);
    }
    CHECK_EQUAL(busy(), 0);
}

TEST("more streams than fit are left out, never miscounted") {
    uint32_t placed = 0;

    fresh();
    for (uintptr_t i = 1; i <= 6000; i++) {
        struct heddle_stream *entry = heddle_stream_obtain((void *)(i << 8), false, 0);

        if (entry != NULL) {
            heddle_stream_dirty(entry);
            placed++;
        }
    }
    CHECK(placed > 3000);
    CHECK_EQUAL(busy(), placed);
    heddle_stream_forget_context(context);
    CHECK_EQUAL(busy(), 0);
}

static void *launch_and_wait(void *stream) {
    for (int i = 0; i < 3000; i++) {
        launch(stream);
        sync_stream(stream, HEDDLE_CUDA_SUCCESS);
    }
    return NULL;
}

TEST("threads on streams of their own, and on a shared one, end idle") {
    pthread_t threads[6];

    fresh();
    for (int i = 0; i < 6; i++) {
        CHECK(pthread_create(&threads[i], NULL, launch_and_wait, streams[i < 3 ? 0 : i]) == 0);
    }
    for (int i = 0; i < 6; i++) {
        pthread_join(threads[i], NULL);
    }
    sync_stream(streams[0], HEDDLE_CUDA_SUCCESS);
    CHECK_EQUAL(busy(), 0);
}
