/* Handles: of devices, of MIG devices, of instances. All are guarded by the session's lock. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "session.h"

struct nvml_device {
    uint64_t serial; /* MIG: of the compute instance that it was asked for */
};

struct nvml_gpu_instance {
    unsigned index, id;
    uint64_t serial;
    struct nvml_gpu_instance *next;
};

struct nvml_compute_instance {
    unsigned index, instance, id;
    uint64_t serial;
    struct nvml_compute_instance *next;
};

static struct nvml_device gpus[SOFTGPU_MAX_DEVICES];
/* Used again for the next instance of the same ids, as NVML says of its own. */
static struct nvml_device migs[SOFTGPU_MAX_DEVICES][SOFTGPU_MIG_IDS][SOFTGPU_MIG_INSTANCES];
/* These are never given back: a caller may keep one for ever. */
static struct nvml_gpu_instance *instances;
static struct nvml_compute_instance *computes;

nvmlDevice_t sg_nvml_handle(unsigned index) {
    return &gpus[index];
}

static const struct softgpu_mig_compute *compute_at(const struct softgpu_state *st, unsigned index,
                                                    unsigned instance, unsigned compute) {
    const struct softgpu_mig_instance *g = &st->devices[index].mig[instance];
    const struct softgpu_mig_compute *c = &g->compute[compute];
    return g->state == SOFTGPU_SLOT_USED && c->state == SOFTGPU_SLOT_USED ? c : NULL;
}

static bool is_gpu(const struct sg_node *node, nvmlDevice_t device, struct nvml_target *target) {
    for (unsigned i = 0; i < node->st->header.device_count && i < SOFTGPU_MAX_DEVICES; i++) {
        if (device == &gpus[i]) {
            *target = (struct nvml_target){
                .index = i, .instance = NVML_NO_INSTANCE, .compute = NVML_NO_INSTANCE};
            return true;
        }
    }
    return false;
}

