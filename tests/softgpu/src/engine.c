/* The event loop of the device model.
 *
 * Between two events every rate is constant, so the state of a unit is exact at `now_ns` (the last
 * event) and everything later follows from it. Entering with a time before `next_event_ns` costs
 * one comparison. */
#include <math.h>
#include <string.h>

#include "engine.h"
#include "lists.h"
#include "sm.h"

/* Progress is a sum of products; this is far below one nanosecond of any kernel. */
static const double SG_EPSILON = 1e-9;

void sg_unit_init(struct softgpu_unit *u, uint32_t device, uint32_t sm_count, uint64_t memory_bytes,
                  const double *bytes_per_ns) {
    memset(u, 0, sizeof(*u));
    u->state = SOFTGPU_SLOT_USED;
    u->device = device;
    u->sm_count = sm_count;
    u->instance = SOFTGPU_NONE;
    u->compute = SOFTGPU_NONE;
    u->memory_bytes = memory_bytes;
    for (int q = 0; q < SOFTGPU_QUEUES; q++) {
        u->bytes_per_ns[q] = bytes_per_ns[q];
        u->queue_op[q] = SOFTGPU_NONE;
    }
    u->next_event_ns = SG_NEVER;
    u->current_group = SOFTGPU_NONE;
    u->switch_target = SOFTGPU_NONE;
    u->quantum_ns = 2000000;
    u->switch_ns = 100000;
    u->quantum_end_ns = -1;
}

/* Keeps a reading of the integrals before a step that ends a mark's time or more after the last one.
 * So between two marks lies one step, with constant rates, or less than that time: what a monitor
 * computes over a window of several marks is right. */
static void mark(struct softgpu_unit *u, int64_t t) {
    const struct softgpu_mark *last = &u->marks[(u->mark_next + SOFTGPU_MARKS - 1) % SOFTGPU_MARKS];
    if (t - last->at_ns < SOFTGPU_MARK_NS || u->now_ns == last->at_ns) {
        return;
    }
    u->marks[u->mark_next] = (struct softgpu_mark){.at_ns = u->now_ns,
                                                   .busy_ns = u->busy_ns,
                                                   .memory_ns = u->memory_ns,
                                                   .h2d_ns = u->copy_ns[SOFTGPU_QUEUE_H2D],
                                                   .d2h_ns = u->copy_ns[SOFTGPU_QUEUE_D2H]};
    u->mark_next = (u->mark_next + 1) % SOFTGPU_MARKS;
}

/* Carries progress and the integrals of utilisation from now_ns to t. */
static void step_to(struct softgpu_state *st, struct softgpu_unit *u, int64_t t) {
    int64_t dt = t - u->now_ns;
    if (dt <= 0) {
        return;
    }
    mark(u, t);
    struct sg_ready set;
    sg_ready_collect(st, u, &set);
    uint64_t held = 0;
    double dram = 0;
    for (uint32_t i = 0; i < set.count; i++) {
        struct softgpu_op *op = set.ops[i];
        if (op->rate <= 0) {
            continue;
        }
        op->progress = fmin(1, op->progress + op->rate * (double)dt / fmax(op->work_ns, 1e-3));
        held += op->held;
        dram += op->dram * op->held / op->want;
        st->procs[op->proc].sm_ns[u - st->units] += (uint64_t)dt * op->held;
    }
    if (held > 0) {
        u->busy_ns += (uint64_t)dt;
        u->sm_ns += (uint64_t)dt * held;
        u->memory_ns += (uint64_t)((double)dt * fmin(dram, 1));
    }
    for (int q = 0; q < SOFTGPU_QUEUES; q++) {
        if (u->queue_op[q] != SOFTGPU_NONE) {
            u->copy_ns[q] += (uint64_t)dt;
        }
    }
    u->now_ns = t;
}

/* Kernels that are through, waves that end, copies that are through. */
static void finish_at(struct softgpu_state *st, struct softgpu_unit *u, int64_t t) {
    struct sg_ready set;
    sg_ready_collect(st, u, &set);
    for (uint32_t i = 0; i < set.count; i++) {
        struct softgpu_op *op = set.ops[i];
        if (op->held == 0 || op->rate <= 0) {
            continue;
        }
        if (op->progress >= 1 - SG_EPSILON || op->work_ns <= 0) {
            u->kernels++;
            sg_op_complete(st, op, t);
        } else if (op->progress >= op->boundary - SG_EPSILON) {
            op->held = 0; /* the wave is over; sg_sm_assign gives the SMs out anew */
        }
    }
    for (int q = 0; q < SOFTGPU_QUEUES; q++) {
        uint32_t i = u->queue_op[q];
        if (i != SOFTGPU_NONE && t >= st->ops[i].end_ns) {
            u->queue_op[q] = SOFTGPU_NONE;
            sg_op_complete(st, &st->ops[i], t);
        }
    }
}

