/*
 * A timeline: what the client tells the daemon of each launch while somebody looks. The device time of
 * most launches is not measured for it, since that costs more than the launch.
 */
#ifndef HEDDLE_TRACE_H
#define HEDDLE_TRACE_H

#include <stdint.h>

#include "client.h"
#include "launch.h"

struct heddle_gate_input;
struct heddle_gate_answer;

/* The timeline that is wanted now, 0 = none. */
static inline uint32_t heddle_trace_wanted(void) {
    return heddle_load_relaxed32(&heddle_verdict()->process.trace);
}

/* Just before the driver is called for a launch that may go on, and when the call has returned. */
void heddle_trace_begin(struct heddle_launch *launch, const struct heddle_shape *shape);
void heddle_trace_end(const struct heddle_launch *launch);

/* The device time of a launch, told by the time at which it began and its stream. */
void heddle_trace_device(const struct heddle_sample_record *sample, uint64_t began_ns,
                         uint32_t stream);

/* What a caller waits for at the gate, and since when; all zero: for nothing. */
struct heddle_trace_wait {
    uint64_t since_ns;
    uint32_t reason;
    uint32_t peer;
    uint32_t flags; /* enum heddle_trace_flags */
};

/* The gate has answered. Where the answer is another than before, the time until now is told. */
void heddle_trace_turn(struct heddle_trace_wait *wait, const struct heddle_trace_wait *next,
                       uint32_t device, uint64_t key, const struct heddle_gate_input *input);

/* An idle time of the device that is over now, and the length that was foretold, 0 = none was. */
void heddle_trace_gap(uint32_t device, uint64_t kernel, uint64_t since_ns, uint64_t now_ns,
                      uint64_t guess_ns);

#endif /* HEDDLE_TRACE_H */
