#include "device.h"

#include <stdlib.h>

#include "call.h"

static bool prepare_launches(struct play_device *device, const struct play_table *table,
                             const struct play_ptx *ptx, double speed, struct play_error *err) {
    const struct play_driver *driver = &device->driver;
    CUfunction *functions = calloc(ptx->count, sizeof(CUfunction));
    int *occupancy = calloc(ptx->count, sizeof *occupancy);
    bool ok = functions != NULL && occupancy != NULL;

    device->launches = calloc(table->count, sizeof *device->launches);
    device->count = table->count;
    if (!ok || device->launches == NULL) {
        ok = play_fail(err, "prepare %zu launches: out of memory", table->count);
    }
    for (size_t i = 0; ok && i < ptx->count; i++) {
        ok = PLAY_TRY(device->place, driver, module_function, cuModuleGetFunction,
                      (&functions[i], device->module, ptx->names[i]), err) &&
             PLAY_TRY(device->place, driver, occupancy, cuOccupancyMaxActiveBlocksPerMultiprocessor,
                      (&occupancy[i], functions[i], PLAY_PTX_BLOCK_SIZE, 0), err);
        if (ok && occupancy[i] < 1) {
            ok = play_fail(err, "kernel %s: a block does not fit an SM", ptx->names[i]);
        }
    }
    for (size_t i = 0; ok && i < table->count; i++) {
        const struct play_kernel *kernel = &table->kernels[i];
        const uint64_t sms = (uint64_t)device->multiprocessors;
        const uint64_t waves = (kernel->sms + sms - 1) / sms;
        const uint64_t time_ns = (uint64_t)((double)kernel->time_ns / speed);

        device->launches[i] = (struct play_launch){
            .function = functions[kernel->entry],
            .grid = kernel->sms * (unsigned)occupancy[kernel->entry],
            .time_ns = time_ns,
            .block_ns = time_ns / waves,
            .tag = i + 1,
        };
    }
    free(functions);
    free(occupancy);
    return ok;
}

static bool choose_device(struct play_device *device, int ordinal, struct play_error *err) {
    const struct play_driver *driver = &device->driver;
    int count = 0;

    if (!PLAY_TRY(device->place, driver, device_count, cuDeviceGetCount, (&count), err)) {
        return false;
    }
    if (ordinal >= count) {
        return play_fail(err, "device %d: there are %d", ordinal, count);
    }
    return PLAY_TRY(device->place, driver, device_get, cuDeviceGet, (&device->device, ordinal),
                    err) &&
           PLAY_TRY(device->place, driver, device_name, cuDeviceGetName,
                    (device->name, (int)sizeof device->name - 1, device->device), err) &&
           PLAY_TRY(device->place, driver, device_attribute, cuDeviceGetAttribute,
                    (&device->multiprocessors, PLAY_ATTRIBUTE_MULTIPROCESSOR_COUNT, device->device),
                    err);
}

bool play_device_open(struct play_device *device, int ordinal, struct play_table *table,
                      double speed, struct play_place *place, struct play_error *err) {
    struct play_ptx ptx;

    *device = (struct play_device){.place = place};
    play_place_call(place, "cuInit");
    if (!play_driver_open(&device->driver, err) || !choose_device(device, ordinal, err)) {
        return false;
    }
    if (device->multiprocessors < 1) {
        return play_fail(err, "device %d: %d multiprocessors", ordinal, device->multiprocessors);
    }
    const struct play_driver *driver = &device->driver;
    if (!PLAY_TRY(device->place, driver, primary_retain, cuDevicePrimaryCtxRetain,
                  (&device->context, device->device), err) ||
        !PLAY_TRY(device->place, driver, set_current, cuCtxSetCurrent, (device->context), err) ||
        !play_ptx_build(table, &ptx, err)) {
        play_device_close(device);
        return false;
    }
    const bool ok = PLAY_TRY(device->place, driver, module_load, cuModuleLoadData,
                             (&device->module, ptx.text), err) &&
                    prepare_launches(device, table, &ptx, speed, err);
    play_ptx_free(&ptx);
    if (!ok) {
        play_device_close(device);
    }
    return ok;
}

void play_device_close(struct play_device *device) {
    const struct play_driver *driver = &device->driver;

    free(device->launches);
    device->launches = NULL;
    if (device->module != NULL) {
        PLAY_CALL(device->place, driver, module_unload, cuModuleUnload, (device->module));
        device->module = NULL;
    }
    if (device->context != NULL) {
        PLAY_CALL(device->place, driver, primary_release, cuDevicePrimaryCtxRelease_v2,
                  (device->device));
        device->context = NULL;
    }
}
