/* What programs call at their yield points; heddle/yield.h finds both by name. */
#ifndef HEDDLE_YIELD_POINT_H
#define HEDDLE_YIELD_POINT_H

#include <stdint.h>

#define HEDDLE_FOR_PROGRAMS __attribute__((visibility("default")))

/* Waits while a higher class wants the device of the current context; returns for how long. */
HEDDLE_FOR_PROGRAMS uint64_t heddle_yield_v1(uint64_t timeout_ns);

/* 1 while a higher class wants it, else 0. */
HEDDLE_FOR_PROGRAMS int heddle_wanted_v1(void);

#endif /* HEDDLE_YIELD_POINT_H */
