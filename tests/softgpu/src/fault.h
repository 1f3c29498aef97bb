/* Injected faults: whether one strikes a call. Read without the lock, by every library. */
#ifndef SOFTGPU_FAULT_H
#define SOFTGPU_FAULT_H

#include <stdbool.h>

#include "softgpu.h"

struct sg_call {
    const char *entry; /* exported name */
    uint32_t pid;
    uint32_t device; /* index of the GPU, or SOFTGPU_NONE */
    bool late;       /* the call has done its work */
};

/* Goes through the armed faults, and waits or dies where one that strikes says so. Answers the result of the
 * first that has one, and its flags, or 0. Without armed faults it costs one comparison. */
uint32_t sg_fault_strike(struct softgpu_state *st, const struct sg_call *call, uint32_t *flags);

#endif /* SOFTGPU_FAULT_H */
