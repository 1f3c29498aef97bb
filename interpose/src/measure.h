/* The device time of a launch now and then, from events of ours around it. Nothing here waits. */
#ifndef HEDDLE_MEASURE_H
#define HEDDLE_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include "client.h"
#include "launch.h"
#include "thread.h"

/*
 * Whether it is this launch's turn; per thread, so that it costs no shared word. first: one of the
 * first of its kernel, whose turn it is wherever anything is measured.
 */
static inline bool heddle_measure_due(bool first) {
    const uint32_t every = heddle_load_relaxed32(&heddle_verdict()->process.measure_every);

    if (every == 0 || (++heddle_thread.unmeasured < every && !first)) {
        return false;
    }
    heddle_thread.unmeasured = 0;
    return true;
}

/* Before the launch, which is remembered on its stream already, and after it. */
void heddle_measure_begin(struct heddle_launch *launch, const struct heddle_shape *shape);
void heddle_measure_end(const struct heddle_launch *launch, int result);

/* Tells what has become known; costs one load if nothing is awaited. */
void heddle_measure_collect(void);

void heddle_measure_forget_context(const void *context);
void heddle_measure_reset(void);

#endif /* HEDDLE_MEASURE_H */
