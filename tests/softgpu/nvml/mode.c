/* Modes of a device: who may make contexts on it, and whether it is a virtual one. */
#include <unistd.h>

#include "session.h"

enum { COMPUTE_DEFAULT = 0, COMPUTE_PROHIBITED = 2, COMPUTE_EXCLUSIVE_PROCESS = 3 };

nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, unsigned *mode) {
    NVML_VIEW_ANY(view, device);
    return sg_nvml_put(mode, view.compute_mode);
}

nvmlReturn_t nvmlDeviceSetComputeMode(nvmlDevice_t device, unsigned mode) {
    NVML_VIEW(view, device);
    if (mode != COMPUTE_DEFAULT && mode != COMPUTE_PROHIBITED &&
        mode != COMPUTE_EXCLUSIVE_PROCESS) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    if (geteuid() != 0) {
        return NVML_ERROR_NO_PERMISSION;
    }
    const struct sg_node *node = sg_nvml_enter();
    if (node == NULL) {
        return NVML_ERROR_UNINITIALIZED;
    }
    sg_state_lock(node);
    node->st->devices[view.index].compute_mode = mode;
    sg_state_unlock(node);
    sg_nvml_leave();
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetVirtualizationMode(nvmlDevice_t device, unsigned *mode) {
    NVML_VIEW(view, device);
    return sg_nvml_put(mode, 0); /* none: the software GPU stands for bare metal */
}
