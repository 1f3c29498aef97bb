/* CLOCK_MONOTONIC in nanoseconds, and sleeping by it. */
#ifndef PLAY_CLOCK_H
#define PLAY_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

static inline uint64_t play_now_ns(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

/* Returns at that time, or earlier when a signal comes. */
static inline void play_sleep_until_ns(uint64_t when) {
    const struct timespec until = {(time_t)(when / 1000000000U), (long)(when % 1000000000U)};

    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

/* How long a sleep may go on after the word to stop. */
#define PLAY_CLOCK_SLICE_NS 50000000U

/*
 * Sleeps until that time or until *stop; true: the time came. A signal is delivered to one thread
 * of the process, which is rarely the one that sleeps here, so that each looks for itself.
 */
static inline bool play_sleep_unless(uint64_t when, const atomic_bool *stop) {
    for (uint64_t now = play_now_ns(); now < when; now = play_now_ns()) {
        if (atomic_load_explicit(stop, memory_order_relaxed)) {
            return false;
        }
        play_sleep_until_ns(when - now > PLAY_CLOCK_SLICE_NS ? now + PLAY_CLOCK_SLICE_NS : when);
    }
    return !atomic_load_explicit(stop, memory_order_relaxed);
}

#endif /* PLAY_CLOCK_H */
