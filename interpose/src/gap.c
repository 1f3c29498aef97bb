#include "gap.h"

#include <stddef.h>
#include <string.h>

#include "client.h"
#include "heddle/gate.h"
#include "heddle/profile.h"
#include "kernel.h"
#include "stream.h"
#include "tell.h"
#include "trace.h"

static struct heddle_gap gaps[HEDDLE_DEVICES_MAX];

struct heddle_gap heddle_gap_after(const struct heddle_stream *stream) {
    struct heddle_gap gap = {0};

    if (stream != NULL) {
        const struct heddle_shape last = heddle_stream_last(stream);
        const struct heddle_shape before = heddle_stream_before(stream);

        gap.kernel = heddle_kernel_key(&last);
        gap.previous = heddle_kernel_key(&before);
    }
    return gap;
}

/* The pair says more than the kernel alone, if it is known. */
static uint64_t predict(const struct heddle_gap *gap) {
    const struct heddle_profile_entry *table = heddle_verdict()->profile;
    struct heddle_profile_entry entry;

    if (gap->kernel == 0) {
        return 0;
    }
    if (gap->previous != 0 &&
        heddle_profile_find(table, heddle_profile_pair(gap->previous, gap->kernel), &entry) &&
        entry.gap_ns != 0) {
        return entry.gap_ns;
    }
    return heddle_profile_find(table, gap->kernel, &entry) ? entry.gap_ns : 0;
}

void heddle_gap_begin(uint32_t device, const struct heddle_gap *gap, uint64_t now_ns) {
    const uint64_t length = predict(gap);

    gaps[device] = *gap;
    gaps[device].since_ns = now_ns;
    gaps[device].traced = heddle_trace_wanted();
    heddle_store_relaxed64(&heddle_client()->devices[device].next_launch_ns,
                           length != 0 ? heddle_gate_add(now_ns, length) : 0);
}

/*
 * An idle time that began under another timeline is not told: in between launches may have come that
 * went the fast way, and were not seen.
 */
static void trace(uint32_t device, const struct heddle_gap *gap, uint64_t now_ns) {
    const uint64_t next = heddle_load_relaxed64(&heddle_client()->devices[device].next_launch_ns);

    if (gap->since_ns != 0 && gap->traced != 0 && gap->traced == heddle_trace_wanted()) {
        heddle_trace_gap(device, gap->kernel, gap->since_ns, now_ns,
                         next > gap->since_ns ? next - gap->since_ns : 0);
    }
}

void heddle_gap_end(uint32_t device, uint64_t now_ns) {
    const struct heddle_gap *gap = &gaps[device];

    if (gap->kernel != 0 && now_ns >= gap->since_ns &&
        heddle_load_relaxed32(&heddle_verdict()->process.measure_every) != 0) {
        const struct heddle_sample_record sample = {.kernel = gap->kernel,
                                                    .previous = gap->previous,
                                                    .gap_ns = now_ns - gap->since_ns,
                                                    .time_ns = now_ns,
                                                    .device_slot = device,
                                                    .flags = HEDDLE_SAMPLE_GAP};

        heddle_tell_sample(&sample);
    }
    trace(device, gap, now_ns);
    gaps[device] = (struct heddle_gap){0};
}

void heddle_gap_reset(void) {
    memset(gaps, 0, sizeof(gaps));
}
