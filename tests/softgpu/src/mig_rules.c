/* What a model allows: sets of GPU instances, and the compute instances within one. */
#include "mig.h"

enum { ENGINES = 5 };

static void engines_of(const struct softgpu_mig_profile *p, uint32_t out[ENGINES]) {
    out[0] = p->copy_engines;
    out[1] = p->decoders;
    out[2] = p->encoders;
    out[3] = p->jpeg;
    out[4] = p->ofa;
}

const struct softgpu_mig_profile *sg_mig_profile(const struct softgpu_model *m, uint32_t id) {
    for (uint32_t i = 0; i < m->mig_profile_count; i++) {
        if (m->mig_profiles[i].id == id) {
            return &m->mig_profiles[i];
        }
    }
    return NULL;
}

/* What the device has to give: the instance that is the whole of it has everything. */
static const struct softgpu_mig_profile *whole(const struct softgpu_model *m) {
    for (uint32_t i = 0; i < m->mig_profile_count; i++) {
        if (m->mig_profiles[i].slices == m->mig_compute_slices) {
            return &m->mig_profiles[i];
        }
    }
    return NULL;
}

static bool is_start(const struct softgpu_mig_profile *p, uint32_t start) {
    for (uint32_t i = 0; i < p->start_count; i++) {
        if (p->starts[i] == start) {
            return true;
        }
    }
    return false;
}

bool sg_mig_legal(const struct softgpu_model *m, const struct sg_mig_place *places,
                  uint32_t count) {
    const struct softgpu_mig_profile *all = whole(m);
    uint32_t have[ENGINES];
    uint32_t used[ENGINES] = {0};
    uint32_t slices = 0;
    uint32_t memory = 0; /* a bit per memory slice */
    if (all == NULL || count > SOFTGPU_MIG_INSTANCES) {
        return false;
    }
    engines_of(all, have);
    for (uint32_t i = 0; i < count; i++) {
        const struct softgpu_mig_profile *p = places[i].profile;
        uint32_t window = ((1u << p->size) - 1) << places[i].start;
        if (!is_start(p, places[i].start) || (memory & window) != 0) {
            return false;
        }
        memory |= window;
        slices += p->slices;
        uint32_t take[ENGINES];
        engines_of(p, take);
        for (int e = 0; e < ENGINES; e++) {
            used[e] += take[e];
            if (used[e] > have[e]) {
                return false;
            }
        }
        uint32_t same = 0;
        for (uint32_t k = 0; k <= i; k++) {
            same += places[k].profile == p;
        }
        if (same > p->instances) {
            return false;
        }
    }
    return slices <= m->mig_compute_slices;
}

uint32_t sg_mig_room(const struct softgpu_model *m, const struct softgpu_mig_profile *p,
                     const struct sg_mig_place *places, uint32_t count) {
    uint32_t best = 0;
    for (uint32_t set = 0; set < 1u << p->start_count; set++) {
        struct sg_mig_place with[SOFTGPU_MIG_INSTANCES + SOFTGPU_MIG_STARTS];
        uint32_t more = 0;
        for (uint32_t i = 0; i < count; i++) {
            with[i] = places[i];
        }
        for (uint32_t i = 0; i < p->start_count; i++) {
            if (set & (1u << i)) {
                with[count + more++] = (struct sg_mig_place){.profile = p, .start = p->starts[i]};
            }
        }
        if (more > best && sg_mig_legal(m, with, count + more)) {
            best = more;
        }
    }
    return best;
}

static bool is_maximal(const struct softgpu_model *m, const struct sg_mig_place *places,
                       uint32_t count) {
    for (uint32_t i = 0; i < m->mig_profile_count; i++) {
        if (sg_mig_room(m, &m->mig_profiles[i], places, count) > 0) {
            return false;
        }
    }
    return true;
}

struct walk {
    const struct softgpu_model *model;
    struct sg_mig_place places[SOFTGPU_MIG_INSTANCES];
    sg_mig_visit *visit;
    void *arg;
};

/* From memory slice `at` on: nothing begins there, or any of the profiles. */
static void walk_from(struct walk *w, uint32_t at, uint32_t count) {
    const struct softgpu_model *m = w->model;
    if (at >= m->mig_memory_slices) {
        w->visit(w->arg, w->places, count, is_maximal(m, w->places, count));
        return;
    }
    walk_from(w, at + 1, count);
    for (uint32_t i = 0; i < m->mig_profile_count && count < SOFTGPU_MIG_INSTANCES; i++) {
        const struct softgpu_mig_profile *p = &m->mig_profiles[i];
        w->places[count] = (struct sg_mig_place){.profile = p, .start = at};
        /* What is not legal does not become so by more. */
        if (sg_mig_legal(m, w->places, count + 1)) {
            walk_from(w, at + p->size, count + 1);
        }
    }
}

void sg_mig_enumerate(const struct softgpu_model *m, sg_mig_visit *visit, void *arg) {
    struct walk w = {.model = m, .visit = visit, .arg = arg};
    walk_from(&w, 0, 0);
}

/* NVML numbers the compute instance profiles of 1, 2, 3, 4 and 7 slices. */
static const uint32_t SLICES_OF[] = {1, 2, 3, 4, 7};

/* The SMs of a part are those of the smallest GPU instance with as many slices; the whole has all. */
static uint32_t sms_of(const struct softgpu_model *m, const struct softgpu_mig_profile *p,
                       uint32_t slices) {
    uint32_t least = p->sm_count;
    for (uint32_t i = 0; slices < p->slices && i < m->mig_profile_count; i++) {
        const struct softgpu_mig_profile *q = &m->mig_profiles[i];
        if (q->slices == slices && q->sm_count < least) {
            least = q->sm_count;
        }
    }
    return least;
}

bool sg_mig_compute_profile(const struct softgpu_model *m, const struct softgpu_mig_profile *p,
                            uint32_t id, struct sg_mig_compute_profile *out) {
    if (id >= sizeof(SLICES_OF) / sizeof(SLICES_OF[0])) {
        return false;
    }
    uint32_t slices = SLICES_OF[id];
    for (uint32_t i = 0; i < p->compute_count; i++) {
        if (p->compute[i].slices != slices) {
            continue;
        }
        *out = (struct sg_mig_compute_profile){.id = id,
                                               .slices = slices,
                                               .instances = p->compute[i].instances,
                                               .sm_count = sms_of(m, p, slices)};
        uint32_t step = slices == 3 ? 4 : slices; /* as boards list them */
        for (uint32_t k = 0; k < out->instances && k < SOFTGPU_MIG_STARTS; k++) {
            out->starts[k] = k * step;
        }
        return true;
    }
    return false;
}
