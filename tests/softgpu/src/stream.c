/* Streams: handles, slots in the state file, life and end. */
#include <string.h>

#include "driver.h"

static uint32_t slot_take(const struct sg_ctx *ctx, uint32_t flags, int priority) {
    struct softgpu_state *st = sg.node.st;
    for (uint32_t i = 0; i < SOFTGPU_MAX_STREAMS; i++) {
        struct softgpu_stream *s = &st->streams[i];
        if (s->state != SOFTGPU_SLOT_FREE) {
            continue;
        }
        uint64_t generation = s->generation;
        memset(s, 0, sizeof(*s));
        s->generation = generation + 1;
        s->proc = sg.proc;
        s->context = ctx->slot;
        s->unit = ctx->unit;
        s->flags = flags;
        s->priority = priority;
        s->head = SOFTGPU_NONE;
        s->tail = SOFTGPU_NONE;
        s->watch_unit = SOFTGPU_NONE;
        s->state = SOFTGPU_SLOT_USED;
        if (i >= st->header.stream_high) {
            st->header.stream_high = i + 1;
        }
        if (flags & SOFTGPU_STREAM_LEGACY) {
            st->contexts[ctx->slot].legacy_stream = i;
        }
        return i;
    }
    return SOFTGPU_NONE;
}

struct sg_stream *sg_stream_make(struct sg_ctx *ctx, uint32_t flags, int priority) {
    sg_state_lock(&sg.node);
    uint32_t slot = slot_take(ctx, flags, priority);
    sg_state_unlock(&sg.node);
    struct sg_stream *s = slot == SOFTGPU_NONE ? NULL : sg_object(sizeof(*s), SG_STREAM);
    if (s == NULL) {
        return NULL;
    }
    s->ctx = ctx;
    s->slot = slot;
    s->flags = flags;
    s->priority = priority;
    s->id = ++sg.next_id;
    s->next = ctx->streams;
    ctx->streams = s;
    return s;
}

/* The thread's own stream in this context; made at first use. */
static struct sg_stream *per_thread(struct sg_ctx *ctx) {
    struct sg_stream **free_slot = NULL;
    for (size_t i = 0; i < sizeof(sg_self.own) / sizeof(sg_self.own[0]); i++) {
        struct sg_stream **own = &sg_self.own[i];
        if (*own != NULL && (*own)->magic == SG_STREAM && (*own)->ctx == ctx) {
            return *own;
        }
        if (free_slot == NULL && (*own == NULL || (*own)->magic != SG_STREAM)) {
            free_slot = own;
        }
    }
    if (free_slot == NULL) {
        return NULL;
    }
    *free_slot = sg_stream_make(ctx, 0, 0);
    return *free_slot;
}

struct sg_stream *sg_stream_get(struct sg_ctx *ctx, CUstream h) {
    if (h == NULL || h == CU_STREAM_LEGACY) {
        if (ctx->legacy == NULL) {
            ctx->legacy = sg_stream_make(ctx, SOFTGPU_STREAM_LEGACY, 0);
        }
        return ctx->legacy;
    }
    if (h == CU_STREAM_PER_THREAD) {
        return per_thread(ctx);
    }
    return h->magic == SG_STREAM && !h->zombie ? h : NULL;
}

void sg_stream_release(struct sg_stream *s) {
    struct softgpu_state *st = sg.node.st;
    sg_state_lock(&sg.node);
    sg_engine_drop_stream(st, s->slot);
    if (s->flags & SOFTGPU_STREAM_LEGACY) {
        st->contexts[s->ctx->slot].legacy_stream = SOFTGPU_NONE;
    }
    st->streams[s->slot].generation++;
    st->streams[s->slot].state = SOFTGPU_SLOT_FREE;
    sg_state_unlock(&sg.node);
    for (struct sg_stream **link = &s->ctx->streams; *link != NULL; link = &(*link)->next) {
        if (*link == s) {
            *link = s->next;
            break;
        }
    }
    if (s->ctx->legacy == s) {
        s->ctx->legacy = NULL;
    }
    s->magic = SG_DEAD;
}

static CUresult create(CUstream *out, unsigned flags, int priority, struct sg_ctx *ctx) {
    if (out == NULL || flags > CU_STREAM_NON_BLOCKING) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
    sg_lock();
    struct sg_stream *s = sg_stream_make(
        ctx, flags == CU_STREAM_NON_BLOCKING ? SOFTGPU_STREAM_NONBLOCKING : 0, priority);
    sg_unlock();
    if (s == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = s;
    return CUDA_SUCCESS;
}

SG_API(cuStreamCreate, (CUstream * out, unsigned flags)) {
    SG_ENTER_CTX(ctx);
    return create(out, flags, 0, ctx);
}

SG_API(cuStreamCreateWithPriority, (CUstream * out, unsigned flags, int priority)) {
    SG_ENTER_CTX(ctx);
    return create(out, flags, priority, ctx);
}

/* Returns at once; what is left in the stream is finished first. */
static CUresult destroy(CUstream h) {
    if ((uintptr_t)h <= 2 || h->magic != SG_STREAM || h->zombie) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    sg_lock();
    CUresult rc = sg_capture_refuse(h);
    if (rc == CUDA_SUCCESS) {
        sg_settle();
        if (sg_stream_idle(h)) {
            sg_stream_release(h);
        } else {
            h->zombie = true;
        }
    }
    sg_unlock();
    return rc;
}

SG_API(cuStreamDestroy_v2, (CUstream h)) {
    SG_ENTER();
    return destroy(h);
}

SG_API(cuStreamDestroy, (CUstream h)) {
    SG_ENTER();
    return destroy(h);
}
