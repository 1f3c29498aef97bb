/* What the client had of a device lately, against what its weight is worth. */
#ifndef HEDDLE_SHARE_H
#define HEDDLE_SHARE_H

#include <stdbool.h>
#include <stdint.h>

/* The time over which a share is due. */
enum { HEDDLE_SHARE_SECONDS = 10 };

/* Remembers what was consumed until now. Costs next to nothing if called often. */
void heddle_share_note(uint32_t device, uint64_t now_ns);

/*
 * Whether the client has had less of the last seconds, as far as noted, than its weight is worth: then
 * it need not give way of its own accord.
 */
bool heddle_share_behind(uint32_t device, uint64_t now_ns);

/* Whether it has had less than it is to keep: then it is not made to give way either. */
bool heddle_share_owed(uint32_t device, uint64_t now_ns);

void heddle_share_reset(void);

#endif /* HEDDLE_SHARE_H */
