/*
 * Progress for whoever watches: one JSON line per interval, from a thread of its own, so that a
 * player that is held or starved is seen to stand still. A reader that does not read loses lines and
 * learns how many; the player never waits for it.
 */
#ifndef PLAY_STATUS_H
#define PLAY_STATUS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "bell.h"
#include "error.h"
#include "line.h"

struct play_status {
    _Atomic uint64_t begun;
    _Atomic uint64_t done;
    _Atomic uint64_t last_ns; /* latency of the last pass */

    uint64_t interval_ns; /* 0: nobody watches */
    uint64_t start_ns;
    struct play_line_writer writer;
    uint64_t dropped; /* lines that the reader was too far behind to get */
    pthread_t thread;
    struct play_bell bell;
};

bool play_status_start(struct play_status *status, uint64_t interval_ms, int fd, uint64_t start_ns,
                       struct play_error *err);
void play_status_stop(struct play_status *status);

/*
 * When the line that was due then is written: at once if the time is to come; else the times that
 * have passed are left out, for lines in a burst would all say the same.
 */
uint64_t play_status_next(uint64_t due, uint64_t interval, uint64_t now);

static inline void play_status_begin(struct play_status *status) {
    atomic_fetch_add_explicit(&status->begun, 1, memory_order_relaxed);
}

static inline void play_status_end(struct play_status *status, uint64_t latency_ns) {
    atomic_store_explicit(&status->last_ns, latency_ns, memory_order_relaxed);
    atomic_fetch_add_explicit(&status->done, 1, memory_order_relaxed);
}

#endif /* PLAY_STATUS_H */
