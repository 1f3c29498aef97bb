/* Compute instances: their profiles, making, destroying, finding. */
#include <stdio.h>
#include <string.h>

#include "session.h"

enum { ENGINES_SHARED = 0 }; /* NVML knows no other way yet */

/* Answers about a compute instance profile of this call's GPU instance. */
static nvmlReturn_t look_up(const struct nvml_call *c, unsigned number, unsigned engines,
                            struct sg_mig_compute_profile *p) {
    if (number >= NVML_COMPUTE_INSTANCE_PROFILES || engines != ENGINES_SHARED) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    return sg_mig_compute_profile(c->model, c->profile, number, p) ? NVML_SUCCESS
                                                                   : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfo(nvmlGpuInstance_t instance,
                                                          unsigned number, unsigned engines,
                                                          nvmlComputeInstanceProfileInfo_t *info) {
    struct nvml_call c;
    struct sg_mig_compute_profile p;
    nvmlReturn_t err = sg_nvml_begin_instance(&c, __func__, instance);
    if (err != NVML_SUCCESS) {
        return err;
    }
    err = info == NULL ? NVML_ERROR_INVALID_ARGUMENT : look_up(&c, number, engines, &p);
    if (err == NVML_SUCCESS) {
        *info = (nvmlComputeInstanceProfileInfo_t){.id = p.id,
                                                   .sliceCount = p.slices,
                                                   .instanceCount = p.instances,
                                                   .multiprocessorCount = p.sm_count,
                                                   .sharedCopyEngineCount = c.profile->copy_engines,
                                                   .sharedDecoderCount = c.profile->decoders,
                                                   .sharedEncoderCount = c.profile->encoders,
                                                   .sharedJpegCount = c.profile->jpeg,
                                                   .sharedOfaCount = c.profile->ofa};
    }
    return sg_nvml_end(&c, err);
}

/* Version 3 has one field more at the end. */
static nvmlReturn_t put_versioned(const struct softgpu_mig_profile *g,
                                  const struct sg_mig_compute_profile *p, void *to) {
    nvmlComputeInstanceProfileInfo_v3_t info = {.id = p->id,
                                                .sliceCount = p->slices,
                                                .instanceCount = p->instances,
                                                .multiprocessorCount = p->sm_count,
                                                .sharedCopyEngineCount = g->copy_engines,
                                                .sharedDecoderCount = g->decoders,
                                                .sharedEncoderCount = g->encoders,
                                                .sharedJpegCount = g->jpeg,
                                                .sharedOfaCount = g->ofa};
    char part[16] = "";
    if (p->slices != g->slices) {
        snprintf(part, sizeof part, "%uc.", p->slices);
    }
    snprintf(info.name, sizeof info.name, "MIG %s%s", part, g->name);
    info.capabilities = strstr(g->name, "+gfx") != NULL ? NVML_COMPUTE_PROFILE_CAPS_GFX : 0;
    unsigned version;
    memcpy(&version, to, sizeof version);
    info.version = version;
    if (version == NVML_VERSION_OF(nvmlComputeInstanceProfileInfo_v2_t, 2)) {
        memcpy(to, &info, sizeof(nvmlComputeInstanceProfileInfo_v2_t));
        return NVML_SUCCESS;
    }
    if (version == NVML_VERSION_OF(nvmlComputeInstanceProfileInfo_v3_t, 3)) {
        memcpy(to, &info, sizeof info);
        return NVML_SUCCESS;
    }
    return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfoV(nvmlGpuInstance_t instance,
                                                           unsigned number, unsigned engines,
                                                           void *info) {
    struct nvml_call c;
    struct sg_mig_compute_profile p;
    nvmlReturn_t err = sg_nvml_begin_instance(&c, __func__, instance);
    if (err != NVML_SUCCESS) {
        return err;
    }
    err = info == NULL ? NVML_ERROR_INVALID_ARGUMENT : look_up(&c, number, engines, &p);
    return sg_nvml_end(&c, err != NVML_SUCCESS ? err : put_versioned(c.profile, &p, info));
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceRemainingCapacity(nvmlGpuInstance_t instance,
                                                                unsigned profile, unsigned *count) {
    struct nvml_call c;
    struct sg_mig_compute_profile p;
    nvmlReturn_t err = sg_nvml_begin_instance(&c, __func__, instance);
    if (err != NVML_SUCCESS) {
        return err;
    }
    err = look_up(&c, profile, ENGINES_SHARED, &p);
    if (err != NVML_SUCCESS) {
        return sg_nvml_end(&c, err);
    }
    /* The places of one profile do not overlap, so each that is free counts. */
    unsigned room = 0;
    for (uint32_t i = 0; i < p.instances; i++) {
        room += sg_mig_compute_fits(c.instance, &p, p.starts[i]);
    }
    return sg_nvml_end(&c, sg_nvml_put(count, room));
}

nvmlReturn_t
nvmlGpuInstanceGetComputeInstancePossiblePlacements(nvmlGpuInstance_t instance, unsigned profile,
                                                    nvmlComputeInstancePlacement_t *places,
                                                    unsigned *count) {
    struct nvml_call c;
    struct sg_mig_compute_profile p;
    nvmlReturn_t err = sg_nvml_begin_instance(&c, __func__, instance);
    if (err != NVML_SUCCESS) {
        return err;
    }
    err = count == NULL ? NVML_ERROR_INVALID_ARGUMENT : look_up(&c, profile, ENGINES_SHARED, &p);
    if (err != NVML_SUCCESS) {
        return sg_nvml_end(&c, err);
    }
    bool fits = places == NULL || *count >= p.instances;
    *count = p.instances;
    for (uint32_t i = 0; fits && places != NULL && i < p.instances; i++) {
        places[i] = (nvmlComputeInstancePlacement_t){.start = p.starts[i], .size = p.slices};
    }
    return sg_nvml_end(&c, fits ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE);
}

static nvmlReturn_t create(const char *entry, nvmlGpuInstance_t instance, unsigned profile,
                           const nvmlComputeInstancePlacement_t *place,
                           nvmlComputeInstance_t *compute) {
    struct nvml_call c;
    struct sg_mig_compute_profile p;
    nvmlReturn_t err = sg_nvml_begin_instance(&c, entry, instance);
    if (err != NVML_SUCCESS) {
        return err;
    }
    bool known = sg_mig_compute_profile(c.model, c.profile, profile, &p);
    if (compute == NULL || !known ||
        (place != NULL && (place->size != p.slices || place->start == SG_MIG_ANYWHERE))) {
        return sg_nvml_end(&c, NVML_ERROR_INVALID_ARGUMENT);
    }
    err = sg_nvml_may_configure(&c);
    if (err == NVML_SUCCESS) {
        uint32_t id;
        err = sg_nvml_code(sg_mig_create_compute(c.node, c.target.index, c.target.instance, profile,
                                                 place == NULL ? SG_MIG_ANYWHERE : place->start,
                                                 &id));
        if (err == NVML_SUCCESS) {
            *compute = sg_nvml_compute_handle(c.node, c.target.index, c.target.instance, id);
        }
    }
    return sg_nvml_end(&c, err);
}

nvmlReturn_t nvmlGpuInstanceCreateComputeInstance(nvmlGpuInstance_t instance, unsigned profile,
                                                  nvmlComputeInstance_t *compute) {
    return create(__func__, instance, profile, NULL, compute);
}

nvmlReturn_t
nvmlGpuInstanceCreateComputeInstanceWithPlacement(nvmlGpuInstance_t instance, unsigned profile,
                                                  const nvmlComputeInstancePlacement_t *place,
                                                  nvmlComputeInstance_t *compute) {
    if (place == NULL) {
        nvmlReturn_t err = sg_nvml_ready();
        return err != NVML_SUCCESS ? err : NVML_ERROR_INVALID_ARGUMENT;
    }
    return create(__func__, instance, profile, place, compute);
}

nvmlReturn_t nvmlComputeInstanceDestroy(nvmlComputeInstance_t compute) {
    struct nvml_call c;
    nvmlReturn_t err = sg_nvml_begin_compute(&c, __func__, compute);
    if (err != NVML_SUCCESS) {
        return err;
    }
    err = sg_nvml_may_configure(&c);
    if (err == NVML_SUCCESS) {
        err = sg_nvml_code(
            sg_mig_destroy_compute(c.node, c.target.index, c.target.instance, c.target.compute));
    }
    return sg_nvml_end(&c, err);
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstances(nvmlGpuInstance_t instance, unsigned profile,
                                                nvmlComputeInstance_t *computes, unsigned *count) {
    struct nvml_call c;
    struct sg_mig_compute_profile p;
    nvmlReturn_t err = sg_nvml_begin_instance(&c, __func__, instance);
    if (err != NVML_SUCCESS) {
        return err;
    }
    err = look_up(&c, profile, ENGINES_SHARED, &p);
    if (err == NVML_SUCCESS && (computes == NULL || count == NULL)) {
        err = NVML_ERROR_INVALID_ARGUMENT;
    }
    if (err != NVML_SUCCESS) {
        return sg_nvml_end(&c, err);
    }
    *count = 0;
    for (uint32_t i = 0; i < SOFTGPU_MIG_INSTANCES; i++) {
        const struct softgpu_mig_compute *made = &c.instance->compute[i];
        if (made->state == SOFTGPU_SLOT_USED && made->profile == profile) {
            computes[(*count)++] =
                sg_nvml_compute_handle(c.node, c.target.index, c.target.instance, i);
        }
    }
    return sg_nvml_end(&c, NVML_SUCCESS);
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceById(nvmlGpuInstance_t instance, unsigned id,
                                                   nvmlComputeInstance_t *compute) {
    struct nvml_call c;
    nvmlReturn_t err = sg_nvml_begin_instance(&c, __func__, instance);
    if (err != NVML_SUCCESS) {
        return err;
    }
    if (compute == NULL) {
        return sg_nvml_end(&c, NVML_ERROR_INVALID_ARGUMENT);
    }
    if (id >= SOFTGPU_MIG_INSTANCES || c.instance->compute[id].state != SOFTGPU_SLOT_USED) {
        return sg_nvml_end(&c, NVML_ERROR_NOT_FOUND);
    }
    *compute = sg_nvml_compute_handle(c.node, c.target.index, c.target.instance, id);
    return sg_nvml_end(&c, NVML_SUCCESS);
}

/* Its `device` is the MIG device. The first version ends before the placement. */
static nvmlReturn_t get_info(const char *entry, size_t size, nvmlComputeInstance_t compute,
                             nvmlComputeInstanceInfo_t *info) {
    struct nvml_call c;
    nvmlReturn_t err = sg_nvml_begin_compute(&c, entry, compute);
    if (err != NVML_SUCCESS) {
        return err;
    }
    if (info == NULL) {
        return sg_nvml_end(&c, NVML_ERROR_INVALID_ARGUMENT);
    }
    unsigned index = c.target.index;
    nvmlComputeInstanceInfo_t all = {
        .device = sg_nvml_mig_handle(c.node, index, c.target.instance, c.target.compute),
        .gpuInstance = sg_nvml_instance_handle(c.node, index, c.target.instance),
        .id = c.target.compute,
        .profileId = c.compute->profile,
        .placement = {.start = c.compute->start, .size = c.compute->size}};
    memcpy(info, &all, size);
    return sg_nvml_end(&c, NVML_SUCCESS);
}

nvmlReturn_t nvmlComputeInstanceGetInfo(nvmlComputeInstance_t compute,
                                        nvmlComputeInstanceInfo_t *info) {
    return get_info(__func__, offsetof(nvmlComputeInstanceInfo_t, placement), compute, info);
}

nvmlReturn_t nvmlComputeInstanceGetInfo_v2(nvmlComputeInstance_t compute,
                                           nvmlComputeInstanceInfo_t *info) {
    return get_info(__func__, sizeof *info, compute, info);
}