/* Starts the oldest ready copy of each queue that is free. */
static void start_copies(struct softgpu_state *st, struct softgpu_unit *u, int64_t t) {
    uint32_t first[SOFTGPU_QUEUES];
    for (int q = 0; q < SOFTGPU_QUEUES; q++) {
        first[q] = SOFTGPU_NONE;
    }
    SG_FOR_EACH_STREAM(st, u, s) {
        uint32_t i = s->head;
        struct softgpu_op *op = &st->ops[i];
        if (op->kind != SOFTGPU_OP_COPY || op->state != SOFTGPU_OP_READY ||
            op->queue >= SOFTGPU_QUEUES || u->queue_op[op->queue] != SOFTGPU_NONE) {
            continue;
        }
        uint32_t best = first[op->queue];
        if (best == SOFTGPU_NONE || op->arrived < st->ops[best].arrived) {
            first[op->queue] = i;
        }
    }
    for (int q = 0; q < SOFTGPU_QUEUES; q++) {
        if (first[q] != SOFTGPU_NONE) {
            struct softgpu_op *op = &st->ops[first[q]];
            op->start_ns = t;
            op->end_ns = t + (int64_t)ceil(op->work_ns);
            u->queue_op[q] = first[q];
        }
    }
}

static int64_t earlier(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t predict(struct softgpu_state *st, struct softgpu_unit *u, const struct sg_ready *set,
                       int64_t t) {
    int64_t next = SG_NEVER;
    for (uint32_t i = 0; i < set->count; i++) {
        const struct softgpu_op *op = set->ops[i];
        if (op->rate > 0) {
            double left = (op->boundary - op->progress) * op->work_ns / op->rate;
            next = earlier(next, t + (int64_t)ceil(fmax(left, 0)));
        }
    }
    for (int q = 0; q < SOFTGPU_QUEUES; q++) {
        if (u->queue_op[q] != SOFTGPU_NONE) {
            next = earlier(next, st->ops[u->queue_op[q]].end_ns);
        }
    }
    if (u->switch_target != SOFTGPU_NONE) {
        next = earlier(next, u->switch_end_ns);
    } else if (sg_group_contended(set, u)) {
        next = earlier(next, u->quantum_end_ns);
    }
    return next;
}

/* Everything that happens at t, then who runs from t on. */
static void settle_at(struct softgpu_state *st, struct softgpu_unit *u, int64_t t) {
    finish_at(st, u, t);
    sg_promote(st, u, t);
    start_copies(st, u, t);
    struct sg_ready set;
    sg_ready_collect(st, u, &set);
    sg_group_choose(u, &set, t);
    sg_sm_assign(st, u, &set, t);
    __atomic_store_n(&u->next_event_ns, predict(st, u, &set, t), __ATOMIC_RELEASE);
}

void sg_engine_advance(struct softgpu_state *st, uint32_t unit, int64_t now) {
    struct softgpu_unit *u = &st->units[unit];
    while (u->next_event_ns <= now) {
        int64_t t = u->next_event_ns > u->now_ns ? u->next_event_ns : u->now_ns;
        step_to(st, u, t);
        settle_at(st, u, t);
    }
}

void sg_engine_advance_all(struct softgpu_state *st, int64_t now) {
    for (uint32_t i = 0; i < st->header.unit_count; i++) {
        if (st->units[i].state == SOFTGPU_SLOT_USED) {
            sg_engine_advance(st, i, now);
        }
    }
}

void sg_engine_kick(struct softgpu_state *st, uint32_t unit, int64_t now) {
    struct softgpu_unit *u = &st->units[unit];
    sg_engine_advance(st, unit, now);
    int64_t t = now > u->now_ns ? now : u->now_ns;
    step_to(st, u, t);
    settle_at(st, u, t);
    sg_engine_advance(st, unit, now);
}

void sg_engine_submit(struct softgpu_state *st, uint32_t index, int64_t now) {
    struct softgpu_op *op = &st->ops[index];
    uint32_t unit = op->unit;
    sg_engine_advance(st, unit, now);
    sg_stream_append(st, index);
    if (st->streams[op->stream].head == index) {
        sg_engine_kick(st, unit, now);
    }
}

void sg_engine_answer(struct softgpu_state *st, uint32_t index, int64_t now) {
    struct softgpu_op *op = &st->ops[index];
    uint32_t unit = op->unit;
    sg_engine_advance(st, unit, now);
    if (op->state == SOFTGPU_OP_ASKED) {
        sg_op_complete(st, op, now > st->units[unit].now_ns ? now : st->units[unit].now_ns);
        sg_engine_kick(st, unit, now);
    }
}

int64_t sg_engine_bound(const struct softgpu_state *st, uint32_t stream, uint64_t pos,
                        int64_t now) {
    const struct softgpu_stream *s = &st->streams[stream];
    const struct softgpu_unit *u = &st->units[s->unit];
    double left = 0;
    for (uint32_t i = s->head; i != SOFTGPU_NONE && st->ops[i].pos <= pos; i = st->ops[i].next) {
        left += st->ops[i].work_ns;
    }
    if (s->head == SOFTGPU_NONE) {
        return now;
    }
    const struct softgpu_op *op = &st->ops[s->head];
    if (op->kind == SOFTGPU_OP_COPY && u->queue_op[op->queue] == s->head) {
        left -= (double)(now - op->start_ns);
    } else if (op->kind == SOFTGPU_OP_KERNEL) {
        left -= op->progress * op->work_ns + (op->rate > 0 ? (double)(now - u->now_ns) : 0);
    }
    int64_t bound = now + (int64_t)fmax(left, 0);
    /* Contended: nothing can happen before the next event, whatever the bound says. */
    return bound > u->next_event_ns || u->next_event_ns == SG_NEVER ? bound : u->next_event_ns;
}
