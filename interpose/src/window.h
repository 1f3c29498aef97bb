/* The bound on a client's own outstanding work, kept with events of ours. */
#ifndef HEDDLE_WINDOW_H
#define HEDDLE_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

/* Predicted device time of launches not known to be complete. */
uint64_t heddle_window_outstanding(uint32_t device);

struct heddle_launch;

/* After a launch: adds it. A gap token that it holds is given back when it is complete. */
void heddle_window_add(const struct heddle_launch *launch, uint64_t estimate_ns, bool steady);

/*
 * How long to sleep while the oldest launch runs: until it ends where its time is steady, else a part
 * of the time that it has had, so that a short run of a kernel that can be long is not overslept.
 */
uint64_t heddle_window_pause(uint64_t elapsed_ns, uint64_t left_ns, bool steady);

/* Sleeps so long once. */
void heddle_window_wait(uint32_t device);

/* A context is gone, and the events in it. */
void heddle_window_forget_context(const void *context);

void heddle_window_reset(void);

#endif /* HEDDLE_WINDOW_H */
