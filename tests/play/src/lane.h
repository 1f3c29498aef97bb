/* A lane: one stream that plays the device's table in order. */
#ifndef PLAY_LANE_H
#define PLAY_LANE_H

#include "device.h"

struct play_lane {
    struct play_device *device;
    CUstream stream;
    CUgraphExec graph; /* NULL: launch by launch */
    CUdeviceptr state;
    uint64_t expected; /* what the state word must be after the passes so far */
    uint64_t passes;
    struct play_place *place; /* of the thread that is in it */
};

bool play_lane_open(struct play_lane *lane, struct play_device *device, bool graph,
                    struct play_error *err);
void play_lane_close(struct play_lane *lane);

/* Makes the device the calling thread's own; once per thread before play_lane_pass. */
bool play_lane_enter(struct play_lane *lane, struct play_place *place, struct play_error *err);

/* One pass: launches the whole table and waits until it is done. */
bool play_lane_pass(struct play_lane *lane, struct play_error *err);

/* Compares what the kernels left behind with what they must have. */
bool play_lane_check(const struct play_lane *lane, struct play_error *err);

#endif /* PLAY_LANE_H */
