/* Waiting at the gate, in the caller's own thread. */
#ifndef HEDDLE_GATE_WAIT_H
#define HEDDLE_GATE_WAIT_H

#include <stdint.h>

#include "client.h"
#include "connect.h"

/*
 * The gate word of a device slot, as it counts now: without a daemon the fail mode is applied. Only
 * what closes the gate depends on the daemon's life.
 */
static inline uint32_t heddle_gate_word(uint32_t device) {
    const uint32_t gate = heddle_load_acquire32(&heddle_verdict()->devices[device].gate);
    const uint32_t passing = HEDDLE_GATE_KNOWN & ~(uint32_t)HEDDLE_GATE_CLOSED;

    if ((gate & ~passing) != 0 && !heddle_connect_alive() &&
        heddle_load_relaxed32(&heddle_verdict()->process.fail_mode) != HEDDLE_FAIL_CLOSED) {
        return gate & passing;
    }
    return gate;
}

/* What a launch that may go on has to give back. */
struct heddle_turn {
    uint64_t token;   /* of a gap, 0 = none */
    uint64_t room_ns; /* in the window, 0 = none */
};

/* Returns when the launch may go on. Not for a client that nothing bounds. */
struct heddle_turn heddle_gate_pass(uint32_t device, uint64_t key);

/*
 * The device time that a kernel is taken to need: its profile's, else its class's. A profile is made
 * of what programs tell. Where launches are measured it is believed to say less than the class only
 * of a kernel that was measured here, and never less than that.
 */
struct heddle_prediction {
    uint64_t ns;
    uint32_t flags; /* HEDDLE_PROFILE_ */
};

struct heddle_prediction heddle_gate_predict(uint32_t device, uint64_t key);

#endif /* HEDDLE_GATE_WAIT_H */
