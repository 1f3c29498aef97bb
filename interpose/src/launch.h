/* What surrounds a launch in the slow path. */
#ifndef HEDDLE_LAUNCH_H
#define HEDDLE_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel.h"

struct heddle_stream;

struct heddle_launch {
    struct heddle_stream *stream; /* NULL: nothing to tell anybody */
    int32_t device;
    uint32_t gate;
    bool graph;
    bool rest; /* what follows is filled in: the launch waited for its turn, or is watched */

    bool per_thread;
    uint32_t pair; /* number + 1 of the events that measure it, 0 = none do */
    void *handle;
    uint64_t token;    /* of the gap that it fills, 0 = none */
    uint64_t room_ns;  /* that it takes in the window, 0 = none */
    uint64_t key;      /* of the kernel, found out only for launches that wait for their turn or are
                       told for a timeline */
    uint64_t began_ns; /* when the driver was called, 0 = not told for a timeline */
};

/* Waits for this launch's turn. Every enter has its leave on the same thread. */
void heddle_launch_enter(struct heddle_launch *launch, const struct heddle_shape *shape,
                         void *stream, bool per_thread);
void heddle_launch_leave(struct heddle_launch *launch, int result);

#endif /* HEDDLE_LAUNCH_H */
