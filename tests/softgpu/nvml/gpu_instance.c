/* GPU instances: making, destroying, finding. */
#include "session.h"

nvmlReturn_t nvmlDeviceGetGpuInstanceRemainingCapacity(nvmlDevice_t device, unsigned id,
                                                       unsigned *count) {
    struct nvml_call c;
    nvmlReturn_t err = sg_nvml_begin(&c, __func__, device, true);
    if (err != NVML_SUCCESS) {
        return err;
    }
    const struct softgpu_mig_profile *p = sg_mig_profile(c.model, id);
    struct sg_mig_place places[SOFTGPU_MIG_INSTANCES];
    uint32_t made = sg_mig_places(c.node->st, c.target.index, places);
    err = p == NULL ? NVML_ERROR_NOT_SUPPORTED
                    : sg_nvml_put(count, sg_mig_room(c.model, p, places, made));
    return sg_nvml_end(&c, err);
}

/* Without a place the driver chooses one. */
static nvmlReturn_t create(const char *entry, nvmlDevice_t device, unsigned profile,
                           const nvmlGpuInstancePlacement_t *place, nvmlGpuInstance_t *instance) {
    struct nvml_call c;
    nvmlReturn_t err = sg_nvml_begin(&c, entry, device, true);
    if (err != NVML_SUCCESS) {
        return err;
    }
    const struct softgpu_mig_profile *p = sg_mig_profile(c.model, profile);
    bool wrong =
        p != NULL && place != NULL && (place->size != p->size || place->start == SG_MIG_ANYWHERE);
    err = instance == NULL || wrong ? NVML_ERROR_INVALID_ARGUMENT : sg_nvml_may_configure(&c);
    if (err == NVML_SUCCESS) {
        uint32_t id;
        uint32_t start = place == NULL ? SG_MIG_ANYWHERE : place->start;
        err = sg_nvml_code(sg_mig_create(c.node, c.target.index, profile, start, &id));
        if (err == NVML_SUCCESS) {
            *instance = sg_nvml_instance_handle(c.node, c.target.index, id);
        }
    }
    return sg_nvml_end(&c, err);
}

nvmlReturn_t nvmlDeviceCreateGpuInstance(nvmlDevice_t device, unsigned profile,
                                         nvmlGpuInstance_t *instance) {
    return create(__func__, device, profile, NULL, instance);
}

nvmlReturn_t nvmlDeviceCreateGpuInstanceWithPlacement(nvmlDevice_t device, unsigned profile,
                                                      const nvmlGpuInstancePlacement_t *place,
                                                      nvmlGpuInstance_t *instance) {
    if (place == NULL) {
        nvmlReturn_t err = sg_nvml_ready();
        return err != NVML_SUCCESS ? err : NVML_ERROR_INVALID_ARGUMENT;
    }
    return create(__func__, device, profile, place, instance);
}

nvmlReturn_t nvmlGpuInstanceDestroy(nvmlGpuInstance_t instance) {
    struct nvml_call c;
    nvmlReturn_t err = sg_nvml_begin_instance(&c, __func__, instance);
    if (err != NVML_SUCCESS) {
        return err;
    }
    err = sg_nvml_may_configure(&c);
    if (err == NVML_SUCCESS) {
        err = sg_nvml_code(sg_mig_destroy(c.node, c.target.index, c.target.instance));
    }
    return sg_nvml_end(&c, err);
}

/* The caller's array has room for as many as the profile can have. */
nvmlReturn_t nvmlDeviceGetGpuInstances(nvmlDevice_t device, unsigned id,
                                       nvmlGpuInstance_t *instances, unsigned *count) {
    struct nvml_call c;
    nvmlReturn_t err = sg_nvml_begin(&c, __func__, device, true);
    if (err != NVML_SUCCESS) {
        return err;
    }
    if (sg_mig_profile(c.model, id) == NULL) {
        return sg_nvml_end(&c, NVML_ERROR_NOT_SUPPORTED);
    }
    if (count == NULL || instances == NULL) {
        return sg_nvml_end(&c, NVML_ERROR_INVALID_ARGUMENT);
    }
    err = sg_nvml_may_list(&c);
    *count = 0;
    for (uint32_t i = 0; err == NVML_SUCCESS && i < SOFTGPU_MIG_IDS; i++) {
        const struct softgpu_mig_instance *g = &c.device->mig[i];
        if (g->state == SOFTGPU_SLOT_USED && g->profile == id) {
            instances[(*count)++] = sg_nvml_instance_handle(c.node, c.target.index, i);
        }
    }
    return sg_nvml_end(&c, err);
}

nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t device, unsigned id,
                                          nvmlGpuInstance_t *instance) {
    struct nvml_call c;
    nvmlReturn_t err = sg_nvml_begin(&c, __func__, device, true);
    if (err != NVML_SUCCESS) {
        return err;
    }
    if (instance == NULL) {
        return sg_nvml_end(&c, NVML_ERROR_INVALID_ARGUMENT);
    }
    if (id >= SOFTGPU_MIG_IDS || c.device->mig[id].state != SOFTGPU_SLOT_USED) {
        return sg_nvml_end(&c, NVML_ERROR_NOT_FOUND);
    }
    *instance = sg_nvml_instance_handle(c.node, c.target.index, id);
    return sg_nvml_end(&c, NVML_SUCCESS);
}

nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t instance, nvmlGpuInstanceInfo_t *info) {
    struct nvml_call c;
    nvmlReturn_t err = sg_nvml_begin_instance(&c, __func__, instance);
    if (err != NVML_SUCCESS) {
        return err;
    }
    if (info == NULL) {
        return sg_nvml_end(&c, NVML_ERROR_INVALID_ARGUMENT);
    }
    *info = (nvmlGpuInstanceInfo_t){
        .device = sg_nvml_handle(c.target.index),
        .id = c.target.instance,
        .profileId = c.instance->profile,
        .placement = {.start = c.instance->start, .size = c.instance->size}};
    return sg_nvml_end(&c, NVML_SUCCESS);
}
