/* The bound on a client's own outstanding work, kept with events of ours. */
#ifndef HEDDLE_WINDOW_H
#define HEDDLE_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Predicted device time of launches that are not known to be complete, or about to be made; without
 * end if there are more than can be watched.
 */
uint64_t heddle_window_outstanding(uint32_t device);

/*
 * Takes room for a launch that may be made, so that several threads do not take the same. False if
 * there is none any more. With window_ns = UINT64_MAX there always is. Given back with the launch's
 * event, or by leave.
 */
bool heddle_window_reserve(uint32_t device, uint64_t room_ns, uint64_t window_ns);
void heddle_window_leave(uint32_t device, uint64_t room_ns);

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
