/* Where a thread is: left behind by the thread itself, read by the watch when it does not go on. */
#ifndef PLAY_PLACE_H
#define PLAY_PLACE_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>

#include "clock.h"

/* Texts are literals. Each has a cache line of its own, as each is written by another thread. */
struct play_place {
    alignas(64) _Atomic(const char *) phase; /* NULL: not begun */
    _Atomic(const char *) call;              /* of the driver, the last one that was begun */
    _Atomic uint64_t since_ns;               /* of the phase */
    _Atomic uint64_t passes;                 /* begun */
};

static inline void play_place_phase(struct play_place *place, const char *phase) {
    atomic_store_explicit(&place->since_ns, play_now_ns(), memory_order_relaxed);
    atomic_store_explicit(&place->phase, phase, memory_order_relaxed);
}

static inline void play_place_pass(struct play_place *place) {
    atomic_fetch_add_explicit(&place->passes, 1, memory_order_relaxed);
    play_place_phase(place, "playing");
}

static inline void play_place_call(struct play_place *place, const char *call) {
    atomic_store_explicit(&place->call, call, memory_order_relaxed);
}

#endif /* PLAY_PLACE_H */
