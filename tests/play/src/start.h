/* Starting at one time with other processes. */
#ifndef PLAY_START_H
#define PLAY_START_H

#include <stdatomic.h>
#include <stdint.h>

#include "error.h"

/*
 * Says "ready" on ready_fd, waits on start_fd for a line with a time (CLOCK_MONOTONIC ns), and
 * sleeps until then; a descriptor of -1 leaves its step out. *start is the time it was for. *stop
 * ends every wait, and then the start is now.
 */
bool play_wait_for_start(int ready_fd, int start_fd, uint64_t start_at, const atomic_bool *stop,
                         uint64_t *start, struct play_error *err);

#endif /* PLAY_START_H */
