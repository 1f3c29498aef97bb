#include "futex.h"

#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Neither is FUTEX_PRIVATE: waiter and waker are different processes. */

void heddle_futex_wait(const uint32_t *word, uint32_t value, uint64_t timeout_ns) {
    const struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / 1000000000U),
                                     .tv_nsec = (long)(timeout_ns % 1000000000U)};

    (void)syscall(SYS_futex, word, FUTEX_WAIT, value, &timeout, NULL, 0);
}

void heddle_futex_wake(const uint32_t *word) {
    (void)syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
