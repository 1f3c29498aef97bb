/* Contexts: making, ending, and their entries in the state file. */
#include <stdlib.h>
#include <string.h>

#include "driver.h"

/* What a context takes of the device's memory before the program allocates anything. */
static const uint64_t SG_CONTEXT_BYTES = 256ull << 20;

bool sg_ctx_valid(const struct sg_ctx *ctx) {
    return ctx != NULL && ctx->magic == SG_CONTEXT;
}

int sg_ctx_device(const struct sg_ctx *ctx) {
    return ctx->device;
}

enum { MODE_PROHIBITED = 2, MODE_EXCLUSIVE_PROCESS = 3 };

/* The device's compute mode, as NVML sets it; a MIG device has none. Under MPS all clients are one process to
 * it. */
static bool is_allowed(uint32_t unit) {
    const struct softgpu_state *st = sg.node.st;
    uint32_t mode = st->devices[st->units[unit].device].compute_mode;
    bool shared = (st->procs[sg.proc].flags & SOFTGPU_PROC_MPS) != 0;
    if (st->units[unit].instance != SOFTGPU_NONE) {
        return true;
    }
    if (mode != MODE_EXCLUSIVE_PROCESS) {
        return mode != MODE_PROHIBITED;
    }
    for (uint32_t i = 0; i < st->header.context_high; i++) {
        const struct softgpu_context *c = &st->contexts[i];
        if (c->state == SOFTGPU_SLOT_USED && c->unit == unit && c->proc != sg.proc &&
            !(shared && (c->flags & SOFTGPU_CONTEXT_MPS))) {
            return false;
        }
    }
    return true;
}

static uint32_t slot_take(struct sg_ctx *ctx) {
    struct softgpu_state *st = sg.node.st;
    struct softgpu_proc *p = &st->procs[sg.proc];
    for (uint32_t i = 0; i < SOFTGPU_MAX_CONTEXTS; i++) {
        struct softgpu_context *c = &st->contexts[i];
        if (c->state != SOFTGPU_SLOT_FREE) {
            continue;
        }
        uint64_t generation = c->generation;
        memset(c, 0, sizeof(*c));
        c->generation = generation;
        c->proc = sg.proc;
        c->unit = ctx->unit;
        c->legacy_stream = SOFTGPU_NONE;
        c->sm_cap = st->units[ctx->unit].sm_count;
        c->flags = ctx->primary ? SOFTGPU_CONTEXT_PRIMARY : 0;
        if (p->flags & SOFTGPU_PROC_MPS) {
            c->flags |= SOFTGPU_CONTEXT_MPS;
            c->sm_cap = sg_mps_cap(c->sm_cap, p->sm_percent);
        }
        c->state = SOFTGPU_SLOT_USED;
        if (i >= st->header.context_high) {
            st->header.context_high = i + 1;
        }
        p->contexts[ctx->unit]++;
        return i;
    }
    return SOFTGPU_NONE;
}

static void default_limits(struct sg_ctx *ctx) {
    ctx->limits[0] = 1024;     /* stack */
    ctx->limits[1] = 1u << 20; /* printf FIFO */
    ctx->limits[2] = 8u << 20; /* heap */
    ctx->limits[3] = 2;        /* device runtime depth */
    ctx->limits[4] = 2048;     /* pending launches */
    ctx->limits[5] = 128;      /* L2 fetch granularity */
    ctx->limits[6] = 0;        /* persisting L2 */
}

struct sg_ctx *sg_ctx_make(int device, unsigned flags, unsigned version, CUresult *rc) {
    struct sg_ctx *ctx = sg_object(sizeof(*ctx), SG_CONTEXT);
    if (ctx == NULL) {
        *rc = CUDA_ERROR_OUT_OF_MEMORY;
        return NULL;
    }
    ctx->device = device;
    ctx->unit = sg_unit_index(device);
    ctx->flags = flags;
    ctx->version = version;
    ctx->id = ++sg.next_id;
    ctx->primary = version == 0;
    ctx->references = 1;
    default_limits(ctx);
    *rc = sg_charge(ctx->unit, SG_CONTEXT_BYTES);
    if (*rc != CUDA_SUCCESS) {
        ctx->magic = SG_DEAD;
        return NULL;
    }
    sg_state_lock(&sg.node);
    bool allowed = is_allowed(ctx->unit);
    if (!allowed) {
        sg_reap(&sg.node, sg.proc, true); /* before saying no: the dead need none */
        allowed = is_allowed(ctx->unit);
    }
    ctx->slot = allowed ? slot_take(ctx) : SOFTGPU_NONE;
    sg_state_unlock(&sg.node);
    if (ctx->slot == SOFTGPU_NONE) {
        sg_discharge(ctx->unit, SG_CONTEXT_BYTES);
        ctx->magic = SG_DEAD;
        *rc = allowed ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_DEVICE_UNAVAILABLE;
        return NULL;
    }
    ctx->next = sg.contexts;
    sg.contexts = ctx;
    return ctx;
}

CUresult sg_ctx_close(struct sg_ctx *ctx) {
    struct softgpu_state *st = sg.node.st;
    while (ctx->streams != NULL) {
        struct sg_stream *s = ctx->streams;
        sg_drop_stream(s);
        sg_stream_release(s);
    }
    sg_free_ctx(ctx);
    for (struct sg_ctx **link = &sg.contexts; *link != NULL; link = &(*link)->next) {
        if (*link == ctx) {
            *link = ctx->next;
            break;
        }
    }
    sg_state_lock(&sg.node);
    st->contexts[ctx->slot].generation++;
    st->contexts[ctx->slot].state = SOFTGPU_SLOT_FREE;
    st->procs[sg.proc].contexts[ctx->unit]--;
    sg_engine_kick(st, ctx->unit, sg_state_now(st));
    sg_state_unlock(&sg.node);
    sg_discharge(ctx->unit, SG_CONTEXT_BYTES);
    ctx->magic = SG_DEAD;
    return CUDA_SUCCESS;
}
