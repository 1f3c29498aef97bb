/* How many streams of a device have outstanding work, as others see it. */
#ifndef HEDDLE_BUSY_H
#define HEDDLE_BUSY_H

#include <stdint.h>

void heddle_busy_begin(uint32_t device);
void heddle_busy_end(uint32_t device);
void heddle_busy_reset(void);

#endif /* HEDDLE_BUSY_H */
