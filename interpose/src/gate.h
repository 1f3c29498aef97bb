/* Waiting at the gate, in the caller's own thread. */
#ifndef HEDDLE_GATE_WAIT_H
#define HEDDLE_GATE_WAIT_H

#include <stdint.h>

/* The gate word of a device slot, as it counts now: without a daemon the fail mode is applied. */
uint32_t heddle_gate_word(uint32_t device);

/*
 * Returns when the launch may go on. Not for a client that nothing bounds. The result is the gap token
 * that the launch holds and has to give back, 0 = none.
 */
uint64_t heddle_gate_pass(uint32_t device, uint64_t key);

/* The device time that a kernel is taken to need: its profile's, else its class's. */
struct heddle_prediction {
    uint64_t ns;
    uint32_t flags; /* HEDDLE_PROFILE_ */
};

struct heddle_prediction heddle_gate_predict(uint32_t device, uint64_t key);

#endif /* HEDDLE_GATE_WAIT_H */
