/* Open stream captures of this process. */
#ifndef HEDDLE_CAPTURE_H
#define HEDDLE_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

/* Whether any capture is open. */
bool heddle_capture_open(void);

/* Whether a launch on this stream goes into a graph instead of to the device. */
bool heddle_capture_covers(void *stream, bool per_thread);

/* A stream that captures is destroyed: its capture ends with it. */
void heddle_capture_forget(void *stream);
void heddle_capture_reset(void);

#endif /* HEDDLE_CAPTURE_H */
