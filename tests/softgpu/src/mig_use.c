/* Who uses what of a divided device, and how much of its memory. */
#include "mig.h"

static bool holds(const struct softgpu_proc *p, uint32_t device, uint32_t id, uint32_t compute) {
    return p->mig_device == device && (id == SOFTGPU_NONE || p->mig_instance == id) &&
           (compute == SOFTGPU_NONE || p->mig_compute == compute);
}

/* Has it a context or memory there? */
static bool is_on(const struct softgpu_state *st, const struct softgpu_proc *p, uint32_t device,
                  uint32_t id, uint32_t compute) {
    for (uint32_t u = 0; u < st->header.unit_count; u++) {
        const struct softgpu_unit *unit = &st->units[u];
        if (unit->state == SOFTGPU_SLOT_USED && unit->device == device &&
            (id == SOFTGPU_NONE || unit->instance == id) &&
            (compute == SOFTGPU_NONE || unit->compute == compute) &&
            (p->contexts[u] > 0 || p->used_bytes[u] > 0)) {
            return true;
        }
    }
    return false;
}

uint32_t sg_mig_users(const struct sg_node *node, uint32_t device, uint32_t id, uint32_t compute,
                      uint32_t *pids, uint32_t room) {
    const struct softgpu_state *st = node->st;
    uint32_t count = 0;
    sg_reap(node, SOFTGPU_NONE, true);
    for (uint32_t i = 0; i < st->header.proc_high; i++) {
        const struct softgpu_proc *p = &st->procs[i];
        bool opened = id == SOFTGPU_NONE && (p->opened & (1u << device)) != 0;
        if (p->state == SOFTGPU_SLOT_USED &&
            (opened || holds(p, device, id, compute) || is_on(st, p, device, id, compute))) {
            if (count < room) {
                pids[count] = p->pid;
            }
            count++;
        }
    }
    return count;
}

bool sg_mig_in_use(const struct sg_node *node, uint32_t device, uint32_t id, uint32_t compute) {
    return sg_mig_users(node, device, id, compute, NULL, 0) > 0;
}

uint64_t sg_unit_free_bytes(const struct softgpu_state *st, uint32_t unit) {
    const struct softgpu_unit *u = &st->units[unit];
    uint64_t used = 0;
    for (uint32_t i = 0; u->instance != SOFTGPU_NONE && i < st->header.unit_count; i++) {
        const struct softgpu_unit *other = &st->units[i];
        if (other->state == SOFTGPU_SLOT_USED && other->device == u->device &&
            other->instance == u->instance) {
            used += other->used_bytes;
        }
    }
    used = u->instance == SOFTGPU_NONE ? u->used_bytes : used;
    return used < u->memory_bytes ? u->memory_bytes - used : 0;
}
