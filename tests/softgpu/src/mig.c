/* MIG instances in the state file: making and destroying them.
 *
 * An instance is there from the one store that makes its slot USED, when all the rest of it is written, and
 * until the one that makes it FREE. So whoever dies on the way leaves it there or not there, and nothing
 * between; sg_mig_repair gives back what it had taken for it. */
#include "mig.h"

#include <errno.h>
#include <string.h>

const struct softgpu_model *sg_mig_model(const struct softgpu_state *st, uint32_t device) {
    return softgpu_model_find(st->devices[device].model);
}

uint32_t sg_mig_places(const struct softgpu_state *st, uint32_t device,
                       struct sg_mig_place places[SOFTGPU_MIG_INSTANCES]) {
    const struct softgpu_model *m = sg_mig_model(st, device);
    uint32_t count = 0;
    for (uint32_t i = 0; i < SOFTGPU_MIG_IDS && count < SOFTGPU_MIG_INSTANCES; i++) {
        const struct softgpu_mig_instance *g = &st->devices[device].mig[i];
        if (g->state == SOFTGPU_SLOT_USED) {
            places[count++] =
                (struct sg_mig_place){.profile = sg_mig_profile(m, g->profile), .start = g->start};
        }
    }
    return count;
}

void sg_mig_begin(const struct sg_node *node, uint32_t device) {
    sg_mig_caps_spoil(node);
    __atomic_add_fetch(&node->st->devices[device].mig_changes, 1, __ATOMIC_ACQ_REL);
}

void sg_mig_end(const struct sg_node *node, uint32_t device) {
    __atomic_add_fetch(&node->st->devices[device].mig_changes, 1, __ATOMIC_ACQ_REL);
    sg_mig_caps_sync(node);
}

static void set_state(uint32_t *state, uint32_t value) {
    __atomic_store_n(state, value, __ATOMIC_RELEASE);
}

/* ---- GPU instances */

static struct softgpu_mig_instance *instance_of(struct softgpu_state *st, uint32_t device,
                                                uint32_t id) {
    if (id >= SOFTGPU_MIG_IDS || st->devices[device].mig[id].state != SOFTGPU_SLOT_USED) {
        return NULL;
    }
    return &st->devices[device].mig[id];
}

/* Ids go by the share of the memory and the place in it: 0 for all, 1 and 2 for the halves, the later half
 * first, 3 to 6 for the quarters, 7 to 14 for the eighths. So an instance in the same place has the same id
 * again. */
static uint32_t id_of(const struct softgpu_model *m, uint32_t start, uint32_t size) {
    uint32_t share = m->mig_memory_slices / size;
    switch (share) {
    case 1:
        return 0;
    case 2:
        return start > 0 ? 1 : 2;
    case 4:
        return 3 + start / size;
    default:
        return 7 + start / size;
    }
}

static int check_place(const struct softgpu_state *st, uint32_t device,
                       const struct softgpu_mig_profile *p, uint32_t start) {
    const struct softgpu_model *m = sg_mig_model(st, device);
    struct sg_mig_place places[SOFTGPU_MIG_INSTANCES + 1];
    struct sg_mig_place alone = {.profile = p, .start = start};
    if (!sg_mig_legal(m, &alone, 1)) {
        return -EINVAL;
    }
    uint32_t count = sg_mig_places(st, device, places);
    places[count] = alone;
    return sg_mig_legal(m, places, count + 1) ? 0 : -ENOSPC;
}

/* The driver takes the last place that is free; which one is nobody's promise. */
static int choose_place(const struct softgpu_state *st, uint32_t device,
                        const struct softgpu_mig_profile *p, uint32_t *start) {
    for (uint32_t i = p->start_count; i-- > 0;) {
        if (check_place(st, device, p, p->starts[i]) == 0) {
            *start = p->starts[i];
            return 0;
        }
    }
    return -ENOSPC;
}

int sg_mig_create(const struct sg_node *node, uint32_t device, uint32_t profile, uint32_t start,
                  uint32_t *id) {
    struct softgpu_state *st = node->st;
    struct softgpu_device *d = &st->devices[device];
    const struct softgpu_model *m = sg_mig_model(st, device);
    if (m == NULL || d->mig_mode != SOFTGPU_MIG_ENABLED) {
        return -ENOSYS;
    }
    const struct softgpu_mig_profile *p = sg_mig_profile(m, profile);
    if (p == NULL) {
        return -EINVAL;
    }
    int rc = start == SG_MIG_ANYWHERE ? choose_place(st, device, p, &start)
                                      : check_place(st, device, p, start);
    if (rc != 0) {
        return rc;
    }
    /* The first instance divides the device, which nobody may use then. */
    struct sg_mig_place places[SOFTGPU_MIG_INSTANCES];
    if (sg_mig_places(st, device, places) == 0 &&
        sg_mig_in_use(node, device, SOFTGPU_NONE, SOFTGPU_NONE)) {
        return -EBUSY;
    }
    *id = id_of(m, start, p->size);
    struct softgpu_mig_instance *g = &d->mig[*id];
    sg_mig_begin(node, device);
    g->profile = p->id;
    g->start = start;
    g->size = p->size;
    g->memory_bytes = (uint64_t)p->memory_mib << 20;
    g->serial = ++st->header.mig_serial;
    memset(g->compute, 0, sizeof(g->compute));
    set_state(&g->state, SOFTGPU_SLOT_USED);
    sg_mig_end(node, device);
    return 0;
}

