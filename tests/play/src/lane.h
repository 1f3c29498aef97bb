/* A device with a table loaded on it, and lanes: one stream each that plays the table in order. */
#ifndef PLAY_LANE_H
#define PLAY_LANE_H

#include "driver.h"
#include "error.h"
#include "ptx.h"
#include "table.h"

struct play_device {
    struct play_driver driver;
    CUdevice device;
    CUcontext context;
    CUmodule module;
    char name[128];
    int multiprocessors;
    struct play_launch *launches; /* one per row of the table */
    size_t count;
};

/* One launch, prepared so that playing is nothing but driver calls. */
struct play_launch {
    CUfunction function;
    unsigned grid;
    uint64_t time_ns;
    uint64_t block_ns;
    uint64_t tag;
};

struct play_lane {
    struct play_device *device;
    CUstream stream;
    CUgraphExec graph; /* NULL: launch by launch */
    CUdeviceptr state;
    uint64_t expected; /* what the state word must be after the passes so far */
    uint64_t passes;
};

/* Opens the driver and loads the module; speed divides every kernel's time. */
bool play_device_open(struct play_device *device, int ordinal, struct play_table *table,
                      double speed, struct play_error *err);
void play_device_close(struct play_device *device);

bool play_lane_open(struct play_lane *lane, struct play_device *device, bool graph,
                    struct play_error *err);
void play_lane_close(struct play_lane *lane);

/* Makes the device the calling thread's own; once per thread before play_lane_pass. */
bool play_lane_enter(const struct play_lane *lane, struct play_error *err);

/* One pass: launches the whole table and waits until it is done. */
bool play_lane_pass(struct play_lane *lane, struct play_error *err);

/* Compares what the kernels left behind with what they must have. */
bool play_lane_check(const struct play_lane *lane, struct play_error *err);

#endif /* PLAY_LANE_H */
