/* What the two sides of the stress test know of each other: those who work (stress_work.c), and the
 * one that starts them, hurts them and looks after them (test_stress.c). */
#ifndef SOFTGPU_TEST_STRESS_H
#define SOFTGPU_TEST_STRESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    STRESS_CHILDREN = 6,
    STRESS_THREADS = 3, /* of a child */
};

/* What a thread is doing, for the parent to see. The text is in both processes' image. */
struct stress_trace {
    _Atomic uint64_t steps;
    _Atomic(const char *) doing;
};

/* Shared by all of them. */
struct stress_common {
    atomic_bool ending;
    struct stress_trace traces[STRESS_CHILDREN][STRESS_THREADS];
};

/* The next of a sequence of numbers below a bound. */
static inline uint64_t stress_draw(uint64_t *random, uint64_t below) {
    *random += 0x9e3779b97f4a7c15u;
    uint64_t x = *random;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (x ^ (x >> 31)) % below;
}

/* The life of a child from its fork on; ends the process. */
_Noreturn void stress_live(struct stress_common *shared, struct stress_trace *traces,
                           uint64_t random);

#endif /* SOFTGPU_TEST_STRESS_H */
