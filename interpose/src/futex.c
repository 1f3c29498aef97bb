#include "futex.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/*
 * The kernel's numbers, whose header not every C library brings along. Neither is private to a
 * process: waiter and waker are different ones.
 */
enum { WAIT = 0, WAKE = 1 };

enum { FEW = 16 }; /* some 100 us of the waker's time at worst */

enum heddle_futex_end heddle_futex_wait(const uint32_t *word, uint32_t value, uint64_t timeout_ns) {
    const struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / 1000000000U),
                                     .tv_nsec = (long)(timeout_ns % 1000000000U)};

    if (syscall(SYS_futex, word, WAIT, value, &timeout, NULL, 0) == 0) {
        return HEDDLE_FUTEX_WOKEN;
    }
    return errno == ETIMEDOUT ? HEDDLE_FUTEX_TIMED_OUT : HEDDLE_FUTEX_CHANGED;
}

void heddle_futex_wake(const uint32_t *word) {
    (void)syscall(SYS_futex, word, WAKE, INT_MAX, NULL, NULL, 0);
}

void heddle_futex_wake_few(const uint32_t *word) {
    (void)syscall(SYS_futex, word, WAKE, FEW, NULL, NULL, 0);
}
