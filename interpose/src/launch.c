#include "launch.h"

#include "capture.h"
#include "connect.h"
#include "device.h"
#include "driver.h"
#include "gate.h"
#include "graph_memory.h"
#include "stream.h"
#include "thread.h"
#include "token.h"
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

void heddle_launch_enter(struct heddle_launch *launch, void *stream, bool per_thread, bool graph) {
    *launch = (struct heddle_launch){
        .handle = stream, .per_thread = per_thread, .graph = graph, .device = HEDDLE_DEVICE_NONE};
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
    if ((launch->gate & ~(uint32_t)HEDDLE_GATE_PUBLISH) != 0) {
        launch->token = heddle_gate_pass((uint32_t)launch->device);
    }
    launch->stream = heddle_stream_obtain(stream, per_thread, (uint32_t)launch->device);
    if (launch->stream != NULL) {
        heddle_stream_dirty(launch->stream);
    }
}

/*
 * Apart, so that the launches that need none of it save no registers for it. A gap's token goes with
 * the launch's event; without a launch nothing fills the gap, without an event its end is not seen.
 */
static __attribute__((noinline)) void after(const struct heddle_launch *launch, int result) {
    const bool marked = launch->stream != NULL && (launch->gate & HEDDLE_GATE_WINDOW) != 0 &&
                        result == HEDDLE_CUDA_SUCCESS;

    if (launch->token != 0 && !marked) {
        heddle_token_release((uint32_t)launch->device, launch->token);
    }
    if (launch->graph && launch->stream != NULL) {
        heddle_graph_memory_refresh();
    }
    if (marked) {
        const struct heddle_verdict_device *verdict = &heddle_verdict()->devices[launch->device];

        heddle_window_add((uint32_t)launch->device, launch->handle, launch->per_thread,
                          heddle_load_relaxed64(&verdict->estimate_ns), launch->token);
    }
}

void heddle_launch_leave(struct heddle_launch *launch, int result) {
    heddle_thread.depth--;
    if (launch->stream != NULL) {
        heddle_stream_dirty(launch->stream);
    }
    if (launch->graph || launch->token != 0 || (launch->gate & HEDDLE_GATE_WINDOW) != 0) {
        after(launch, result);
    }
}
