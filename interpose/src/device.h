/* Device slots: which devices this process uses, in the order it opened them. */
#ifndef HEDDLE_DEVICE_H
#define HEDDLE_DEVICE_H

#include <stdint.h>

#include "heddle/abi.h"
#include "thread.h"

enum { HEDDLE_DEVICE_NONE = -1 };

/* The slot of a device by its ordinal, opened now if it was not; HEDDLE_DEVICE_NONE if full. */
int32_t heddle_device_open(int ordinal);

/* The same of the calling thread's current context: asked for, and as the thread knows it. */
int32_t heddle_device_find(void);

static inline int32_t heddle_device_current(void) {
    return heddle_thread.device_known ? heddle_thread.device : heddle_device_find();
}

/* Forgets what the thread knows of its current context. */
void heddle_device_context_changed(void);

/* The thread's current context, NULL if none. */
void *heddle_device_context(void);

uint32_t heddle_device_count(void);
int heddle_device_ordinal(uint32_t slot);
void heddle_device_reset(void);

#endif /* HEDDLE_DEVICE_H */