int sg_mig_destroy(const struct sg_node *node, uint32_t device, uint32_t id) {
    struct softgpu_mig_instance *g = instance_of(node->st, device, id);
    if (g == NULL) {
        return -EINVAL;
    }
    for (uint32_t c = 0; c < SOFTGPU_MIG_INSTANCES; c++) {
        if (g->compute[c].state == SOFTGPU_SLOT_USED) {
            return -EBUSY;
        }
    }
    if (sg_mig_in_use(node, device, id, SOFTGPU_NONE)) {
        return -EBUSY;
    }
    sg_mig_begin(node, device);
    set_state(&g->state, SOFTGPU_SLOT_FREE);
    sg_mig_end(node, device);
    return 0;
}

/* ---- compute instances */

bool sg_mig_compute_fits(const struct softgpu_mig_instance *g,
                         const struct sg_mig_compute_profile *p, uint32_t start) {
    uint32_t same = 0;
    for (uint32_t c = 0; c < SOFTGPU_MIG_INSTANCES; c++) {
        const struct softgpu_mig_compute *other = &g->compute[c];
        if (other->state != SOFTGPU_SLOT_USED) {
            continue;
        }
        if (start < other->start + other->size && other->start < start + p->slices) {
            return false;
        }
        same += other->profile == p->id;
    }
    return same < p->instances;
}

static int choose_compute(const struct softgpu_mig_instance *g,
                          const struct sg_mig_compute_profile *p, uint32_t *start) {
    bool anywhere = *start == SG_MIG_ANYWHERE;
    int rc = anywhere ? -ENOSPC : -EINVAL;
    for (uint32_t i = 0; i < p->instances; i++) {
        if (!anywhere && p->starts[i] != *start) {
            continue;
        }
        rc = -ENOSPC;
        if (sg_mig_compute_fits(g, p, p->starts[i])) {
            *start = p->starts[i];
            return 0;
        }
    }
    return rc;
}

static uint32_t free_unit(const struct softgpu_state *st) {
    for (uint32_t u = st->header.device_count; u < SOFTGPU_MAX_UNITS; u++) {
        if (st->units[u].state == SOFTGPU_SLOT_FREE) {
            return u;
        }
    }
    return SOFTGPU_NONE;
}

/* The compute instance's own device in the model: its SMs, and its GPU instance's share of the rest. */
static void make_unit(struct softgpu_state *st, uint32_t u, uint32_t device, uint32_t id,
                      const struct sg_mig_compute_profile *c) {
    const struct softgpu_model *m = sg_mig_model(st, device);
    const struct softgpu_mig_instance *g = &st->devices[device].mig[id];
    double share = (double)g->size / m->mig_memory_slices;
    double rate[SOFTGPU_QUEUES] = {m->h2d_bytes_per_ns, m->d2h_bytes_per_ns,
                                   m->dram_bytes_per_ns * share / 2, 0};
    struct softgpu_unit *unit = &st->units[u];
    sg_unit_init(unit, device, c->sm_count, g->memory_bytes, rate);
    unit->instance = id;
    unit->copy_engines = sg_mig_profile(m, g->profile)->copy_engines;
    unit->now_ns = sg_state_now(st);
    if (u >= st->header.unit_count) {
        st->header.unit_count = u + 1;
    }
    for (uint32_t i = 0; i < st->header.proc_high; i++) {
        st->procs[i].sm_ns[u] = 0; /* was another's */
    }
}

/* Random enough that no two are alike, and none is known before. */
static void make_uuid(uint8_t uuid[16], const struct softgpu_device *d, uint64_t serial) {
    uint64_t x = sg_monotonic_ns() ^ (serial * 0x9e3779b97f4a7c15u);
    for (int b = 0; b < 16; b++) {
        x ^= x >> 30;
        x = (x + d->uuid[b]) * 0xbf58476d1ce4e5b9u;
        x ^= x >> 27;
        uuid[b] = (uint8_t)(x >> 8);
    }
    uuid[6] = (uint8_t)((uuid[6] & 0x0f) | 0x50);
    uuid[8] = (uint8_t)((uuid[8] & 0x3f) | 0x80);
}