nvmlReturn_t sg_nvml_target(const struct sg_node *node, nvmlDevice_t device,
                            struct nvml_target *target) {
    if (is_gpu(node, device, target)) {
        return NVML_SUCCESS;
    }
    /* Compared as numbers: the pointer may be anything. */
    uintptr_t first = (uintptr_t)&migs[0][0][0];
    uintptr_t at = (uintptr_t)device - first;
    if ((uintptr_t)device < first || at >= sizeof(migs) || at % sizeof(migs[0][0][0]) != 0) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    unsigned i = (unsigned)(at / sizeof(migs[0][0][0]));
    *target = (struct nvml_target){.index = i / SOFTGPU_MIG_INSTANCES / SOFTGPU_MIG_IDS,
                                   .is_mig = true,
                                   .instance = i / SOFTGPU_MIG_INSTANCES % SOFTGPU_MIG_IDS,
                                   .compute = i % SOFTGPU_MIG_INSTANCES};
    const struct softgpu_mig_compute *c =
        compute_at(node->st, target->index, target->instance, target->compute);
    return c != NULL && c->serial == device->serial ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlDevice_t sg_nvml_mig_handle(const struct sg_node *node, unsigned index, unsigned instance,
                                unsigned compute) {
    struct nvml_device *h = &migs[index][instance][compute];
    h->serial = compute_at(node->st, index, instance, compute)->serial;
    return h;
}

nvmlGpuInstance_t sg_nvml_instance_handle(const struct sg_node *node, unsigned index, unsigned id) {
    uint64_t serial = node->st->devices[index].mig[id].serial;
    for (struct nvml_gpu_instance *h = instances; h != NULL; h = h->next) {
        if (h->index == index && h->id == id && h->serial == serial) {
            return h;
        }
    }
    struct nvml_gpu_instance *h = calloc(1, sizeof(*h));
    if (h != NULL) {
        *h = (struct nvml_gpu_instance){
            .index = index, .id = id, .serial = serial, .next = instances};
        instances = h;
    }
    return h;
}

nvmlComputeInstance_t sg_nvml_compute_handle(const struct sg_node *node, unsigned index,
                                             unsigned instance, unsigned id) {
    uint64_t serial = node->st->devices[index].mig[instance].compute[id].serial;
    for (struct nvml_compute_instance *h = computes; h != NULL; h = h->next) {
        if (h->index == index && h->instance == instance && h->id == id && h->serial == serial) {
            return h;
        }
    }
    struct nvml_compute_instance *h = calloc(1, sizeof(*h));
    if (h != NULL) {
        *h = (struct nvml_compute_instance){
            .index = index, .instance = instance, .id = id, .serial = serial, .next = computes};
        computes = h;
    }
    return h;
}

bool sg_nvml_mig_at(const struct sg_node *node, unsigned index, unsigned i,
                    struct nvml_target *target) {
    for (unsigned id = 0; id < SOFTGPU_MIG_IDS; id++) {
        for (unsigned c = 0; c < SOFTGPU_MIG_INSTANCES; c++) {
            if (compute_at(node->st, index, id, c) != NULL && i-- == 0) {
                *target = (struct nvml_target){
                    .index = index, .is_mig = true, .instance = id, .compute = c};
                return true;
            }
        }
    }
    return false;
}

static nvmlReturn_t find_locked(const struct sg_node *node, const char *uuid,
                                nvmlDevice_t *device) {
    for (unsigned index = 0; index < node->st->header.device_count; index++) {
        struct nvml_target t;
        for (unsigned i = 0; sg_nvml_mig_at(node, index, i, &t); i++) {
            char text[48];
            sg_nvml_format_uuid(text, "MIG-",
                                compute_at(node->st, index, t.instance, t.compute)->uuid);
            if (strcasecmp(text, uuid) == 0) {
                *device = sg_nvml_mig_handle(node, index, t.instance, t.compute);
                return NVML_SUCCESS;
            }
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t sg_nvml_find_mig(const char *entry, const char *uuid, nvmlDevice_t *device) {
    const struct sg_node *node = sg_nvml_enter();
    if (node == NULL) {
        return NVML_ERROR_UNINITIALIZED;
    }
    nvmlReturn_t err = device == NULL ? NVML_ERROR_INVALID_ARGUMENT
                                      : sg_nvml_strike(node, entry, SOFTGPU_NONE, false);
    if (err == NVML_SUCCESS) {
        sg_state_lock(node);
        err = find_locked(node, uuid, device);
        sg_state_unlock(node);
    }
    sg_nvml_leave();
    return err;
}

/* The instance behind a handle, or NULL: what is none, and what is gone. */
static const struct nvml_gpu_instance *known_instance(nvmlGpuInstance_t h) {
    const struct nvml_gpu_instance *known = instances;
    while (known != NULL && known != h) {
        known = known->next;
    }
    return known;
}

static const struct nvml_compute_instance *known_compute(nvmlComputeInstance_t h) {
    const struct nvml_compute_instance *known = computes;
    while (known != NULL && known != h) {
        known = known->next;
    }
    return known;
}

bool sg_nvml_instance_of(nvmlGpuInstance_t h, struct nvml_target *target, uint64_t *serial) {
    const struct nvml_gpu_instance *known = known_instance(h);
    if (known == NULL) {
        return false;
    }
    *target = (struct nvml_target){
        .index = known->index, .instance = known->id, .compute = NVML_NO_INSTANCE};
    *serial = known->serial;
    return true;
}

bool sg_nvml_compute_of(nvmlComputeInstance_t h, struct nvml_target *target, uint64_t *serial) {
    const struct nvml_compute_instance *known = known_compute(h);
    if (known == NULL) {
        return false;
    }
    *target = (struct nvml_target){
        .index = known->index, .instance = known->instance, .compute = known->id};
    *serial = known->serial;
    return true;
}
