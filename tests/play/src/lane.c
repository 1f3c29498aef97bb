#include "lane.h"

#include <inttypes.h>

#include "call.h"

static bool launch_all(struct play_lane *lane, struct play_error *err) {
    struct play_device *device = lane->device;
    const struct play_driver *driver = &device->driver;

    for (size_t i = 0; i < device->count; i++) {
        struct play_launch *launch = &device->launches[i];
        void *parameters[] = {&lane->state, &launch->time_ns, &launch->block_ns, &launch->tag};
        const CUresult result =
            PLAY_CALL(lane->place, driver, launch, cuLaunchKernel,
                      (launch->function, launch->grid, 1, 1, PLAY_PTX_BLOCK_SIZE, 1, 1, 0,
                       lane->stream, parameters, NULL));
        if (result != PLAY_CUDA_SUCCESS) {
            return play_driver_ok(driver, result, "cuLaunchKernel", err);
        }
    }
    return true;
}

static bool capture(struct play_lane *lane, struct play_error *err) {
    const struct play_driver *driver = &lane->device->driver;
    CUgraph graph = NULL;

    if (!PLAY_TRY(lane->place, driver, capture_begin, cuStreamBeginCapture_v2,
                  (lane->stream, PLAY_CAPTURE_THREAD_LOCAL), err)) {
        return false;
    }
    const bool launched = launch_all(lane, err);
    const CUresult ended =
        PLAY_CALL(lane->place, driver, capture_end, cuStreamEndCapture, (lane->stream, &graph));
    if (!launched) {
        return false;
    }
    if (!play_driver_ok(driver, ended, "cuStreamEndCapture", err)) {
        return false;
    }
    const bool ok = PLAY_TRY(lane->place, driver, graph_instantiate, cuGraphInstantiateWithFlags,
                             (&lane->graph, graph, 0), err);
    PLAY_CALL(lane->place, driver, graph_destroy, cuGraphDestroy, (graph));
    return ok;
}

bool play_lane_open(struct play_lane *lane, struct play_device *device, bool graph,
                    struct play_error *err) {
    const struct play_driver *driver = &device->driver;
    const uint64_t zero = 0;

    *lane = (struct play_lane){.device = device, .place = device->place};
    if (!PLAY_TRY(lane->place, driver, stream_create, cuStreamCreate,
                  (&lane->stream, PLAY_STREAM_NON_BLOCKING), err) ||
        !PLAY_TRY(lane->place, driver, memory_alloc, cuMemAlloc_v2,
                  (&lane->state, sizeof lane->expected), err) ||
        !PLAY_TRY(lane->place, driver, copy_to_device, cuMemcpyHtoD_v2,
                  (lane->state, &zero, sizeof zero), err) ||
        (graph && !capture(lane, err))) {
        play_lane_close(lane);
        return false;
    }
    return true;
}

void play_lane_close(struct play_lane *lane) {
    const struct play_driver *driver = &lane->device->driver;

    lane->place = lane->device->place;
    if (lane->graph != NULL) {
        PLAY_CALL(lane->place, driver, graph_exec_destroy, cuGraphExecDestroy, (lane->graph));
    }
    if (lane->state != 0) {
        PLAY_CALL(lane->place, driver, memory_free, cuMemFree_v2, (lane->state));
    }
    if (lane->stream != NULL) {
        PLAY_CALL(lane->place, driver, stream_destroy, cuStreamDestroy_v2, (lane->stream));
    }
    lane->graph = NULL;
    lane->state = 0;
    lane->stream = NULL;
}

bool play_lane_enter(struct play_lane *lane, struct play_place *place, struct play_error *err) {
    const struct play_driver *driver = &lane->device->driver;

    lane->place = place;
    return PLAY_TRY(lane->place, driver, set_current, cuCtxSetCurrent, (lane->device->context),
                    err);
}

bool play_lane_pass(struct play_lane *lane, struct play_error *err) {
    const struct play_driver *driver = &lane->device->driver;

    if (lane->graph != NULL) {
        if (!PLAY_TRY(lane->place, driver, graph_launch, cuGraphLaunch, (lane->graph, lane->stream),
                      err)) {
            return false;
        }
    } else if (!launch_all(lane, err)) {
        return false;
    }
    if (!PLAY_TRY(lane->place, driver, stream_wait, cuStreamSynchronize, (lane->stream), err)) {
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

    if (!PLAY_TRY(lane->place, driver, copy_to_host, cuMemcpyDtoH_v2,
                  (&state, lane->state, sizeof state), err)) {
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
