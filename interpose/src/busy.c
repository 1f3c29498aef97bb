#include "busy.h"

#include <pthread.h>

#include "arena.h"
#include "client.h"
#include "clock.h"

/* Taken when a stream turns busy or idle, not per launch. Guards busy_streams and the span. */
static pthread_mutex_t locks[HEDDLE_DEVICES_MAX];

void heddle_busy_begin(uint32_t device) {
    struct heddle_client_device *self = &heddle_client()->devices[device];
    uint32_t count = 0;

    pthread_mutex_lock(&locks[device]);
    count = heddle_load_relaxed32(&self->busy_streams) + 1;
    if (count == 1) {
        heddle_store_relaxed64(&self->busy_since_ns, heddle_clock_now());
    }
    (void)heddle_swap_seq_cst32(&self->busy_streams, count);
    pthread_mutex_unlock(&locks[device]);
}

/*
 * A peer that is about to sleep sets its sleeper bit, looks at busy_streams again and then waits for
 * the doorbell to change. Here the order is the reverse: idle, doorbell, sleepers. One of the two
 * sees the other.
 */
static void turn_idle(struct heddle_client_device *self) {
    const uint64_t now = heddle_clock_now();
    const uint64_t since = heddle_load_relaxed64(&self->busy_since_ns);

    if (now > since) {
        heddle_store_relaxed64(&self->busy_ns, heddle_load_relaxed64(&self->busy_ns) + now - since);
    }
    heddle_store_relaxed64(&self->busy_since_ns, 0);
    heddle_store_relaxed64(&self->idle_since_ns, now);
    (void)heddle_swap_seq_cst32(&self->busy_streams, 0);
    heddle_add_seq_cst32(&self->doorbell, 1);
}

void heddle_busy_end(uint32_t device) {
    struct heddle_client_device *self = &heddle_client()->devices[device];
    uint32_t count = 0;

    pthread_mutex_lock(&locks[device]);
    count = heddle_load_relaxed32(&self->busy_streams);
    if (count == 1) {
        turn_idle(self);
    } else if (count > 1) {
        (void)heddle_swap_seq_cst32(&self->busy_streams, count - 1);
    }
    pthread_mutex_unlock(&locks[device]);
    if (count == 1) {
        heddle_arena_wake(device, &self->doorbell);
    }
}

void heddle_busy_reset(void) {
    for (uint32_t i = 0; i < HEDDLE_DEVICES_MAX; i++) {
        pthread_mutex_init(&locks[i], NULL);
    }
}
