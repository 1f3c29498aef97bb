/* What MIG could do with a device: the profiles of GPU instances, and where they may be. */
#include "internal.h"
#include "mig.h"

#include <stdio.h>
#include <string.h>

static const struct softgpu_mig_profile *by_number(const struct nvml_view *view, unsigned number) {
    for (uint32_t i = 0; i < view->model->mig_profile_count; i++) {
        if (view->model->mig_profiles[i].profile == number) {
            return &view->model->mig_profiles[i];
        }
    }
    return NULL;
}

/* Callers count upwards until "invalid": a number that NVML knows and this model lacks is only "not
 * supported". */
static nvmlReturn_t look_up(const struct nvml_view *view, unsigned number,
                            const struct softgpu_mig_profile **profile) {
    if (number >= NVML_GPU_INSTANCE_PROFILES) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    *profile = by_number(view, number);
    return *profile == NULL ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t device, unsigned number,
                                                 nvmlGpuInstanceProfileInfo_t *info) {
    NVML_VIEW(view, device);
    const struct softgpu_mig_profile *p;
    nvmlReturn_t err = look_up(&view, number, &p);
    if (err != NVML_SUCCESS) {
        return err;
    }
    if (info == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    *info = (nvmlGpuInstanceProfileInfo_t){.id = p->id,
                                           .sliceCount = p->slices,
                                           .instanceCount = p->instances,
                                           .multiprocessorCount = p->sm_count,
                                           .copyEngineCount = p->copy_engines,
                                           .decoderCount = p->decoders,
                                           .encoderCount = p->encoders,
                                           .jpegCount = p->jpeg,
                                           .ofaCount = p->ofa,
                                           .memorySizeMB = p->memory_mib};
    return NVML_SUCCESS;
}

/* Versions 2 and 3 come in the same call; which one is asked for stands in the struct. */
static nvmlReturn_t put_versioned(const struct softgpu_mig_profile *p, void *to) {
    nvmlGpuInstanceProfileInfo_v2_t *v2 = to;
    if (to == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    if (v2->version == NVML_VERSION_OF(nvmlGpuInstanceProfileInfo_v2_t, 2)) {
        *v2 = (nvmlGpuInstanceProfileInfo_v2_t){.version = v2->version,
                                                .id = p->id,
                                                .sliceCount = p->slices,
                                                .instanceCount = p->instances,
                                                .multiprocessorCount = p->sm_count,
                                                .copyEngineCount = p->copy_engines,
                                                .decoderCount = p->decoders,
                                                .encoderCount = p->encoders,
                                                .jpegCount = p->jpeg,
                                                .ofaCount = p->ofa,
                                                .memorySizeMB = p->memory_mib};
        snprintf(v2->name, sizeof v2->name, "MIG %s", p->name);
        return NVML_SUCCESS;
    }
    nvmlGpuInstanceProfileInfo_v3_t *v3 = to;
    if (v3->version != NVML_VERSION_OF(nvmlGpuInstanceProfileInfo_v3_t, 3)) {
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    }
    bool gfx = strstr(p->name, "+gfx") != NULL;
    *v3 = (nvmlGpuInstanceProfileInfo_v3_t){.version = v3->version,
                                            .id = p->id,
                                            .sliceCount = p->slices,
                                            .instanceCount = p->instances,
                                            .multiprocessorCount = p->sm_count,
                                            .copyEngineCount = p->copy_engines,
                                            .decoderCount = p->decoders,
                                            .encoderCount = p->encoders,
                                            .jpegCount = p->jpeg,
                                            .ofaCount = p->ofa,
                                            .memorySizeMB = p->memory_mib,
                                            .capabilities = gfx ? NVML_PROFILE_CAPS_GFX : 0};
    snprintf(v3->name, sizeof v3->name, "MIG %s", p->name);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t device, unsigned number,
                                                  void *info) {
    NVML_VIEW(view, device);
    const struct softgpu_mig_profile *p;
    nvmlReturn_t err = look_up(&view, number, &p);
    return err != NVML_SUCCESS ? err : put_versioned(p, info);
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoByIdV(nvmlDevice_t device, unsigned id,
                                                      void *info) {
    NVML_VIEW(view, device);
    const struct softgpu_mig_profile *p = sg_mig_profile(view.model, id);
    return p == NULL ? NVML_ERROR_NOT_SUPPORTED : put_versioned(p, info);
}

static nvmlReturn_t placements(const char *entry, nvmlDevice_t device, unsigned id,
                               nvmlGpuInstancePlacement_t *places, unsigned *count) {
    NVML_VIEW_FOR(entry, view, device);
    const struct softgpu_mig_profile *p = sg_mig_profile(view.model, id);
    if (count == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    if (p == NULL) {
        return NVML_ERROR_NOT_SUPPORTED;
    }
    if (places != NULL && *count < p->start_count) {
        *count = p->start_count;
        return NVML_ERROR_INSUFFICIENT_SIZE;
    }
    *count = p->start_count;
    for (uint32_t i = 0; places != NULL && i < p->start_count; i++) {
        places[i] = (nvmlGpuInstancePlacement_t){.start = p->starts[i], .size = p->size};
    }
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements(nvmlDevice_t device, unsigned id,
                                                        nvmlGpuInstancePlacement_t *places,
                                                        unsigned *count) {
    return placements(__func__, device, id, places, count);
}

nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements_v2(nvmlDevice_t device, unsigned id,
                                                           nvmlGpuInstancePlacement_t *places,
                                                           unsigned *count) {
    return placements(__func__, device, id, places, count);
}
