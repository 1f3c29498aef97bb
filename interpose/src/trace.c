#include "trace.h"

#include "clock.h"
#include "heddle/gate.h"
#include "heddle/profile.h"
#include "kernel.h"
#include "stream.h"
#include "tell.h"

static uint64_t passed(uint64_t since_ns, uint64_t now_ns) {
    return now_ns > since_ns ? now_ns - since_ns : 0;
}

/* What the kernel's profile says; its class's estimate would be no news of the kernel. */
static uint64_t guess(uint64_t key) {
    struct heddle_profile_entry entry;

    return key != 0 && heddle_profile_find(heddle_verdict()->profile, key, &entry)
               ? entry.estimate_ns
               : 0;
}

static uint32_t stream_of(const struct heddle_launch *launch) {
    return launch->stream != NULL ? heddle_stream_number(launch->stream) : UINT32_MAX;
}

/* Whoever reads a timeline may never have heard of the kernel: each one describes its kernels anew. */
void heddle_trace_begin(struct heddle_launch *launch, const struct heddle_shape *shape) {
    if (launch->key == 0) {
        launch->key = heddle_kernel_key(shape);
    }
    heddle_kernel_traced(launch->key, shape, heddle_trace_wanted());
    launch->began_ns = heddle_clock_now();
}

void heddle_trace_end(const struct heddle_launch *launch) {
    const uint64_t now = heddle_clock_now();
    const uint32_t measured = launch->pair != 0 ? HEDDLE_TRACE_MEASURED : 0;
    const uint32_t graph = launch->graph ? HEDDLE_TRACE_GRAPH : 0;
    const struct heddle_trace_record record = {.time_ns = launch->began_ns,
                                               .duration_ns = passed(launch->began_ns, now),
                                               .kernel = launch->key,
                                               .guess_ns = guess(launch->key),
                                               .stream = stream_of(launch),
                                               .device_slot = (uint32_t)launch->device,
                                               .kind = HEDDLE_TRACE_LAUNCH,
                                               .flags = measured | graph};

    heddle_tell_trace(&record);
}

void heddle_trace_device(const struct heddle_sample_record *sample, uint64_t began_ns,
                         uint32_t stream) {
    const uint32_t graph = (sample->flags & HEDDLE_SAMPLE_GRAPH) != 0 ? HEDDLE_TRACE_GRAPH : 0;
    const struct heddle_trace_record record = {.time_ns = began_ns,
                                               .duration_ns = sample->device_ns,
                                               .kernel = sample->kernel,
                                               .stream = stream,
                                               .device_slot = sample->device_slot,
                                               .kind = HEDDLE_TRACE_DEVICE,
                                               .flags = graph};

    heddle_tell_trace(&record);
}

static bool holds(uint32_t reason) {
    return reason != HEDDLE_GATE_OPEN && reason != HEDDLE_GATE_OVERRUN;
}

void heddle_trace_turn(struct heddle_trace_wait *wait, const struct heddle_trace_wait *next,
                       uint32_t device, uint64_t key, const struct heddle_gate_input *input) {
    if (wait->since_ns != 0 && wait->reason == next->reason && wait->peer == next->peer) {
        return;
    }
    if (wait->since_ns != 0 && heddle_trace_wanted() != 0) {
        const uint32_t overrun = next->reason == HEDDLE_GATE_OVERRUN ? HEDDLE_TRACE_OVERRUN : 0;
        const struct heddle_trace_record record = {.time_ns = wait->since_ns,
                                                   .duration_ns =
                                                       passed(wait->since_ns, input->now_ns),
                                                   .kernel = key,
                                                   .guess_ns = input->estimate_ns,
                                                   .stream = UINT32_MAX,
                                                   .device_slot = device,
                                                   .kind = HEDDLE_TRACE_HOLD,
                                                   .flags = wait->flags | overrun,
                                                   .reason = wait->reason,
                                                   .peer = wait->peer};

        heddle_tell_trace(&record);
    }
    *wait = holds(next->reason) ? *next : (struct heddle_trace_wait){0};
}

void heddle_trace_gap(uint32_t device, uint64_t kernel, uint64_t since_ns, uint64_t now_ns,
                      uint64_t guess_ns) {
    const struct heddle_trace_record record = {.time_ns = since_ns,
                                               .duration_ns = passed(since_ns, now_ns),
                                               .kernel = kernel,
                                               .guess_ns = guess_ns,
                                               .stream = UINT32_MAX,
                                               .device_slot = device,
                                               .kind = HEDDLE_TRACE_GAP};

    heddle_tell_trace(&record);
}