int sg_mig_create_compute(const struct sg_node *node, uint32_t device, uint32_t id,
                          uint32_t profile, uint32_t start, uint32_t *compute) {
    struct softgpu_state *st = node->st;
    struct softgpu_mig_instance *g = instance_of(st, device, id);
    struct sg_mig_compute_profile p;
    if (g == NULL || !sg_mig_compute_profile(sg_mig_model(st, device),
                                             sg_mig_profile(sg_mig_model(st, device), g->profile),
                                             profile, &p)) {
        return -EINVAL;
    }
    int rc = choose_compute(g, &p, &start);
    uint32_t c = 0;
    while (c < SOFTGPU_MIG_INSTANCES && g->compute[c].state == SOFTGPU_SLOT_USED) {
        c++;
    }
    uint32_t u = free_unit(st);
    if (rc == 0 && (c == SOFTGPU_MIG_INSTANCES || u == SOFTGPU_NONE)) {
        rc = -ENOSPC;
    }
    if (rc != 0) {
        return rc;
    }
    sg_mig_begin(node, device);
    make_unit(st, u, device, id, &p);
    st->units[u].compute = c;
    g->compute[c] = (struct softgpu_mig_compute){.state = SOFTGPU_SLOT_FREE,
                                                 .profile = profile,
                                                 .start = start,
                                                 .size = p.slices,
                                                 .unit = u,
                                                 .sm_count = p.sm_count,
                                                 .serial = ++st->header.mig_serial};
    make_uuid(g->compute[c].uuid, &st->devices[device], g->compute[c].serial);
    set_state(&g->compute[c].state, SOFTGPU_SLOT_USED);
    sg_mig_end(node, device);
    *compute = c;
    return 0;
}

int sg_mig_destroy_compute(const struct sg_node *node, uint32_t device, uint32_t id,
                           uint32_t compute) {
    struct softgpu_mig_instance *g = instance_of(node->st, device, id);
    if (g == NULL || compute >= SOFTGPU_MIG_INSTANCES ||
        g->compute[compute].state != SOFTGPU_SLOT_USED) {
        return -EINVAL;
    }
    if (sg_mig_in_use(node, device, id, compute)) {
        return -EBUSY;
    }
    sg_mig_begin(node, device);
    set_state(&g->compute[compute].state, SOFTGPU_SLOT_FREE);
    node->st->units[g->compute[compute].unit].state = SOFTGPU_SLOT_FREE;
    sg_mig_end(node, device);
    return 0;
}

/* ---- repair */

/* Is the unit that of a compute instance which is there? */
static bool is_owned(const struct softgpu_state *st, uint32_t u) {
    const struct softgpu_unit *unit = &st->units[u];
    if (unit->device >= SOFTGPU_MAX_DEVICES || unit->instance >= SOFTGPU_MIG_IDS ||
        unit->compute >= SOFTGPU_MIG_INSTANCES) {
        return false;
    }
    const struct softgpu_mig_compute *c =
        &st->devices[unit->device].mig[unit->instance].compute[unit->compute];
    return c->state == SOFTGPU_SLOT_USED && c->unit == u;
}

/* What belongs to an instance that is not there is free. */
static void give_back(struct softgpu_state *st) {
    for (uint32_t d = 0; d < st->header.device_count; d++) {
        for (uint32_t i = 0; i < SOFTGPU_MIG_IDS; i++) {
            struct softgpu_mig_instance *g = &st->devices[d].mig[i];
            for (uint32_t c = 0; c < SOFTGPU_MIG_INSTANCES; c++) {
                if (g->state != SOFTGPU_SLOT_USED) {
                    set_state(&g->compute[c].state, SOFTGPU_SLOT_FREE);
                }
            }
        }
    }
    for (uint32_t u = st->header.device_count; u < SOFTGPU_MAX_UNITS; u++) {
        if (!is_owned(st, u)) {
            st->units[u].state = SOFTGPU_SLOT_FREE;
        }
    }
}

void sg_mig_repair(struct softgpu_state *st) {
    give_back(st);
    for (uint32_t d = 0; d < st->header.device_count; d++) {
        uint64_t changes = __atomic_load_n(&st->devices[d].mig_changes, __ATOMIC_ACQUIRE);
        __atomic_add_fetch(&st->devices[d].mig_changes, changes & 1, __ATOMIC_ACQ_REL);
    }
}

void sg_mig_forget(struct softgpu_state *st, uint32_t device) {
    for (uint32_t i = 0; i < SOFTGPU_MIG_IDS; i++) {
        set_state(&st->devices[device].mig[i].state, SOFTGPU_SLOT_FREE);
    }
    give_back(st);
}
