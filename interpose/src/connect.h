/*
 * The connection to heddled: one helper thread per process makes it, keeps it and makes it anew.
 * A program waits for it a bounded time at its first cuInit, and never again.
 */
#ifndef HEDDLE_CONNECT_H
#define HEDDLE_CONNECT_H

#include <stdbool.h>
#include <stdint.h>

enum heddle_connect_state {
    HEDDLE_UNINIT = 0, /* nobody asked yet, or the child of a fork */
    HEDDLE_ATTACHING = 1,
    HEDDLE_ATTACHED = 2,
    HEDDLE_DETACHED = 3, /* no daemon now; the helper looks for one */
    HEDDLE_OFF = 4,      /* refused, evicted or impossible: for good */
};

extern uint32_t heddle_connect_state;

/* Attaches if nobody did; returns with a result, or after a bounded wait. */
void heddle_connect_begin(void);

static inline void heddle_connect_ensure(void) {
    if (__builtin_expect(__atomic_load_n(&heddle_connect_state, __ATOMIC_ACQUIRE) == HEDDLE_UNINIT,
                         0)) {
        heddle_connect_begin();
    }
}

static inline bool heddle_connect_alive(void) {
    return __atomic_load_n(&heddle_connect_state, __ATOMIC_ACQUIRE) == HEDDLE_ATTACHED;
}

/* Tells the daemon of a device and waits a bounded time for its verdict. */
void heddle_connect_device(uint32_t slot);

void heddle_connect_reset(void);

#endif /* HEDDLE_CONNECT_H */
