/*
 * How busy a device is, and with whom. The device model keeps exact integrals (time with a kernel on
 * it, SM time of each process), so a utilisation is the difference of two readings over their
 * distance. The view brings the device's own over the last window; for the processes the earlier
 * reading is this caller's previous one, or the start of the process.
 */
#include "internal.h"

#include <pthread.h>
#include <stddef.h>

enum { NS_PER_US = 1000, READINGS = 256 };

/* What this caller saw of a process the last time it asked. */
struct reading {
    unsigned device;
    unsigned pid;
    uint64_t generation;
    int64_t at_ns;
    uint64_t sm_ns;
    unsigned percent; /* answered again when asked twice at the same moment */
};

static pthread_mutex_t readings_lock = PTHREAD_MUTEX_INITIALIZER;
static struct reading readings[READINGS];
static size_t oldest;

static struct reading *find_reading(unsigned device, const struct nvml_process *p) {
    for (size_t i = 0; i < READINGS; i++) {
        struct reading *r = &readings[i];
        if (r->pid == p->pid && r->generation == p->generation && r->device == device) {
            return r;
        }
    }
    /* A client that watches more processes than we remember reads averages since their start. */
    struct reading *r = &readings[oldest++ % READINGS];
    *r = (struct reading){
        .device = device, .pid = p->pid, .generation = p->generation, .at_ns = p->started_ns};
    return r;
}

static unsigned percent_of(double part, double whole) {
    if (whole <= 0 || part <= 0) {
        return 0;
    }
    double percent = 100.0 * part / whole + 0.5;
    return percent > 100.0 ? 100 : (unsigned)percent;
}

/* Share of the SM time since the last reading, in percent. */
static unsigned process_percent(const struct nvml_view *view, const struct nvml_process *p) {
    enum { LEAST_NS = 1000000 }; /* two queries in a row: the first one's answer stands */
    pthread_mutex_lock(&readings_lock);
    struct reading *r = find_reading(view->index, p);
    int64_t span = view->now_ns - r->at_ns;
    if (span >= LEAST_NS && p->sm_ns >= r->sm_ns) {
        r->percent =
            percent_of((double)(p->sm_ns - r->sm_ns), (double)span * (double)view->model->sm_count);
        r->at_ns = view->now_ns;
        r->sm_ns = p->sm_ns;
    }
    unsigned percent = r->percent;
    pthread_mutex_unlock(&readings_lock);
    return percent;
}

/* With MIG on, NVML has no utilisation: the GPU is no longer one thing that is busy or not. */
static bool is_divided(const struct nvml_view *view) {
    return view->mig_mode == SOFTGPU_MIG_ENABLED;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *rates) {
    NVML_VIEW(view, device);
    if (is_divided(&view)) {
        return NVML_ERROR_NOT_SUPPORTED;
    }
    if (rates == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    *rates = (nvmlUtilization_t){.gpu = view.busy_percent, .memory = view.memory_percent};
    return NVML_SUCCESS;
}

/* The software GPU has no video engines at work: they are idle over any period. */
static nvmlReturn_t idle_engine(const char *entry, nvmlDevice_t device, unsigned *percent,
                                unsigned *period_us) {
    NVML_VIEW_FOR(entry, view, device);
    if (is_divided(&view)) {
        return NVML_ERROR_NOT_SUPPORTED;
    }
    if (percent == NULL || period_us == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    *percent = 0;
    *period_us = NVML_WINDOW_NS / NS_PER_US;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_t device, unsigned *percent,
                                             unsigned *period_us) {
    return idle_engine(__func__, device, percent, period_us);
}

nvmlReturn_t nvmlDeviceGetDecoderUtilization(nvmlDevice_t device, unsigned *percent,
                                             unsigned *period_us) {
    return idle_engine(__func__, device, percent, period_us);
}

nvmlReturn_t nvmlDeviceGetJpgUtilization(nvmlDevice_t device, unsigned *percent,
                                         unsigned *period_us) {
    return idle_engine(__func__, device, percent, period_us);
}

nvmlReturn_t nvmlDeviceGetOfaUtilization(nvmlDevice_t device, unsigned *percent,
                                         unsigned *period_us) {
    return idle_engine(__func__, device, percent, period_us);
}

/* The newest sample only: the device keeps no longer history than its window. */
nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, unsigned kind,
                                  unsigned long long last_seen_us, unsigned *value_type,
                                  unsigned *count, nvmlSample_t *samples) {
    NVML_VIEW(view, device);
    if (value_type == NULL || count == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    if (is_divided(&view) && kind != NVML_SAMPLES_POWER) {
        return NVML_ERROR_NOT_SUPPORTED;
    }
    unsigned value;
    switch (kind) {
    case NVML_SAMPLES_GPU:
        value = view.busy_percent;
        break;
    case NVML_SAMPLES_MEMORY:
        value = view.memory_percent;
        break;
    case NVML_SAMPLES_POWER:
        value = sg_nvml_power_mw(&view);
        break;
    default:
        return NVML_ERROR_NOT_SUPPORTED;
    }
    *value_type = NVML_VALUE_TYPE_UNSIGNED_INT;
    if (view.wall_us <= last_seen_us) {
        return NVML_ERROR_NOT_FOUND;
    }
    if (samples == NULL) {
        *count = 1;
        return NVML_SUCCESS;
    }
    if (*count < 1) {
        return NVML_ERROR_INSUFFICIENT_SIZE;
    }
    *count = 1;
    samples[0] = (nvmlSample_t){.timeStamp = view.wall_us, .sampleValue.uiVal = value};
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
                                             nvmlProcessUtilizationSample_t *samples,
                                             unsigned *count, unsigned long long last_seen_us) {
    NVML_VIEW(view, device);
    if (is_divided(&view)) {
        return NVML_ERROR_NOT_SUPPORTED;
    }
    if (count == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    if (view.process_count == 0 || view.wall_us <= last_seen_us) {
        *count = 0;
        return NVML_ERROR_NOT_FOUND;
    }
    if (samples == NULL || *count < view.process_count) {
        *count = view.process_count;
        return NVML_ERROR_INSUFFICIENT_SIZE;
    }
    for (unsigned i = 0; i < view.process_count; i++) {
        const struct nvml_process *p = &view.processes[i];
        samples[i] = (nvmlProcessUtilizationSample_t){
            .pid = p->pid, .timeStamp = view.wall_us, .smUtil = process_percent(&view, p)};
    }
    *count = view.process_count;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device,
                                                   nvmlProcessesUtilizationInfo_t *info) {
    NVML_VIEW(view, device);
    if (is_divided(&view)) {
        return NVML_ERROR_NOT_SUPPORTED;
    }
    if (info == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    if (info->version != NVML_VERSION_OF(nvmlProcessesUtilizationInfo_t, 1)) {
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    }
    if (view.process_count == 0 || view.wall_us <= info->lastSeenTimeStamp) {
        info->processSamplesCount = 0;
        return NVML_ERROR_NOT_FOUND;
    }
    bool fits = info->procUtilArray != NULL && info->processSamplesCount >= view.process_count;
    info->processSamplesCount = view.process_count;
    if (!fits) {
        return NVML_ERROR_INSUFFICIENT_SIZE;
    }
    for (unsigned i = 0; i < view.process_count; i++) {
        const struct nvml_process *p = &view.processes[i];
        info->procUtilArray[i] = (nvmlProcessUtilizationInfo_t){
            .timeStamp = view.wall_us, .pid = p->pid, .smUtil = process_percent(&view, p)};
    }
    return NVML_SUCCESS;
}
