/* From completions in the state file to effects in this process. */
#include "driver.h"

bool sg_value_reached(const struct sg_work *w) {
    uint64_t have = w->value.wide ? __atomic_load_n((uint64_t *)w->value.address, __ATOMIC_ACQUIRE)
                                  : __atomic_load_n((uint32_t *)w->value.address, __ATOMIC_ACQUIRE);
    uint64_t want = w->value.value;
    switch (w->value.flags & 3) {
    case 0: /* at or past, cyclic */
        return w->value.wide ? (int64_t)(have - want) >= 0
                             : (int32_t)((uint32_t)have - (uint32_t)want) >= 0;
    case 1:
        return have == want;
    case 2:
        return (have & want) != 0;
    default: /* nor */
        return (~(have | want) & (w->value.wide ? UINT64_MAX : UINT32_MAX)) != 0;
    }
}

static void write_value(const struct sg_work *w) {
    if (w->value.wide) {
        __atomic_store_n((uint64_t *)w->value.address, w->value.value, __ATOMIC_RELEASE);
    } else {
        __atomic_store_n((uint32_t *)w->value.address, (uint32_t)w->value.value, __ATOMIC_RELEASE);
    }
}

void sg_apply(struct sg_stream *s, struct sg_work *w, int64_t end_ns) {
    CUresult rc = sg_ctx_error(s->ctx);
    if (rc != CUDA_SUCCESS) {
        return; /* the context is lost: nothing has effects any more */
    }
    switch (w->kind) {
    case SG_WORK_KERNEL:
        rc = sg_run_kernel(w);
        break;
    case SG_WORK_COPY:
        rc = sg_run_copy(w);
        break;
    case SG_WORK_SET:
        rc = sg_run_set(w);
        break;
    case SG_WORK_WRITE:
        write_value(w);
        break;
    case SG_WORK_FREE:
        (void)sg_free(w->address);
        break;
    case SG_WORK_EVENT:
        if (w->event.event->magic == SG_EVENT && w->event.event->record == w->event.record) {
            w->event.event->time_ns = end_ns;
            __atomic_store_n(&w->event.event->done, 1, __ATOMIC_RELEASE);
        }
        break;
    default:
        break;
    }
    if (rc != CUDA_SUCCESS) {
        sg_poison(s->ctx, rc);
    }
}

static struct sg_work *take_first(struct sg_stream *s) {
    struct sg_work *w = s->first;
    s->first = w->next;
    if (s->first == NULL) {
        s->last = NULL;
    }
    if (sg_is_prompt(w)) {
        sg.prompt--;
    }
    __atomic_sub_fetch(&sg.pending, 1, __ATOMIC_RELEASE);
    return w;
}

/* A repaired state may hand a completion over twice; the second finds another position. */
static void deliver(const struct softgpu_op *op) {
    struct sg_stream *s = (struct sg_stream *)(uintptr_t)op->cookie;
    if (s->magic != SG_STREAM || s->slot != op->stream || s->first == NULL ||
        s->first->pos != op->pos) {
        return;
    }
    struct sg_work *w = take_first(s);
    sg_apply(s, w, op->end_ns);
    sg_work_free(w);
    s->done_ns = op->end_ns;
    __atomic_store_n(&s->settled, op->pos, __ATOMIC_RELEASE);
}

void sg_drop_stream(struct sg_stream *s) {
    while (s->first != NULL) {
        sg_work_free(take_first(s));
    }
    __atomic_store_n(&s->settled, s->submitted, __ATOMIC_RELEASE);
}

bool sg_stream_idle(const struct sg_stream *s) {
    return __atomic_load_n(&s->settled, __ATOMIC_ACQUIRE) >=
           __atomic_load_n(&s->submitted, __ATOMIC_RELAXED);
}

static void bury_zombies(void) {
    for (struct sg_ctx *c = sg.contexts; c != NULL; c = c->next) {
        for (struct sg_stream *s = c->streams; s != NULL;) {
            struct sg_stream *next = s->next;
            if (s->zombie && s->first == NULL) {
                sg_stream_release(s);
            }
            s = next;
        }
    }
}

void sg_settle(void) {
    enum { BATCH = 32 };
    struct softgpu_op done[BATCH];
    int n;
    bool any = false;
    if (sg_leaving()) {
        return; /* the slot is given back */
    }
    do {
        sg_state_lock(&sg.node);
        sg_reap(&sg.node, sg.proc, false);
        sg_engine_advance_all(sg.node.st, sg_state_now(sg.node.st));
        for (n = 0; n < BATCH && sg_engine_take_done(sg.node.st, sg.proc, &done[n]); n++) {
        }
        sg_state_unlock(&sg.node);
        for (int i = 0; i < n; i++) {
            deliver(&done[i]);
        }
        any = any || n > 0;
    } while (n == BATCH);
    if (any) {
        bury_zombies();
    }
}
