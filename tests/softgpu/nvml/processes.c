/* Who runs on a device: the lists of processes in their three versions, and one list for all kinds. */
#include "internal.h"

/* The software GPU draws nothing, so a process has either an ordinary compute context or one of MPS. */
enum kind { KIND_COMPUTE, KIND_GRAPHICS, KIND_MPS };

static bool is_kind(const struct nvml_process *p, enum kind kind) {
    switch (kind) {
    case KIND_COMPUTE:
        return !p->mps;
    case KIND_MPS:
        return p->mps;
    case KIND_GRAPHICS:
    default:
        return false;
    }
}

static unsigned count_kind(const struct nvml_view *view, enum kind kind) {
    unsigned n = 0;
    for (unsigned i = 0; i < view->process_count; i++) {
        n += is_kind(&view->processes[i], kind);
    }
    return n;
}

/* room says whether the caller's array holds n entries, and tells it n. A process may appear between two
 * calls, so callers ask again with what they learnt here. */
static nvmlReturn_t room(unsigned n, unsigned *count, const void *infos) {
    if (count == NULL || (*count > 0 && infos == NULL)) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    bool fits = n <= *count;
    *count = n;
    return fits ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

static nvmlReturn_t list_v1(const char *entry, nvmlDevice_t device, unsigned *count,
                            nvmlProcessInfo_v1_t *infos, enum kind kind) {
    NVML_VIEW_ANY_FOR(entry, view, device);
    nvmlReturn_t err = room(count_kind(&view, kind), count, infos);
    if (err != NVML_SUCCESS) {
        return err;
    }
    for (unsigned i = 0; i < view.process_count; i++) {
        const struct nvml_process *p = &view.processes[i];
        if (!is_kind(p, kind)) {
            continue;
        }
        *infos++ = (nvmlProcessInfo_v1_t){.pid = p->pid, .usedGpuMemory = p->bytes};
    }
    return NVML_SUCCESS;
}

static nvmlReturn_t list(const char *entry, nvmlDevice_t device, unsigned *count,
                         nvmlProcessInfo_t *infos, enum kind kind) {
    NVML_VIEW_ANY_FOR(entry, view, device);
    nvmlReturn_t err = room(count_kind(&view, kind), count, infos);
    if (err != NVML_SUCCESS) {
        return err;
    }
    for (unsigned i = 0; i < view.process_count; i++) {
        const struct nvml_process *p = &view.processes[i];
        if (!is_kind(p, kind)) {
            continue;
        }
        *infos++ = (nvmlProcessInfo_t){.pid = p->pid,
                                       .usedGpuMemory = p->bytes,
                                       .gpuInstanceId = p->instance,
                                       .computeInstanceId = p->compute};
    }
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned *count,
                                                  nvmlProcessInfo_v1_t *infos) {
    return list_v1(__func__, device, count, infos, KIND_COMPUTE);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned *count,
                                                     nvmlProcessInfo_t *infos) {
    return list(__func__, device, count, infos, KIND_COMPUTE);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                                     nvmlProcessInfo_t *infos) {
    return list(__func__, device, count, infos, KIND_COMPUTE);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t device, unsigned *count,
                                                   nvmlProcessInfo_v1_t *infos) {
    return list_v1(__func__, device, count, infos, KIND_GRAPHICS);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t device, unsigned *count,
                                                      nvmlProcessInfo_t *infos) {
    return list(__func__, device, count, infos, KIND_GRAPHICS);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                                      nvmlProcessInfo_t *infos) {
    return list(__func__, device, count, infos, KIND_GRAPHICS);
}

nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses(nvmlDevice_t device, unsigned *count,
                                                     nvmlProcessInfo_v1_t *infos) {
    return list_v1(__func__, device, count, infos, KIND_MPS);
}

nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v2(nvmlDevice_t device, unsigned *count,
                                                        nvmlProcessInfo_t *infos) {
    return list(__func__, device, count, infos, KIND_MPS);
}

nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                                        nvmlProcessInfo_t *infos) {
    return list(__func__, device, count, infos, KIND_MPS);
}

nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device,
                                                   nvmlProcessDetailList_t *details) {
    NVML_VIEW_ANY(view, device);
    if (details == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    if (details->version != NVML_VERSION_OF(nvmlProcessDetailList_t, 1)) {
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    }
    bool all = details->mode == NVML_PROCESS_MODE_ALL;
    if (!all && details->mode > NVML_PROCESS_MODE_ALL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    enum kind kind = (enum kind)details->mode; /* the API counts the kinds as we do */
    unsigned n = all ? view.process_count : count_kind(&view, kind);
    nvmlReturn_t err = room(n, &details->numProcArrayEntries, details->procArray);
    if (err != NVML_SUCCESS) {
        return err;
    }
    nvmlProcessDetail_t *to = details->procArray;
    for (unsigned i = 0; i < view.process_count; i++) {
        const struct nvml_process *p = &view.processes[i];
        if (!all && !is_kind(p, kind)) {
            continue;
        }
        *to++ = (nvmlProcessDetail_t){.pid = p->pid,
                                      .usedGpuMemory = p->bytes,
                                      .gpuInstanceId = p->instance,
                                      .computeInstanceId = p->compute};
    }
    return NVML_SUCCESS;
}
