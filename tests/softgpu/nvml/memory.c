/* Device memory as a whole. */
#include "internal.h"

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
    NVML_VIEW_ANY(view, device);
    if (memory == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    /* The first version has no word for what the driver keeps: it counts as used. */
    uint64_t used = view.used_bytes + view.reserved_bytes;
    *memory =
        (nvmlMemory_t){.total = view.memory_bytes, .free = view.memory_bytes - used, .used = used};
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory) {
    NVML_VIEW_ANY(view, device);
    if (memory == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    if (memory->version != NVML_VERSION_OF(nvmlMemory_v2_t, 2)) {
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    }
    memory->total = view.memory_bytes;
    memory->reserved = view.reserved_bytes;
    memory->used = view.used_bytes;
    memory->free = view.memory_bytes - view.reserved_bytes - view.used_bytes;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *bar1) {
    NVML_VIEW(view, device);
    if (bar1 == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    /* Data-centre boards map all of their memory: the next power of two above it. */
    uint64_t total = 1;
    while (total < view.memory_bytes) {
        total <<= 1;
    }
    enum { DRIVER_BYTES = 1 << 20 };
    *bar1 = (nvmlBAR1Memory_t){
        .bar1Total = total, .bar1Free = total - DRIVER_BYTES, .bar1Used = DRIVER_BYTES};
    return NVML_SUCCESS;
}
