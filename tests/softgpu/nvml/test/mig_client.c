/* What the tests of MIG do again and again. Whatever is called must succeed, or the test fails. */
#define _GNU_SOURCE
#include "mig_client.h"

#include <stdio.h>
#include <unistd.h>

#include "check.h"

nvmlDevice_t gpu(unsigned index) {
    nvmlDevice_t d = NULL;
    CHECK_EQ(nvmlDeviceGetHandleByIndex_v2(index, &d), NVML_SUCCESS);
    return d;
}

/* The node, for what only a test looks at; closed by the caller. */
struct sg_node peek(void) {
    struct sg_node node;
    CHECK_EQ(sg_state_open(&node, NULL, NULL), 0);
    return node;
}

nvmlReturn_t set_mode(nvmlDevice_t d, unsigned mode) {
    nvmlReturn_t activation = NVML_ERROR_UNKNOWN;
    CHECK_EQ(nvmlDeviceSetMigMode(d, mode, &activation), NVML_SUCCESS);
    return activation;
}

void check_mode(nvmlDevice_t d, unsigned want, unsigned want_pending) {
    unsigned current = 9, pending = 9;
    CHECK_EQ(nvmlDeviceGetMigMode(d, &current, &pending), NVML_SUCCESS);
    CHECK_EQ(current, want);
    CHECK_EQ(pending, want_pending);
}

nvmlReturn_t create_at(nvmlDevice_t d, unsigned profile, unsigned start, unsigned size,
                       nvmlGpuInstance_t *gi) {
    nvmlGpuInstancePlacement_t place = {.start = start, .size = size};
    return nvmlDeviceCreateGpuInstanceWithPlacement(d, profile, &place, gi);
}

/* An instance that must come to be, with the id that it must have. */
nvmlGpuInstance_t must_create(nvmlDevice_t d, unsigned profile, unsigned start, unsigned size,
                              unsigned id) {
    nvmlGpuInstance_t gi = NULL;
    nvmlGpuInstanceInfo_t info = {.id = 99};
    CHECK_EQ(create_at(d, profile, start, size, &gi), NVML_SUCCESS);
    CHECK_EQ(nvmlGpuInstanceGetInfo(gi, &info), NVML_SUCCESS);
    CHECK(info.device == d);
    CHECK_EQ(info.id, id);
    CHECK_EQ(info.profileId, profile);
    CHECK_EQ(info.placement.start, start);
    CHECK_EQ(info.placement.size, size);
    return gi;
}

unsigned room_for(nvmlDevice_t d, unsigned profile) {
    unsigned n = 99;
    CHECK_EQ(nvmlDeviceGetGpuInstanceRemainingCapacity(d, profile, &n), NVML_SUCCESS);
    return n;
}

nvmlComputeInstance_t whole_compute(nvmlGpuInstance_t gi, unsigned profile) {
    nvmlComputeInstance_t ci = NULL;
    CHECK_EQ(nvmlGpuInstanceCreateComputeInstance(gi, profile, &ci), NVML_SUCCESS);
    return ci;
}

nvmlDevice_t mig_device_of(nvmlComputeInstance_t ci) {
    nvmlComputeInstanceInfo_t info = {.device = NULL};
    CHECK_EQ(nvmlComputeInstanceGetInfo_v2(ci, &info), NVML_SUCCESS);
    return info.device;
}

unsigned unit_of(unsigned device, unsigned gi, unsigned ci) {
    struct sg_node node = peek();
    unsigned unit = node.st->devices[device].mig[gi].compute[ci].unit;
    sg_state_close(&node);
    return unit;
}

bool has_cap(const char *name) {
    char path[4096], file[4200];
    struct sg_node node = peek();
    bool found = sg_mig_caps_path(&node, path, sizeof path);
    sg_state_close(&node);
    snprintf(file, sizeof file, "%s/%s", path, name);
    return found && access(file, F_OK) == 0;
}
