/* Open stream captures of this process. */
#ifndef HEDDLE_CAPTURE_H
#define HEDDLE_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "heddle/atomic.h"

extern uint32_t heddle_capture_count; /* captures that are open */

/* Whether any capture is open. */
static inline bool heddle_capture_open(void) {
    return heddle_load_acquire32(&heddle_capture_count) != 0;
}

/* Asks the driver whether a stream captures. */
bool heddle_capture_asks(void *stream, bool per_thread);

/* Whether a launch on this stream goes into a graph instead of to the device. */
static inline bool heddle_capture_covers(void *stream, bool per_thread) {
    return heddle_capture_open() && heddle_capture_asks(stream, per_thread);
}

/*
 * While any thread captures in global mode a call of ours about events or kernels would spoil its
 * capture. Relaxed mode says that this thread knows what it does; it is put back at once. Returns
 * the mode before.
 */
int heddle_capture_exchange(int mode);

/* A stream that captures is destroyed: its capture ends with it. */
void heddle_capture_forget(void *stream);
void heddle_capture_reset(void);

#endif /* HEDDLE_CAPTURE_H */
