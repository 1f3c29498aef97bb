#include "launch.h"

#include "capture.h"
#include "connect.h"
#include "device.h"
#include "driver.h"
#include "gate.h"
#include "graph_memory.h"
#include "measure.h"
#include "stream.h"
#include "thread.h"
#include "token.h"
#include "trace.h"
#include "window.h"

/* Known to the trampolines. */
HEDDLE_ASSERT_LAYOUT(offsetof(struct heddle_thread, counter) == 0);
HEDDLE_ASSERT_LAYOUT(offsetof(struct heddle_verdict_segment, process.gate) == 64);

/*
 * A driver may call its own exports through the dynamic linker and so come back to us inside a
 * launch that has had its turn. Such a call is not a launch of the program.
 */
static bool nested(void) {
    return heddle_thread.depth++ > 0;
}

/* What takes a launch further than telling its peers; and of that, what holds or bounds it. */
static const uint32_t further = ~(uint32_t)HEDDLE_GATE_PUBLISH;
static const uint32_t holding = ~(uint32_t)(HEDDLE_GATE_PUBLISH | HEDDLE_GATE_MEASURE);

/* Apart, as after: a launch that only tells its peers fills in no more than it has to. */
static __attribute__((noinline)) void take_turn(struct heddle_launch *launch,
                                                const struct heddle_shape *shape, void *stream,
                                                bool per_thread) {
    launch->handle = stream;
    launch->per_thread = per_thread;
    launch->pair = 0;
    launch->token = 0;
    launch->room_ns = 0;
    launch->key = 0;
    launch->began_ns = 0;
    if ((launch->gate & holding) != 0) {
        struct heddle_turn turn;

        launch->key = heddle_kernel_key(shape);
        turn = heddle_gate_pass((uint32_t)launch->device, launch->key);
        launch->token = turn.token;
        launch->room_ns = turn.room_ns;
    }
}

/* A kernel that is predicted has to be proven first, too. */
static bool measures(const struct heddle_launch *launch) {
    const bool predicted = (launch->gate & holding) != 0;

    return launch->stream != NULL &&
           heddle_measure_due(predicted && heddle_kernel_unproven(launch->key));
}

/* Apart, too. The last thing before the driver is called: the time is of the call. */
static __attribute__((noinline)) void watch(struct heddle_launch *launch,
                                            const struct heddle_shape *shape) {
    if (measures(launch)) {
        heddle_measure_begin(launch, shape);
    }
    if (heddle_trace_wanted() != 0) {
        heddle_trace_begin(launch, shape);
    }
}

void heddle_launch_enter(struct heddle_launch *launch, const struct heddle_shape *shape,
                         void *stream, bool per_thread) {
    const bool graph = (shape->shared & HEDDLE_SHAPE_GRAPH) != 0;

    launch->stream = NULL;
    launch->gate = 0;
    launch->graph = graph;
    if (nested()) {
        heddle_thread_uncount();
        return;
    }
    if (heddle_thread.counter == NULL) { /* else this was seen to, and the trampoline counted */
        heddle_connect_ensure();
        heddle_thread_count();
    }
    if (heddle_load_relaxed32(&heddle_verdict()->process.gate) == 0 && heddle_device_count() != 0) {
        return;
    }
    launch->device = heddle_device_current();
    if (launch->device == HEDDLE_DEVICE_NONE || heddle_capture_covers(stream, per_thread)) {
        return;
    }
    launch->gate = heddle_gate_word((uint32_t)launch->device);
    if (launch->gate == 0) {
        return;
    }
    if (graph) {
        heddle_add_seq_cst64(&heddle_client()->devices[launch->device].graph_launches, 1);
    }
    if (heddle_capture_open()) {
        launch->gate &= HEDDLE_GATE_PUBLISH; /* a process that captures is not held */
    }
    if ((launch->gate & further) != 0) {
        take_turn(launch, shape, stream, per_thread);
    }
    launch->stream = heddle_stream_obtain(stream, per_thread, (uint32_t)launch->device);
    if (launch->stream != NULL) {
        heddle_stream_remember(launch->stream, shape);
        heddle_stream_dirty(launch->stream);
    }
    if ((launch->gate & HEDDLE_GATE_MEASURE) != 0) {
        watch(launch, shape);
    }
}

/*
 * Apart, so that the launches that need none of it save no registers for it. A gap's token goes with
 * the launch's event; without a launch nothing fills the gap, without an event its end is not seen.
 */
static __attribute__((noinline)) void after(const struct heddle_launch *launch, int result) {
    const bool marked = (launch->gate & HEDDLE_GATE_WINDOW) != 0 && result == HEDDLE_CUDA_SUCCESS;

    if ((launch->gate & further) != 0 && launch->began_ns != 0 && result == HEDDLE_CUDA_SUCCESS) {
        heddle_trace_end(launch);
    }
    if ((launch->gate & further) != 0 && launch->pair != 0) {
        heddle_measure_end(launch, result);
    }
    if ((launch->gate & further) != 0 && launch->token != 0 && !marked) {
        heddle_token_release((uint32_t)launch->device, launch->token);
    }
    if ((launch->gate & further) != 0 && launch->room_ns != 0 && !marked) {
        heddle_window_leave((uint32_t)launch->device, launch->room_ns);
    }
    if (launch->graph && launch->stream != NULL) {
        heddle_graph_memory_refresh();
    }
    if (marked) {
        const struct heddle_prediction prediction =
            heddle_gate_predict((uint32_t)launch->device, launch->key);

        heddle_window_add(launch, prediction.ns, (prediction.flags & HEDDLE_PROFILE_STEADY) != 0);
    }
}

void heddle_launch_leave(struct heddle_launch *launch, int result) {
    heddle_thread.depth--;
    if (launch->stream != NULL) {
        heddle_stream_dirty(launch->stream);
    }
    if (launch->graph || (launch->gate & further) != 0) {
        after(launch, result);
    }
}
