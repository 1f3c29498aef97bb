/* MIG devices: a GPU instance and a compute instance as one thing that programs run on. */
#include "session.h"

nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned *is_mig) {
    NVML_VIEW_ANY(view, device);
    return sg_nvml_put(is_mig, view.is_mig);
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned *count) {
    NVML_VIEW(view, device);
    bool on = view.mig_mode == SOFTGPU_MIG_ENABLED;
    return sg_nvml_put(count, on ? view.model->mig_compute_slices : 0);
}

/* They are numbered by the ids of GPU and compute instance, without holes: a number is no identity. */
nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned index,
                                                 nvmlDevice_t *mig) {
    struct nvml_call c;
    struct nvml_target t;
    nvmlReturn_t err = sg_nvml_begin(&c, __func__, device, true);
    if (err != NVML_SUCCESS) {
        return err;
    }
    if (mig == NULL || index >= c.model->mig_compute_slices) {
        return sg_nvml_end(&c, NVML_ERROR_INVALID_ARGUMENT);
    }
    if (!sg_nvml_mig_at(c.node, c.target.index, index, &t)) {
        return sg_nvml_end(&c, NVML_ERROR_NOT_FOUND);
    }
    *mig = sg_nvml_mig_handle(c.node, t.index, t.instance, t.compute);
    return sg_nvml_end(&c, NVML_SUCCESS);
}

nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig, nvmlDevice_t *device) {
    NVML_VIEW_ANY(view, mig);
    if (device == NULL || !view.is_mig) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    *device = sg_nvml_handle(view.index);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t mig, unsigned *id) {
    NVML_VIEW_ANY(view, mig);
    return view.is_mig ? sg_nvml_put(id, view.instance) : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t mig, unsigned *id) {
    NVML_VIEW_ANY(view, mig);
    return view.is_mig ? sg_nvml_put(id, view.compute) : NVML_ERROR_NOT_SUPPORTED;
}

static nvmlReturn_t attributes_of(const char *entry, nvmlDevice_t mig,
                                  nvmlDeviceAttributes_t *attributes) {
    NVML_VIEW_ANY_FOR(entry, view, mig);
    if (!view.is_mig) {
        return NVML_ERROR_NOT_SUPPORTED;
    }
    if (attributes == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    *attributes = (nvmlDeviceAttributes_t){.multiprocessorCount = view.sm_count,
                                           .sharedCopyEngineCount = view.profile->copy_engines,
                                           .sharedDecoderCount = view.profile->decoders,
                                           .sharedEncoderCount = view.profile->encoders,
                                           .sharedJpegCount = view.profile->jpeg,
                                           .sharedOfaCount = view.profile->ofa,
                                           .gpuInstanceSliceCount = view.profile->slices,
                                           .computeInstanceSliceCount = view.compute_slices,
                                           .memorySizeMB = view.memory_bytes >> 20};
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetAttributes(nvmlDevice_t mig, nvmlDeviceAttributes_t *attributes) {
    return attributes_of(__func__, mig, attributes);
}

nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t mig, nvmlDeviceAttributes_t *attributes) {
    return attributes_of(__func__, mig, attributes);
}
