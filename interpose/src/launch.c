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
HEDDLE_ASSERT_LAYOUT(offsetof(struct heddle_thread, count) == 0);
HEDDLE_ASSERT_LAYOUT(offsetof(struct heddle_verdict_segment, process.gate) == 64);

/*
 * A driver may call its own exports through the dynamic linker and so come back to us inside a
 * launch that has had its turn. Such a call is not a launch of the program.
 */
static bool nested(void) {
    return heddle_thread.depth++ > 0;
}

/* What holds a launch or bounds it. */
static const uint32_t holding = ~(uint32_t)(HEDDLE_GATE_PUBLISH | HEDDLE_GATE_MEASURE);

/*
 * Apart, as what follows: a launch that only tells its peers, and one that could be measured and is
 * not, fill in no more than they have to, and save no registers for it.
 */
static __attribute__((noinline)) void fill_in(struct heddle_launch *launch, void *stream,
                                              bool per_thread) {
    launch->rest = true;
    launch->handle = stream;
    launch->per_thread = per_thread;
    launch->pair = 0;
    launch->token = 0;
    launch->room_ns = 0;
    launch->key = 0;
    launch->began_ns = 0;
}

static __attribute__((noinline)) void take_turn(struct heddle_launch *launch,
                                                const struct heddle_shape *shape) {
    const uint64_t key = heddle_kernel_key(shape);
    const struct heddle_turn turn = heddle_gate_pass((uint32_t)launch->device, key);

    launch->key = key;
    launch->token = turn.token;
    launch->room_ns = turn.room_ns;
}

/* A kernel that is predicted has to be proven first. */
static bool first(const struct heddle_launch *launch) {
    return (launch->gate & holding) != 0 && heddle_kernel_unproven(launch->key);
}

/* The last thing before the driver is called: the time is of the call. */
static __attribute__((noinline)) void watch(struct heddle_launch *launch,
                                            const struct heddle_shape *shape, bool measured) {
    if (measured) {
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
    launch->rest = false;
    if (nested()) {
        heddle_thread_uncount();
        return;
    }
    if (!heddle_thread_counted()) {
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
    if ((launch->gate & holding) != 0) {
        fill_in(launch, stream, per_thread);
        take_turn(launch, shape);
    }
    launch->stream = heddle_stream_obtain(stream, per_thread, (uint32_t)launch->device);
    if (launch->stream != NULL) {
        heddle_stream_remember(launch->stream, shape);
        heddle_stream_dirty(launch->stream);
    }
    if ((launch->gate & HEDDLE_GATE_MEASURE) != 0) {
        const bool measured = launch->stream != NULL && heddle_measure_due(first(launch));

        if (measured || heddle_trace_wanted() != 0) {
            if (!launch->rest) {
                fill_in(launch, stream, per_thread);
            }
            watch(launch, shape, measured);
        }
    }
}

/*
 * Apart, too. A gap's token goes with the launch's event; without a launch nothing fills the gap,
 * without an event its end is not seen.
 */
static __attribute__((noinline)) void after(const struct heddle_launch *launch, int result) {
    const bool marked = (launch->gate & HEDDLE_GATE_WINDOW) != 0 && result == HEDDLE_CUDA_SUCCESS;

    if (launch->began_ns != 0 && result == HEDDLE_CUDA_SUCCESS) {
        heddle_trace_end(launch);
    }
    if (launch->pair != 0) {
        heddle_measure_end(launch, result);
    }
    if (launch->token != 0 && !marked) {
        heddle_token_release((uint32_t)launch->device, launch->token);
    }
    if (launch->room_ns != 0 && !marked) {
        heddle_window_leave((uint32_t)launch->device, launch->room_ns);
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
        if (launch->graph) {
            heddle_graph_memory_refresh();
        }
    }
    if (launch->rest) {
        after(launch, result);
    }
}
