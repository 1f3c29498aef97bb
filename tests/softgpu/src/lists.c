#include "lists.h"

#include <string.h>

#include "engine.h"

uint32_t sg_stream_next(const struct softgpu_state *st, const struct softgpu_unit *u,
                        uint32_t from) {
    uint32_t end = st->header.stream_high;
    while (from < end) {
        uint64_t word = u->streams[from / 64] >> (from % 64);
        if (word != 0) {
            return from + (uint32_t)__builtin_ctzll(word);
        }
        from = (from / 64 + 1) * 64;
    }
    return SOFTGPU_NONE;
}

static void mark_busy(struct softgpu_state *st, uint32_t stream, int busy) {
    struct softgpu_unit *u = &st->units[st->streams[stream].unit];
    uint64_t bit = 1ull << (stream % 64);
    if (busy) {
        u->streams[stream / 64] |= bit;
    } else {
        u->streams[stream / 64] &= ~bit;
    }
}

uint32_t sg_op_take(struct softgpu_state *st) {
    struct softgpu_header *h = &st->header;
    uint32_t i = h->op_free;
    if (i != SOFTGPU_NONE) {
        h->op_free = st->ops[i].next;
    } else if (h->op_high < SOFTGPU_MAX_OPS) {
        i = h->op_high++;
    } else {
        return SOFTGPU_NONE;
    }
    memset(&st->ops[i], 0, sizeof(st->ops[i]));
    st->ops[i].state = SOFTGPU_OP_CLAIMED;
    st->ops[i].next = SOFTGPU_NONE;
    return i;
}

void sg_op_free(struct softgpu_state *st, uint32_t i) {
    st->ops[i].state = SOFTGPU_OP_FREE;
    st->ops[i].next = st->header.op_free;
    st->header.op_free = i;
}

void sg_stream_append(struct softgpu_state *st, uint32_t i) {
    struct softgpu_op *op = &st->ops[i];
    struct softgpu_stream *s = &st->streams[op->stream];
    op->seq = ++st->header.next_seq;
    op->pos = ++s->last_pos;
    op->next = SOFTGPU_NONE;
    op->state = SOFTGPU_OP_QUEUED;
    s->queued_ns += op->work_ns;
    s->depth++;
    if (s->tail == SOFTGPU_NONE) {
        s->head = i;
    } else {
        st->ops[s->tail].next = i;
    }
    s->tail = i;
    mark_busy(st, op->stream, 1);
}

static void hand_over(struct softgpu_state *st, uint32_t i) {
    struct softgpu_proc *p = &st->procs[st->ops[i].proc];
    st->ops[i].next = SOFTGPU_NONE;
    if (p->done_head == SOFTGPU_NONE) {
        p->done_tail = i;
        __atomic_store_n(&p->done_head, i, __ATOMIC_RELEASE);
    } else {
        st->ops[p->done_tail].next = i;
        p->done_tail = i;
    }
}

static void look_at(struct softgpu_unit *u, int64_t t) {
    if (t < u->next_event_ns) {
        __atomic_store_n(&u->next_event_ns, t, __ATOMIC_RELEASE);
    }
}

/* Other units' streams wait for this one: those units have to look. */
static void tell_watchers(struct softgpu_state *st, const struct softgpu_stream *s, int64_t t) {
    if (s->watch_unit < st->header.unit_count) {
        look_at(&st->units[s->watch_unit], t);
    } else if (s->watch_unit == SOFTGPU_SEVERAL) {
        for (uint32_t u = 0; u < st->header.unit_count; u++) {
            look_at(&st->units[u], t);
        }
    }
}

static void pop_head(struct softgpu_state *st, struct softgpu_op *op, int64_t t) {
    struct softgpu_stream *s = &st->streams[op->stream];
    s->head = op->next;
    s->depth--;
    s->queued_ns -= op->work_ns;
    if (s->head == SOFTGPU_NONE) {
        s->tail = SOFTGPU_NONE;
        s->queued_ns = 0;
        mark_busy(st, op->stream, 0);
    }
    s->done_ns = t;
    __atomic_store_n(&s->done_pos, op->pos, __ATOMIC_RELEASE);
    tell_watchers(st, s, t);
}

void sg_op_complete(struct softgpu_state *st, struct softgpu_op *op, int64_t t) {
    uint32_t i = (uint32_t)(op - st->ops);
    pop_head(st, op, t);
    op->end_ns = t;
    op->held = 0;
    op->rate = 0;
    op->state = SOFTGPU_OP_DONE;
    hand_over(st, i);
}

/* The legacy stream and the blocking streams of a context wait for each other's earlier work. */
static int legacy_blocks(const struct softgpu_state *st, const struct softgpu_unit *u,
                         const struct softgpu_stream *s, const struct softgpu_op *op) {
    if (s->flags & SOFTGPU_STREAM_NONBLOCKING) {
        return 0;
    }
    if (!(s->flags & SOFTGPU_STREAM_LEGACY)) {
        uint32_t legacy = st->contexts[s->context].legacy_stream;
        if (legacy == SOFTGPU_NONE) {
            return 0;
        }
        uint32_t head = st->streams[legacy].head;
        return head != SOFTGPU_NONE && st->ops[head].seq < op->seq;
    }
    for (uint32_t i = sg_stream_next(st, u, 0); i != SOFTGPU_NONE;
         i = sg_stream_next(st, u, i + 1)) {
        const struct softgpu_stream *o = &st->streams[i];
        if (o->context == s->context && o != s && !(o->flags & SOFTGPU_STREAM_NONBLOCKING) &&
            st->ops[o->head].seq < op->seq) {
            return 1;
        }
    }
    return 0;
}

