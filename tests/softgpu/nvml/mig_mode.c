/* MIG's mode. */
#include "session.h"

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *current, unsigned *pending) {
    NVML_VIEW(view, device);
    if (current == NULL || pending == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    if (!view.model->mig_capable) {
        return NVML_ERROR_NOT_SUPPORTED;
    }
    *current = view.mig_mode;
    *pending = view.mig_pending;
    return NVML_SUCCESS;
}

/* Two answers: whether the wish was noted, and in `activation` whether it came true. */
nvmlReturn_t nvmlDeviceSetMigMode(nvmlDevice_t device, unsigned mode, nvmlReturn_t *activation) {
    struct nvml_call c;
    nvmlReturn_t err = sg_nvml_begin(&c, __func__, device, false);
    if (err != NVML_SUCCESS) {
        return err;
    }
    if (activation == NULL || mode > SOFTGPU_MIG_ENABLED) {
        return sg_nvml_end(&c, NVML_ERROR_INVALID_ARGUMENT);
    }
    err = sg_nvml_may_configure(&c);
    if (err != NVML_SUCCESS) {
        return sg_nvml_end(&c, err);
    }
    enum sg_mig_activation came = SG_MIG_ACTIVE;
    err = sg_nvml_code(sg_mig_set_mode(c.node, c.target.index, mode, &came));
    *activation = came == SG_MIG_IN_USE  ? NVML_ERROR_IN_USE
                  : came == SG_MIG_RESET ? NVML_ERROR_RESET_REQUIRED
                                         : NVML_SUCCESS;
    return sg_nvml_end(&c, err);
}
