/* How a grid maps to SMs: blocks per SM, SM need, waves. */
#include "engine.h"

static uint32_t min32(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

uint32_t sg_blocks_per_sm(const struct sg_sm_limits *sm, const struct sg_footprint *fp) {
    /* Threads are given out in warps of 32, registers in units of 256 per warp, shared memory with
     * 1 KiB of the system's own per block. */
    uint32_t threads = (fp->threads + 31) / 32 * 32;
    if (threads == 0 || threads > sm->threads) {
        return 0;
    }
    uint32_t b = min32(sm->blocks, sm->threads / threads);
    if (fp->registers != 0) {
        uint32_t per_warp = (fp->registers * 32 + 255) / 256 * 256;
        b = min32(b, sm->registers / (per_warp * (threads / 32)));
    }
    if (fp->smem != 0) {
        b = min32(b, sm->smem / (fp->smem + 1024));
    }
    return b;
}

void sg_kernel_shape(struct softgpu_op *op, const struct sg_sm_limits *sm,
                     const struct sg_footprint *fp, uint32_t sm_count) {
    uint32_t b = sg_blocks_per_sm(sm, fp);
    if (b == 0) {
        b = 1; /* the driver refuses such a launch before; the model stays finite */
    }
    uint64_t need = (fp->blocks + b - 1) / b;
    if (need == 0) {
        need = 1;
    }
    if (need > UINT32_MAX) {
        need = UINT32_MAX;
    }
    op->need = (uint32_t)need;
    op->waves = (uint32_t)((need + sm_count - 1) / sm_count);
    op->want = min32(op->need, sm_count);
}

uint32_t sg_mps_cap(uint32_t sm_count, uint32_t percent) {
    if (percent == 0 || percent >= 100) {
        return sm_count;
    }
    uint32_t cap = (uint32_t)((uint64_t)sm_count * percent / 100) / 2 * 2;
    return cap < 2 ? min32(2, sm_count) : cap;
}
