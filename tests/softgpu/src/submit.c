/* From a call to an operation in the state file. */
#include <stdlib.h>
#include <string.h>

#include "driver.h"

struct sg_work *sg_work_new(enum sg_work_kind kind) {
    struct sg_work *w = calloc(1, sizeof(*w));
    if (w != NULL) {
        w->kind = kind;
        w->op = SOFTGPU_NONE;
    }
    return w;
}

void sg_work_free(struct sg_work *w) {
    if (w->kind == SG_WORK_KERNEL) {
        free(w->kernel.params);
    } else if (w->kind == SG_WORK_COPY) {
        free(w->copy.staged);
    }
    free(w);
}

bool sg_is_host_work(const struct sg_work *w) {
    return w->kind == SG_WORK_HOST || w->kind == SG_WORK_CALLBACK || w->kind == SG_WORK_WAIT_VALUE;
}

bool sg_is_prompt(const struct sg_work *w) {
    return sg_is_host_work(w) || w->kind == SG_WORK_WRITE;
}

/* Without costs and without anything pending, order is the caller's order: run it here. */
static bool may_run_here(const struct sg_work *w) {
    return sg.null_profile && sg.pending == 0 &&
           (!sg_is_host_work(w) || (w->kind == SG_WORK_WAIT_VALUE && sg_value_reached(w)));
}

static void fill_kernel(struct softgpu_op *op, const struct sg_stream *s, const struct sg_work *w) {
    struct sg_sm_limits limits;
    sg_sm_limits(s->ctx->device, &limits);
    struct sg_footprint fp = {
        .blocks = (uint64_t)w->kernel.grid[0] * w->kernel.grid[1] * w->kernel.grid[2],
        .threads = w->kernel.block[0] * w->kernel.block[1] * w->kernel.block[2],
        .registers = w->kernel.spec->registers,
        .smem = w->kernel.spec->smem + w->kernel.shared,
    };
    op->kind = SOFTGPU_OP_KERNEL;
    op->work_ns = sg_kernel_ns(w, s->ctx->device);
    op->dram = w->kernel.spec->dram;
    sg_kernel_shape(op, &limits, &fp, sg.node.st->units[s->ctx->unit].sm_count);
}

static void fill_copy(struct softgpu_op *op, const struct sg_stream *s, int queue, double bytes) {
    const struct softgpu_unit *u = &sg.node.st->units[s->ctx->unit];
    bool shared = u->copy_engines == 1 && queue == SOFTGPU_QUEUE_D2H;
    op->kind = SOFTGPU_OP_COPY;
    op->queue = shared ? SOFTGPU_QUEUE_H2D : (uint32_t)queue;
    double rate = u->bytes_per_ns[queue];
    op->work_ns = sg.null_profile || rate <= 0 ? 0 : bytes / rate;
}

static void fill(struct softgpu_op *op, const struct sg_stream *s, const struct sg_work *w) {
    op->stream = s->slot;
    op->proc = sg.proc;
    op->context = s->ctx->slot;
    op->unit = s->ctx->unit;
    op->cookie = (uint64_t)(uintptr_t)s;
    op->kind = SOFTGPU_OP_MARK;
    if (w->kind == SG_WORK_KERNEL) {
        fill_kernel(op, s, w);
    } else if (w->kind == SG_WORK_COPY) {
        fill_copy(op, s, w->copy.queue,
                  (double)w->copy.width * (double)w->copy.height * (double)w->copy.depth);
    } else if (w->kind == SG_WORK_SET) {
        fill_copy(op, s, SOFTGPU_QUEUE_D2D, (double)w->set.width * (double)w->set.height);
    } else if (sg_is_host_work(w)) {
        op->kind = SOFTGPU_OP_HOST;
    } else if (w->kind == SG_WORK_WAIT_EVENT) {
        op->kind = SOFTGPU_OP_WAIT;
        op->dep_stream = w->wait.stream;
        op->dep_generation = w->wait.generation;
        op->dep_pos = w->wait.pos;
    }
}

/* False while the stream or the pool is full. */
static bool try_submit(struct sg_stream *s, struct sg_work *w) {
    struct softgpu_state *st = sg.node.st;
    sg_state_lock(&sg.node);
    uint32_t i = SOFTGPU_NONE;
    if (st->streams[s->slot].depth < SOFTGPU_STREAM_DEPTH) {
        i = sg_op_take(st);
    }
    if (i != SOFTGPU_NONE) {
        fill(&st->ops[i], s, w);
        sg_engine_submit(st, i, sg_state_now(st));
        w->op = i;
        w->pos = st->streams[s->slot].last_pos;
    }
    sg_state_unlock(&sg.node);
    return i != SOFTGPU_NONE;
}

/* A full stream makes its caller wait, as a real one does. */
static void wait_for_room(const struct sg_stream *s) {
    uint32_t seen = sg_wake_word();
    int64_t next =
        __atomic_load_n(&sg.node.st->units[s->ctx->unit].next_event_ns, __ATOMIC_ACQUIRE);
    sg_unlock();
    sg_nap(seen, next);
    sg_lock();
    sg_settle();
}

CUresult sg_submit(struct sg_stream *s, struct sg_work *w) {
    if (s->capture != NULL) {
        return sg_capture_work(s, w);
    }
    CUresult rc = sg_leaving() ? CUDA_ERROR_DEINITIALIZED : sg_ctx_error(s->ctx);
    if (rc == CUDA_SUCCESS) {
        rc = sg_capture_implicit(s);
    }
    if (rc != CUDA_SUCCESS) {
        sg_work_free(w);
        return rc;
    }
    if (may_run_here(w)) {
        sg_apply(s, w, sg_state_now(sg.node.st));
        sg_work_free(w);
        return CUDA_SUCCESS;
    }
    while (!try_submit(s, w)) {
        wait_for_room(s);
        rc = sg_leaving() ? CUDA_ERROR_DEINITIALIZED : sg_ctx_error(s->ctx);
        if (rc != CUDA_SUCCESS || s->magic != SG_STREAM) {
            sg_work_free(w);
            return rc != CUDA_SUCCESS ? rc : CUDA_ERROR_INVALID_HANDLE;
        }
    }
    /* Waits look at the number without the lock. */
    w->ticket = __atomic_add_fetch(&sg.ticket, 1, __ATOMIC_RELEASE);
    __atomic_store_n(&s->submitted, w->pos, __ATOMIC_RELEASE);
    if (s->last == NULL) {
        s->first = w;
    } else {
        s->last->next = w;
    }
    s->last = w;
    __atomic_add_fetch(&sg.pending, 1, __ATOMIC_RELEASE);
    if (sg_is_prompt(w)) {
        sg.prompt++;
    }
    sg_progress_poke(sg_is_prompt(w));
    return CUDA_SUCCESS;
}
