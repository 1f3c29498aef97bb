/* How many streams of a device have outstanding work, as others see it. */
#ifndef HEDDLE_BUSY_H
#define HEDDLE_BUSY_H

#include <stdint.h>

struct heddle_stream;

void heddle_busy_begin(uint32_t device);

/* The stream tells what came last, and so what may come next; NULL tells nothing. */
void heddle_busy_end(uint32_t device, const struct heddle_stream *stream);
void heddle_busy_reset(void);

#endif /* HEDDLE_BUSY_H */
