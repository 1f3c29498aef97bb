/* The device model: what runs on which SMs, and when it is done. No I/O, no clock, no locking:
 * the caller holds the state's lock and says what time it is. docs/device-model.md is its text. */
#ifndef SOFTGPU_ENGINE_H
#define SOFTGPU_ENGINE_H

#include <stdbool.h>

#include "softgpu.h"

/* No event is known. */
static const int64_t SG_NEVER = INT64_MAX;

/* What a kernel asks of an SM. */
struct sg_footprint {
    uint64_t blocks;
    uint32_t threads;
    uint32_t registers; /* per thread */
    uint32_t smem;      /* bytes per block, static and dynamic */
};

struct sg_sm_limits {
    uint32_t threads;
    uint32_t blocks;
    uint32_t registers;
    uint32_t smem;
};

/* Blocks that fit on one SM, 0 if not even one does. */
uint32_t sg_blocks_per_sm(const struct sg_sm_limits *sm, const struct sg_footprint *fp);

/* Fills need, waves and want of a kernel operation. */
void sg_kernel_shape(struct softgpu_op *op, const struct sg_sm_limits *sm,
                     const struct sg_footprint *fp, uint32_t sm_count);

/* SMs that a MPS active-thread percentage leaves: whole pairs, at least one pair. */
uint32_t sg_mps_cap(uint32_t sm_count, uint32_t percent);

/* Takes a free operation (state CLAIMED, the rest zero) or answers SOFTGPU_NONE. */
uint32_t sg_op_take(struct softgpu_state *st);

/* Appends a filled operation to its stream at time `now`. */
void sg_engine_submit(struct softgpu_state *st, uint32_t op, int64_t now);

/* The owner has run what a HOST operation asked for. */
void sg_engine_answer(struct softgpu_state *st, uint32_t op, int64_t now);

/* Moves one unit, or all, to `now`. */
void sg_engine_advance(struct softgpu_state *st, uint32_t unit, int64_t now);
void sg_engine_advance_all(struct softgpu_state *st, int64_t now);

/* Looks at everything again at `now`: after something was taken away. */
void sg_engine_kick(struct softgpu_state *st, uint32_t unit, int64_t now);

/* Takes the oldest completion of a process and gives it back to the pool; false when there is
 * none. */
bool sg_engine_take_done(struct softgpu_state *st, uint32_t proc, struct softgpu_op *out);

/* No earlier than this can the stream have done everything up to position `pos`. */
int64_t sg_engine_bound(const struct softgpu_state *st, uint32_t stream, uint64_t pos, int64_t now);

/* Forgets everything queued or running of a stream, a context or a process. */
void sg_engine_drop_stream(struct softgpu_state *st, uint32_t stream);
void sg_engine_drop_proc(struct softgpu_state *st, uint32_t proc);

/* Rebuilds every list and sum from the operations: a holder of the lock died half-way. */
void sg_engine_repair(struct softgpu_state *st, int64_t now);

/* A unit of `sm_count` SMs at time 0. */
void sg_unit_init(struct softgpu_unit *u, uint32_t device, uint32_t sm_count, uint64_t memory_bytes,
                  const double *bytes_per_ns);

#endif /* SOFTGPU_ENGINE_H */
