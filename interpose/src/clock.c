#include "clock.h"

#include <time.h>

#include "client.h"

static uint64_t ticks(void) {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    uint64_t value = 0;

    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
    return value;
#endif
}

uint64_t heddle_clock_now(void) {
    const struct heddle_verdict_process *verdict = &heddle_verdict()->process;
    const uint32_t shift = heddle_load_relaxed32(&verdict->clock_shift);
    struct timespec now;

    if (heddle_load_acquire32(&verdict->clock_source) == HEDDLE_CLOCK_COUNTER && shift < 64) {
        const uint64_t elapsed = ticks() - heddle_load_relaxed64(&verdict->clock_base_ticks);
        const uint64_t mult = heddle_load_relaxed64(&verdict->clock_mult);
        const unsigned __int128 scaled = (unsigned __int128)elapsed * mult >> shift;

        return heddle_load_relaxed64(&verdict->clock_base_ns) + (uint64_t)scaled;
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}
