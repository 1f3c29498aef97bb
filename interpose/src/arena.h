/* Arenas: where members of a lower class say that they sleep. */
#ifndef HEDDLE_ARENA_H
#define HEDDLE_ARENA_H

#include <stdbool.h>
#include <stdint.h>

#include "heddle/attach.h"

/* Maps an arena as a message says; member decides whether for writing. Closes nothing. */
bool heddle_arena_adopt(const struct heddle_msg_arena *message, int descriptor);

/* Wakes those who wait for this doorbell, if any arena of the device shows a sleeper. */
void heddle_arena_wake(uint32_t device, const uint32_t *doorbell);

/* Around a sleep of the calling thread: sets and clears this client's bit. */
void heddle_arena_sleep(uint32_t device);
void heddle_arena_rise(uint32_t device);

/* The arena in which this client is a member, and its number there; NULL if it is in none. */
struct heddle_arena_segment *heddle_arena_own(uint32_t device, uint32_t *member);

void heddle_arena_forget_all(void);

#endif /* HEDDLE_ARENA_H */
