/* CLOCK_MONOTONIC in nanoseconds, and sleeping by it. */
#ifndef PLAY_CLOCK_H
#define PLAY_CLOCK_H

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

#endif /* PLAY_CLOCK_H */
