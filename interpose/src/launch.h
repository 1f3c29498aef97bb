/* What surrounds a launch in the slow path. */
#ifndef HEDDLE_LAUNCH_H
#define HEDDLE_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

struct heddle_stream;

struct heddle_launch {
    void *handle;
    struct heddle_stream *stream; /* NULL: nothing to tell anybody */
    int32_t device;
    bool per_thread;
    bool graph;
    uint32_t gate;
    uint64_t token; /* of the gap that it fills, 0 = none */
};

/* Waits for this launch's turn. Every enter has its leave on the same thread. */
void heddle_launch_enter(struct heddle_launch *launch, void *stream, bool per_thread, bool graph);
void heddle_launch_leave(struct heddle_launch *launch, int result);

#endif /* HEDDLE_LAUNCH_H */
