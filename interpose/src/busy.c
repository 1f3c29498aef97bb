#include "busy.h"

#include <pthread.h>
#include <stdbool.h>

#include "arena.h"
#include "client.h"
#include "clock.h"
#include "gap.h"

/* Taken when a stream turns busy or idle, not per launch. Guards the count and the span. */
static pthread_mutex_t locks[HEDDLE_DEVICES_MAX];

/*
 * Busy streams. A stream's word changes before its change is counted here, so that of two threads on
 * one stream the end may be counted before the beginning, and the count be below zero for a moment.
 */
static int32_t counts[HEDDLE_DEVICES_MAX];

void heddle_busy_begin(uint32_t device) {
    struct heddle_client_device *self = &heddle_client()->devices[device];

    pthread_mutex_lock(&locks[device]);
    counts[device]++;
    if (counts[device] == 1) {
        const uint64_t now = heddle_clock_now();

        heddle_store_relaxed64(&self->busy_since_ns, now);
        heddle_gap_end(device, now);
    }
    if (counts[device] > 0) {
        (void)heddle_swap_seq_cst32(&self->busy_streams, (uint32_t)counts[device]);
    }
    pthread_mutex_unlock(&locks[device]);
}

/*
 * A peer that is about to sleep sets its sleeper bit, looks at busy_streams again and then waits for
 * the doorbell to change. Here the order is the reverse: idle, doorbell, sleepers. One of the two
 * sees the other.
 */
static void turn_idle(uint32_t device, const struct heddle_gap *gap) {
    struct heddle_client_device *self = &heddle_client()->devices[device];
    const uint64_t now = heddle_clock_now();
    const uint64_t since = heddle_load_relaxed64(&self->busy_since_ns);

    if (now > since) {
        heddle_store_relaxed64(&self->busy_ns, heddle_load_relaxed64(&self->busy_ns) + now - since);
    }
    heddle_store_relaxed64(&self->busy_since_ns, 0);
    heddle_store_relaxed64(&self->idle_since_ns, now);
    heddle_gap_begin(device, gap, now);
    (void)heddle_swap_seq_cst32(&self->busy_streams, 0);
    heddle_add_seq_cst32(&self->doorbell, 1);
}

void heddle_busy_end(uint32_t device, const struct heddle_stream *stream) {
    struct heddle_client_device *self = &heddle_client()->devices[device];
    const struct heddle_gap gap = heddle_gap_after(stream); /* may ask the driver: not locked */
    bool idle = false;

    pthread_mutex_lock(&locks[device]);
    counts[device]--;
    idle = counts[device] == 0;
    if (idle) {
        turn_idle(device, &gap);
    } else if (counts[device] > 0) {
        (void)heddle_swap_seq_cst32(&self->busy_streams, (uint32_t)counts[device]);
    }
    pthread_mutex_unlock(&locks[device]);
    if (idle) {
        heddle_arena_wake(device, &self->doorbell);
    }
}

void heddle_busy_reset(void) {
    for (uint32_t i = 0; i < HEDDLE_DEVICES_MAX; i++) {
        pthread_mutex_init(&locks[i], NULL);
        counts[i] = 0;
    }
    heddle_gap_reset();
}
