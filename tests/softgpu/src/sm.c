#include "sm.h"

#include <math.h>

#include "lists.h"

/* All MPS clients of a unit are one group; contexts have smaller numbers. */
static const uint32_t SG_GROUP_MPS = 0x80000000u;

static uint32_t group_of(const struct softgpu_state *st, const struct softgpu_op *op) {
    return st->contexts[op->context].flags & SOFTGPU_CONTEXT_MPS ? SG_GROUP_MPS : op->context;
}

static int before(const struct softgpu_state *st, const struct softgpu_op *a,
                  const struct softgpu_op *b) {
    int32_t pa = st->streams[a->stream].priority;
    int32_t pb = st->streams[b->stream].priority;
    return pa != pb ? pa < pb : a->arrived < b->arrived;
}

void sg_ready_collect(struct softgpu_state *st, const struct softgpu_unit *u,
                      struct sg_ready *set) {
    set->count = 0;
    SG_FOR_EACH_STREAM(st, u, s) {
        struct softgpu_op *op = &st->ops[s->head];
        if (op->kind != SOFTGPU_OP_KERNEL || op->state != SOFTGPU_OP_READY ||
            set->count == SG_READY_MAX) {
            continue;
        }
        uint32_t i = set->count++;
        for (; i > 0 && before(st, op, set->ops[i - 1]); i--) {
            set->ops[i] = set->ops[i - 1];
            set->groups[i] = set->groups[i - 1];
        }
        set->ops[i] = op;
        set->groups[i] = group_of(st, op);
    }
}

static int has_work(const struct sg_ready *set, uint32_t group) {
    for (uint32_t i = 0; i < set->count; i++) {
        if (set->groups[i] == group) {
            return 1;
        }
    }
    return 0;
}

/* The group with work that follows the current one in number, round and round. */
static uint32_t next_group(const struct sg_ready *set, uint32_t current) {
    uint32_t above = SOFTGPU_NONE;
    uint32_t lowest = SOFTGPU_NONE;
    for (uint32_t i = 0; i < set->count; i++) {
        uint32_t g = set->groups[i];
        if (g == current) {
            continue;
        }
        if (lowest == SOFTGPU_NONE || g < lowest) {
            lowest = g;
        }
        if (g > current && (above == SOFTGPU_NONE || g < above)) {
            above = g;
        }
    }
    return current != SOFTGPU_NONE && above != SOFTGPU_NONE ? above : lowest;
}

int sg_group_contended(const struct sg_ready *set, const struct softgpu_unit *u) {
    return has_work(set, u->current_group) && next_group(set, u->current_group) != SOFTGPU_NONE;
}

void sg_group_choose(struct softgpu_unit *u, const struct sg_ready *set, int64_t t) {
    if (u->switch_target != SOFTGPU_NONE) {
        if (t < u->switch_end_ns) {
            return;
        }
        u->current_group = u->switch_target;
        u->switch_target = SOFTGPU_NONE;
        u->quantum_end_ns = t + u->quantum_ns;
    }
    uint32_t other = next_group(set, u->current_group);
    if (has_work(set, u->current_group)) {
        if (u->quantum_end_ns < 0) {
            u->quantum_end_ns = t + u->quantum_ns; /* it was idle */
        }
        /* Quanta that ended while nobody else wanted the device passed unseen. A newcomer waits
         * for the end of the present one, and is in time if that is now. */
        int64_t late = t - u->quantum_end_ns;
        if (late > 0) {
            u->quantum_end_ns += (late + u->quantum_ns - 1) / u->quantum_ns * u->quantum_ns;
        }
        if (t < u->quantum_end_ns || other == SOFTGPU_NONE) {
            return;
        }
    } else {
        u->quantum_end_ns = -1;
        if (other == SOFTGPU_NONE) {
            return;
        }
    }
    if (u->current_group == SOFTGPU_NONE) {
        u->current_group = other; /* the first ever: nothing to save */
        u->quantum_end_ns = t + u->quantum_ns;
        return;
    }
    u->switch_target = other;
    u->switch_end_ns = t + u->switch_ns;
    u->switches++;
}

/* SMs that the context of `op` may still take. */
static uint32_t cap_left(const struct softgpu_state *st, const struct softgpu_unit *u,
                         const struct sg_ready *set, const struct softgpu_op *op) {
    uint32_t cap = st->contexts[op->context].sm_cap;
    if (cap == 0 || cap >= u->sm_count) {
        return u->sm_count;
    }
    uint32_t held = 0;
    for (uint32_t i = 0; i < set->count; i++) {
        if (set->ops[i]->context == op->context) {
            held += set->ops[i]->held;
        }
    }
    return held < cap ? cap - held : 0;
}

/* The end of the wave that op is in, or of op if nobody ahead of it waits for its SMs: then it
 * would take them again itself, and the boundary is no event. */
static double wave_end(const struct softgpu_op *op, int wanted) {
    if (!wanted || op->waves <= 1) {
        return 1;
    }
    double w = op->waves;
    double end = (floor(op->progress * w + 1e-6) + 1) / w;
    return end < 1 ? end : 1;
}

void sg_sm_assign(struct softgpu_state *st, const struct softgpu_unit *u, struct sg_ready *set,
                  int64_t t) {
    int switching = u->switch_target != SOFTGPU_NONE;
    uint32_t held = 0;
    for (uint32_t i = 0; i < set->count; i++) {
        set->ops[i]->rate = 0;
        if (set->groups[i] == u->current_group) {
            held += set->ops[i]->held;
        }
    }
    if (switching) {
        return; /* frozen, with the SMs that they hold in their group */
    }
    uint32_t left = held < u->sm_count ? u->sm_count - held : 0;
    double m = 0;
    for (uint32_t i = 0; i < set->count; i++) {
        struct softgpu_op *op = set->ops[i];
        if (set->groups[i] != u->current_group) {
            continue;
        }
        uint32_t give = op->want - op->held;
        uint32_t cap = cap_left(st, u, set, op);
        give = give < left ? give : left;
        give = give < cap ? give : cap;
        if (give > 0 && op->progress <= 0 && op->held == 0) {
            op->start_ns = t;
        }
        op->held += give;
        left -= give;
        m += op->dram * op->held / op->want;
    }
    int wanted = 0; /* someone ahead is short of SMs that its cap would allow */
    for (uint32_t i = 0; i < set->count; i++) {
        struct softgpu_op *op = set->ops[i];
        if (set->groups[i] != u->current_group) {
            continue;
        }
        if (op->held > 0) {
            op->rate = (double)op->held / op->want;
            if (m > 1) {
                op->rate /= (1 - op->dram) + op->dram * m;
            }
            op->boundary = wave_end(op, wanted);
        }
        if (op->held < op->want && cap_left(st, u, set, op) > 0) {
            wanted = 1;
        }
    }
}
