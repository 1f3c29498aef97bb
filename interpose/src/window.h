/* The bound on a client's own outstanding work, kept with events of ours. */
#ifndef HEDDLE_WINDOW_H
#define HEDDLE_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

/* Predicted device time of launches not known to be complete. */
uint64_t heddle_window_outstanding(uint32_t device);

/* After a launch: adds it. A gap token that it holds is given back when it is complete. */
void heddle_window_add(uint32_t device, void *stream, bool per_thread, uint64_t estimate_ns,
                       uint64_t token);

/* Sleeps for a part of the window. */
void heddle_window_wait(uint32_t device);

/* A context is gone, and the events in it. */
void heddle_window_forget_context(const void *context);

void heddle_window_reset(void);

#endif /* HEDDLE_WINDOW_H */
