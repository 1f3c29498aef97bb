/* After a holder of the lock died: every list and sum is made anew from the operations, which are
 * the only truth. An operation that was half-way between two lists is in a state that names the
 * one it belongs to; at worst a completion is given to its owner a second time, never lost. */
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "lists.h"
#include "mig.h"

static void reset_lists(struct softgpu_state *st) {
    st->header.op_free = SOFTGPU_NONE;
    for (uint32_t i = 0; i < st->header.stream_high; i++) {
        struct softgpu_stream *s = &st->streams[i];
        s->head = SOFTGPU_NONE;
        s->tail = SOFTGPU_NONE;
        s->depth = 0;
        s->queued_ns = 0;
        if (s->state == SOFTGPU_SLOT_CLAIMED) {
            s->state = SOFTGPU_SLOT_FREE;
        }
    }
    for (uint32_t i = 0; i < st->header.proc_high; i++) {
        st->procs[i].done_head = SOFTGPU_NONE;
        st->procs[i].done_tail = SOFTGPU_NONE;
    }
    for (uint32_t i = 0; i < st->header.unit_count; i++) {
        memset(st->units[i].streams, 0, sizeof(st->units[i].streams));
        for (int q = 0; q < SOFTGPU_QUEUES; q++) {
            st->units[i].queue_op[q] = SOFTGPU_NONE;
        }
    }
}

static bool is_live(const struct softgpu_state *st, const struct softgpu_op *op) {
    return op->state >= SOFTGPU_OP_QUEUED && op->state <= SOFTGPU_OP_DONE &&
           op->stream < SOFTGPU_MAX_STREAMS && op->proc < SOFTGPU_MAX_PROCS &&
           op->context < SOFTGPU_MAX_CONTEXTS && op->unit < SOFTGPU_MAX_UNITS &&
           st->streams[op->stream].state == SOFTGPU_SLOT_USED &&
           st->streams[op->stream].proc == op->proc;
}

/* Inserts op behind all with a smaller key; lists are short, and this is rare. */
static void insert_in_stream(struct softgpu_state *st, uint32_t i) {
    struct softgpu_op *op = &st->ops[i];
    struct softgpu_stream *s = &st->streams[op->stream];
    uint32_t *link = &s->head;
    while (*link != SOFTGPU_NONE && st->ops[*link].seq < op->seq) {
        link = &st->ops[*link].next;
    }
    op->next = *link;
    *link = i;
    if (op->next == SOFTGPU_NONE) {
        s->tail = i;
    }
    s->depth++;
    s->queued_ns += op->work_ns;
    if (s->last_pos < op->pos) {
        s->last_pos = op->pos;
    }
    st->units[s->unit].streams[op->stream / 64] |= 1ull << (op->stream % 64);
}

static bool done_before(const struct softgpu_op *a, const struct softgpu_op *b) {
    return a->end_ns != b->end_ns ? a->end_ns < b->end_ns : a->seq < b->seq;
}

static void insert_done(struct softgpu_state *st, uint32_t i) {
    struct softgpu_op *op = &st->ops[i];
    struct softgpu_proc *p = &st->procs[op->proc];
    uint32_t *link = &p->done_head;
    while (*link != SOFTGPU_NONE && done_before(&st->ops[*link], op)) {
        link = &st->ops[*link].next;
    }
    op->next = *link;
    *link = i;
    if (op->next == SOFTGPU_NONE) {
        p->done_tail = i;
    }
    struct softgpu_stream *s = &st->streams[op->stream];
    if (s->done_pos < op->pos) {
        s->done_pos = op->pos;
    }
}

static void recount_memory(struct softgpu_state *st) {
    for (uint32_t d = 0; d < SOFTGPU_MAX_DEVICES; d++) {
        st->devices[d].used_bytes = 0;
    }
    for (uint32_t u = 0; u < st->header.unit_count; u++) {
        uint64_t sum = 0;
        if (st->units[u].state != SOFTGPU_SLOT_USED) {
            continue;
        }
        for (uint32_t p = 0; p < st->header.proc_high; p++) {
            if (st->procs[p].state == SOFTGPU_SLOT_USED) {
                sum += st->procs[p].used_bytes[u];
            }
        }
        st->units[u].used_bytes = sum;
        st->devices[st->units[u].device].used_bytes += sum;
    }
}

void sg_engine_repair(struct softgpu_state *st, int64_t now) {
    reset_lists(st);
    for (uint32_t i = st->header.op_high; i-- > 0;) {
        struct softgpu_op *op = &st->ops[i];
        if (!is_live(st, op)) {
            sg_op_free(st, i);
        } else if (op->state == SOFTGPU_OP_DONE) {
            insert_done(st, i);
        } else {
            insert_in_stream(st, i);
        }
    }
    for (uint32_t i = 0; i < st->header.op_high; i++) {
        struct softgpu_op *op = &st->ops[i];
        /* A copy that had begun goes on in its queue. */
        if (op->state == SOFTGPU_OP_READY && op->kind == SOFTGPU_OP_COPY && op->end_ns > 0 &&
            op->queue < SOFTGPU_QUEUES) {
            st->units[op->unit].queue_op[op->queue] = i;
        }
    }
    sg_mig_repair(st);
    recount_memory(st);
    for (uint32_t u = 0; u < st->header.unit_count; u++) {
        if (st->units[u].state != SOFTGPU_SLOT_USED) {
            continue;
        }
        int64_t t = now > st->units[u].now_ns ? now : st->units[u].now_ns;
        __atomic_store_n(&st->units[u].next_event_ns, t, __ATOMIC_RELEASE);
        sg_engine_advance(st, u, now);
    }
    st->header.repairs++;
}
