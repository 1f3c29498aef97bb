/* Waiting for a word in shared memory to change. */
#ifndef HEDDLE_FUTEX_H
#define HEDDLE_FUTEX_H

#include <stdint.h>

/* Sleeps while *word == value, at most for timeout_ns. The mapping may be read-only. */
void heddle_futex_wait(const uint32_t *word, uint32_t value, uint64_t timeout_ns);

void heddle_futex_wake(const uint32_t *word);

#endif /* HEDDLE_FUTEX_H */
