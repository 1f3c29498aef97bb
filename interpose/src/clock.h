/* The clock of the segments: the counter with the daemon's scale, else CLOCK_MONOTONIC. */
#ifndef HEDDLE_CLOCK_H
#define HEDDLE_CLOCK_H

#include <stdint.h>

uint64_t heddle_clock_now(void);

#endif /* HEDDLE_CLOCK_H */
