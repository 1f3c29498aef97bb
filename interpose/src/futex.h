/* Waiting for a word in shared memory to change. */
#ifndef HEDDLE_FUTEX_H
#define HEDDLE_FUTEX_H

#include <stdint.h>

enum heddle_futex_end {
    HEDDLE_FUTEX_WOKEN,
    HEDDLE_FUTEX_CHANGED, /* it never slept, or a signal ended the sleep */
    HEDDLE_FUTEX_TIMED_OUT,
};

/* Sleeps while *word == value, at most for timeout_ns. The mapping may be read-only. */
enum heddle_futex_end heddle_futex_wait(const uint32_t *word, uint32_t value, uint64_t timeout_ns);

/* Wakes all; for a word on which only this process sleeps. */
void heddle_futex_wake(const uint32_t *word);

/*
 * Wakes a few; for a word on which others sleep. Waking a thread costs the waker some microseconds,
 * and a client of a lower class can have thousands of them. Who is woken wakes the next few.
 */
void heddle_futex_wake_few(const uint32_t *word);

#endif /* HEDDLE_FUTEX_H */