static int wait_is_over(struct softgpu_state *st, const struct softgpu_op *op) {
    if (op->dep_stream >= SOFTGPU_MAX_STREAMS) {
        return 1;
    }
    struct softgpu_stream *dep = &st->streams[op->dep_stream];
    if (dep->state != SOFTGPU_SLOT_USED || dep->generation != op->dep_generation ||
        dep->done_pos >= op->dep_pos) {
        return 1;
    }
    if (dep->unit != op->unit) {
        bool other = dep->watch_unit != SOFTGPU_NONE && dep->watch_unit != op->unit;
        dep->watch_unit = other ? SOFTGPU_SEVERAL : op->unit;
    }
    return 0;
}

/* True if the head of s changed. */
static int promote_head(struct softgpu_state *st, struct softgpu_unit *u, struct softgpu_stream *s,
                        int64_t t) {
    struct softgpu_op *op = &st->ops[s->head];
    if (op->state != SOFTGPU_OP_QUEUED || legacy_blocks(st, u, s, op)) {
        return 0;
    }
    switch (op->kind) {
    case SOFTGPU_OP_KERNEL:
    case SOFTGPU_OP_COPY:
        return 0; /* sg_promote numbers these when nothing else changes any more */
    case SOFTGPU_OP_HOST:
        op->state = SOFTGPU_OP_ASKED;
        op->start_ns = t;
        /* It stays at the head; the owner finds what it is asked for at its streams' heads. */
        __atomic_add_fetch(&st->procs[op->proc].wake, 1, __ATOMIC_RELEASE);
        return 0;
    case SOFTGPU_OP_WAIT:
        if (!wait_is_over(st, op)) {
            return 0;
        }
        break;
    default:
        break;
    }
    op->start_ns = t;
    sg_op_complete(st, op, t);
    return 1;
}

void sg_promote(struct softgpu_state *st, struct softgpu_unit *u, int64_t t) {
    for (int changed = 1; changed;) {
        changed = 0;
        SG_FOR_EACH_STREAM(st, u, s) {
            while (s->head != SOFTGPU_NONE && promote_head(st, u, s, t)) {
                changed = 1;
            }
        }
    }
    /* What becomes ready at one time arrives in the order of the streams, not of the passes. */
    SG_FOR_EACH_STREAM(st, u, s) {
        struct softgpu_op *op = &st->ops[s->head];
        if (op->state == SOFTGPU_OP_QUEUED &&
            (op->kind == SOFTGPU_OP_KERNEL || op->kind == SOFTGPU_OP_COPY) &&
            !legacy_blocks(st, u, s, op)) {
            op->arrived = u->next_arrival++;
            op->state = SOFTGPU_OP_READY;
        }
    }
}

bool sg_engine_take_done(struct softgpu_state *st, uint32_t proc, struct softgpu_op *out) {
    struct softgpu_proc *p = &st->procs[proc];
    uint32_t i = p->done_head;
    if (i == SOFTGPU_NONE) {
        return false;
    }
    *out = st->ops[i];
    if (out->next == SOFTGPU_NONE) {
        p->done_tail = SOFTGPU_NONE;
    }
    __atomic_store_n(&p->done_head, out->next, __ATOMIC_RELEASE);
    sg_op_free(st, i);
    return true;
}

void sg_engine_drop_stream(struct softgpu_state *st, uint32_t stream) {
    struct softgpu_stream *s = &st->streams[stream];
    struct softgpu_unit *u = &st->units[s->unit];
    for (uint32_t i = s->head; i != SOFTGPU_NONE;) {
        uint32_t next = st->ops[i].next;
        for (int q = 0; q < SOFTGPU_QUEUES; q++) {
            if (u->queue_op[q] == i) {
                u->queue_op[q] = SOFTGPU_NONE;
            }
        }
        sg_op_free(st, i);
        i = next;
    }
    s->head = SOFTGPU_NONE;
    s->tail = SOFTGPU_NONE;
    s->depth = 0;
    s->queued_ns = 0;
    mark_busy(st, stream, 0);
    __atomic_store_n(&s->done_pos, s->last_pos, __ATOMIC_RELEASE);
    tell_watchers(st, s, u->now_ns);
}

void sg_engine_drop_proc(struct softgpu_state *st, uint32_t proc) {
    for (uint32_t i = 0; i < st->header.stream_high; i++) {
        struct softgpu_stream *s = &st->streams[i];
        if (s->state != SOFTGPU_SLOT_FREE && s->proc == proc) {
            sg_engine_drop_stream(st, i);
            s->generation++;
            s->state = SOFTGPU_SLOT_FREE;
        }
    }
    for (uint32_t i = 0; i < st->header.context_high; i++) {
        struct softgpu_context *c = &st->contexts[i];
        if (c->state != SOFTGPU_SLOT_FREE && c->proc == proc) {
            c->generation++;
            c->state = SOFTGPU_SLOT_FREE;
        }
    }
    struct softgpu_op op;
    while (sg_engine_take_done(st, proc, &op)) {
    }
}
