#include "lane.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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
        ok = play_driver_ok(driver,
                            driver->module_function(&functions[i], device->module, ptx->names[i]),
                            "cuModuleGetFunction", err) &&
             play_driver_ok(driver,
                            driver->occupancy(&occupancy[i], functions[i], PLAY_PTX_BLOCK_SIZE, 0),
                            "cuOccupancyMaxActiveBlocksPerMultiprocessor", err);
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

    if (!play_driver_ok(driver, driver->device_count(&count), "cuDeviceGetCount", err)) {
        return false;
    }
    if (ordinal >= count) {
        return play_fail(err, "device %d: there are %d", ordinal, count);
    }
    return play_driver_ok(driver, driver->device_get(&device->device, ordinal), "cuDeviceGet",
                          err) &&
           play_driver_ok(
               driver,
               driver->device_name(device->name, (int)sizeof device->name - 1, device->device),
               "cuDeviceGetName", err) &&
           play_driver_ok(driver,
                          driver->device_attribute(&device->multiprocessors,
                                                   PLAY_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                                                   device->device),
                          "cuDeviceGetAttribute", err);
}

bool play_device_open(struct play_device *device, int ordinal, struct play_table *table,
                      double speed, struct play_error *err) {
    struct play_ptx ptx;

    memset(device, 0, sizeof *device);
    if (!play_driver_open(&device->driver, err) || !choose_device(device, ordinal, err)) {
        return false;
    }
    if (device->multiprocessors < 1) {
        return play_fail(err, "device %d: %d multiprocessors", ordinal, device->multiprocessors);
    }
    const struct play_driver *driver = &device->driver;
    if (!play_driver_ok(driver, driver->primary_retain(&device->context, device->device),
                        "cuDevicePrimaryCtxRetain", err) ||
        !play_driver_ok(driver, driver->set_current(device->context), "cuCtxSetCurrent", err) ||
        !play_ptx_build(table, &ptx, err)) {
        play_device_close(device);
        return false;
    }
    const bool ok = play_driver_ok(driver, driver->module_load(&device->module, ptx.text),
                                   "cuModuleLoadData", err) &&
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
        driver->module_unload(device->module);
        device->module = NULL;
    }
    if (device->context != NULL) {
        driver->primary_release(device->device);
        device->context = NULL;
    }
}

static bool launch_all(struct play_lane *lane, struct play_error *err) {
    struct play_device *device = lane->device;
    const struct play_driver *driver = &device->driver;

    for (size_t i = 0; i < device->count; i++) {
        struct play_launch *launch = &device->launches[i];
        void *parameters[] = {&lane->state, &launch->time_ns, &launch->block_ns, &launch->tag};
        const CUresult result =
            driver->launch(launch->function, launch->grid, 1, 1, PLAY_PTX_BLOCK_SIZE, 1, 1, 0,
                           lane->stream, parameters, NULL);
        if (result != PLAY_CUDA_SUCCESS) {
            return play_driver_ok(driver, result, "cuLaunchKernel", err);
        }
    }
    return true;
}

static bool capture(struct play_lane *lane, struct play_error *err) {
    const struct play_driver *driver = &lane->device->driver;
    CUgraph graph = NULL;

    if (!play_driver_ok(driver, driver->capture_begin(lane->stream, PLAY_CAPTURE_THREAD_LOCAL),
                        "cuStreamBeginCapture", err)) {
        return false;
    }
    const bool launched = launch_all(lane, err);
    const CUresult ended = driver->capture_end(lane->stream, &graph);
    if (!launched) {
        return false;
    }
    if (!play_driver_ok(driver, ended, "cuStreamEndCapture", err)) {
        return false;
    }
    const bool ok = play_driver_ok(driver, driver->graph_instantiate(&lane->graph, graph, 0),
                                   "cuGraphInstantiate", err);
    driver->graph_destroy(graph);
    return ok;
}

bool play_lane_open(struct play_lane *lane, struct play_device *device, bool graph,
                    struct play_error *err) {
    const struct play_driver *driver = &device->driver;
    const uint64_t zero = 0;

    *lane = (struct play_lane){.device = device};
    if (!play_driver_ok(driver, driver->stream_create(&lane->stream, PLAY_STREAM_NON_BLOCKING),
                        "cuStreamCreate", err) ||
        !play_driver_ok(driver, driver->memory_alloc(&lane->state, sizeof lane->expected),
                        "cuMemAlloc", err) ||
        !play_driver_ok(driver, driver->copy_to_device(lane->state, &zero, sizeof zero),
                        "cuMemcpyHtoD", err) ||
        (graph && !capture(lane, err))) {
        play_lane_close(lane);
        return false;
    }
    return true;
}

void play_lane_close(struct play_lane *lane) {
    const struct play_driver *driver = &lane->device->driver;

    if (lane->graph != NULL) {
        driver->graph_exec_destroy(lane->graph);
    }
    if (lane->state != 0) {
        driver->memory_free(lane->state);
    }
    if (lane->stream != NULL) {
        driver->stream_destroy(lane->stream);
    }
    lane->graph = NULL;
    lane->state = 0;
    lane->stream = NULL;
}

bool play_lane_enter(const struct play_lane *lane, struct play_error *err) {
    const struct play_driver *driver = &lane->device->driver;

    return play_driver_ok(driver, driver->set_current(lane->device->context), "cuCtxSetCurrent",
                          err);
}

bool play_lane_pass(struct play_lane *lane, struct play_error *err) {
    const struct play_driver *driver = &lane->device->driver;

    if (lane->graph != NULL) {
        if (!play_driver_ok(driver, driver->graph_launch(lane->graph, lane->stream),
                            "cuGraphLaunch", err)) {
            return false;
        }
    } else if (!launch_all(lane, err)) {
        return false;
    }
    if (!play_driver_ok(driver, driver->stream_wait(lane->stream), "cuStreamSynchronize", err)) {
        return false;
    }
    for (size_t i = 0; i < lane->device->count; i++) {
        lane->expected = play_ptx_fold(lane->expected, lane->device->launches[i].tag);
    }
    lane->passes++;
    return true;
}

bool play_lane_check(const struct play_lane *lane, struct play_error *err) {
    const struct play_driver *driver = &lane->device->driver;
    uint64_t state = 0;

    if (!play_driver_ok(driver, driver->copy_to_host(&state, lane->state, sizeof state),
                        "cuMemcpyDtoH", err)) {
        return false;
    }
    if (state != lane->expected) {
        return play_fail(err,
                         "wrong results: state %016" PRIx64 " after %" PRIu64
                         " passes, expected %016" PRIx64
                         ": a kernel was lost, doubled or out of order",
                         state, lane->passes, lane->expected);
    }
    return true;
}
