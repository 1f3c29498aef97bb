/* A device with a table loaded on it. */
#ifndef PLAY_DEVICE_H
#define PLAY_DEVICE_H

#include "driver.h"
#include "error.h"
#include "place.h"
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
    struct play_place *place; /* of the thread that opens and closes it */
};

/* One launch, prepared so that playing is nothing but driver calls. */
struct play_launch {
    CUfunction function;
    unsigned grid;
    uint64_t time_ns;
    uint64_t block_ns;
    uint64_t tag;
};

/* Opens the driver and loads the module; speed divides every kernel's time. */
bool play_device_open(struct play_device *device, int ordinal, struct play_table *table,
                      double speed, struct play_place *place, struct play_error *err);
void play_device_close(struct play_device *device);

#endif /* PLAY_DEVICE_H */
