/*
 * What a sensor would say: temperature, power, clocks, fans, ECC. The software GPU has no body; these
 * numbers follow from how busy it is, so that a monitor shows something that moves the right way.
 */
#include "internal.h"

#include <stddef.h>

enum {
    IDLE_CELSIUS = 32,
    BUSY_CELSIUS = 64,
    SLOWDOWN_CELSIUS = 90,
    SHUTDOWN_CELSIUS = 95,
    IDLE_CLOCK_MHZ = 345,
    PSTATE_BUSY = 0,
    PSTATE_IDLE = 8,
    REASON_IDLE = 1,
    SENSOR_GPU = 0,
};

/* Idle boards draw about a seventh of their limit. */
unsigned sg_nvml_power_mw(const struct nvml_view *view) {
    unsigned limit = view->model->power_limit_mw;
    unsigned idle = limit / 7;
    return idle + (limit - idle) / 100 * view->busy_percent;
}

static unsigned celsius(const struct nvml_view *view) {
    return IDLE_CELSIUS + (BUSY_CELSIUS - IDLE_CELSIUS) * view->busy_percent / 100;
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, unsigned sensor, unsigned *degrees) {
    NVML_VIEW(view, device);
    if (sensor != SENSOR_GPU) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    return sg_nvml_put(degrees, celsius(&view));
}

nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_t *temperature) {
    NVML_VIEW(view, device);
    if (temperature == NULL || temperature->sensorType != SENSOR_GPU) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    if (temperature->version != NVML_VERSION_OF(nvmlTemperature_t, 1)) {
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    }
    temperature->temperature = (int)celsius(&view);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, unsigned kind,
                                               unsigned *degrees) {
    enum { KIND_SHUTDOWN = 0, KIND_SLOWDOWN = 1 };
    NVML_VIEW(view, device);
    switch (kind) {
    case KIND_SHUTDOWN:
        return sg_nvml_put(degrees, SHUTDOWN_CELSIUS);
    case KIND_SLOWDOWN:
        return sg_nvml_put(degrees, SLOWDOWN_CELSIUS);
    default:
        return NVML_ERROR_NOT_SUPPORTED;
    }
}

/* Data-centre boards are cooled by the chassis. */
nvmlReturn_t nvmlDeviceGetNumFans(nvmlDevice_t device, unsigned *fans) {
    NVML_VIEW(view, device);
    return sg_nvml_put(fans, 0);
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned *milliwatts) {
    NVML_VIEW(view, device);
    return sg_nvml_put(milliwatts, sg_nvml_power_mw(&view));
}

static nvmlReturn_t power_limit(const char *entry, nvmlDevice_t device, unsigned *milliwatts) {
    NVML_VIEW_FOR(entry, view, device);
    return sg_nvml_put(milliwatts, view.model->power_limit_mw);
}

nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t device, unsigned *milliwatts) {
    return power_limit(__func__, device, milliwatts);
}

nvmlReturn_t nvmlDeviceGetPowerManagementDefaultLimit(nvmlDevice_t device, unsigned *milliwatts) {
    return power_limit(__func__, device, milliwatts);
}

nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned *milliwatts) {
    return power_limit(__func__, device, milliwatts);
}

nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device, unsigned *least,
                                                          unsigned *most) {
    NVML_VIEW(view, device);
    if (least == NULL || most == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    *least = view.model->power_limit_mw / 2;
    *most = view.model->power_limit_mw;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPowerManagementMode(nvmlDevice_t device, unsigned *enabled) {
    NVML_VIEW(view, device);
    return sg_nvml_put(enabled, 1);
}

/* Energy since the node began: at idle power all the time, the rest while a kernel ran. */
nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device,
                                                 unsigned long long *millijoules) {
    NVML_VIEW(view, device);
    if (millijoules == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    double limit = view.model->power_limit_mw;
    double idle = limit / 7;
    double mj = idle * (double)view.now_ns * 1e-9 + (limit - idle) * (double)view.busy_ns * 1e-9;
    *millijoules = mj > 0 ? (unsigned long long)mj : 0;
    return NVML_SUCCESS;
}

static bool busy(const struct nvml_view *view) {
    return view->busy_percent > 0;
}

static nvmlReturn_t clock_mhz(const struct nvml_view *view, unsigned clock, bool most,
                              unsigned *mhz) {
    switch (clock) {
    case NVML_CLOCK_GRAPHICS:
    case NVML_CLOCK_SM:
    case NVML_CLOCK_VIDEO:
        return sg_nvml_put(mhz, most || busy(view) ? view->model->sm_clock_mhz : IDLE_CLOCK_MHZ);
    case NVML_CLOCK_MEM:
        return sg_nvml_put(mhz, view->model->memory_clock_mhz);
    default:
        return NVML_ERROR_INVALID_ARGUMENT;
    }
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, unsigned clock, unsigned *mhz) {
    NVML_VIEW(view, device);
    return clock_mhz(&view, clock, false, mhz);
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, unsigned clock, unsigned *mhz) {
    NVML_VIEW(view, device);
    return clock_mhz(&view, clock, true, mhz);
}

nvmlReturn_t nvmlDeviceGetMaxCustomerBoostClock(nvmlDevice_t device, unsigned clock,
                                                unsigned *mhz) {
    NVML_VIEW(view, device);
    return clock_mhz(&view, clock, true, mhz);
}

nvmlReturn_t nvmlDeviceGetApplicationsClock(nvmlDevice_t device, unsigned clock, unsigned *mhz) {
    NVML_VIEW(view, device);
    return clock_mhz(&view, clock, true, mhz);
}

nvmlReturn_t nvmlDeviceGetDefaultApplicationsClock(nvmlDevice_t device, unsigned clock,
                                                   unsigned *mhz) {
    NVML_VIEW(view, device);
    return clock_mhz(&view, clock, true, mhz);
}

nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t device, unsigned *state) {
    NVML_VIEW(view, device);
    return sg_nvml_put(state, busy(&view) ? PSTATE_BUSY : PSTATE_IDLE);
}

nvmlReturn_t nvmlDeviceGetPowerState(nvmlDevice_t device, unsigned *state) {
    return nvmlDeviceGetPerformanceState(device, state);
}

static nvmlReturn_t clock_reasons(const char *entry, nvmlDevice_t device,
                                  unsigned long long *reasons) {
    NVML_VIEW_FOR(entry, view, device);
    if (reasons == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    *reasons = busy(&view) ? 0 : REASON_IDLE;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device,
                                                    unsigned long long *reasons) {
    return clock_reasons(__func__, device, reasons);
}

nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device,
                                                       unsigned long long *reasons) {
    return clock_reasons(__func__, device, reasons);
}

nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, unsigned counter, unsigned *kib) {
    enum { COUNTERS = 2 };
    NVML_VIEW(view, device);
    if (counter >= COUNTERS) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    return sg_nvml_put(kib, counter == 0 ? view.tx_kib_per_s : view.rx_kib_per_s);
}

nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, unsigned *current, unsigned *pending) {
    NVML_VIEW(view, device);
    if (current == NULL || pending == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    *current = *pending = 1;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetDefaultEccMode(nvmlDevice_t device, unsigned *mode) {
    NVML_VIEW(view, device);
    return sg_nvml_put(mode, 1);
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, unsigned kind, unsigned counter,
                                         unsigned long long *errors) {
    enum { KINDS = 2, COUNTERS = 2 };
    NVML_VIEW(view, device);
    if (errors == NULL || kind >= KINDS || counter >= COUNTERS) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    *errors = 0; /* the memory is the host's, which has its own ECC */
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, unsigned *mode) {
    NVML_VIEW(view, device);
    return sg_nvml_put(mode, 1); /* the node exists as long as its state file does */
}

/* No output of the software GPU drives a display. */
nvmlReturn_t nvmlDeviceGetDisplayMode(nvmlDevice_t device, unsigned *mode) {
    NVML_VIEW(view, device);
    return sg_nvml_put(mode, 0);
}

nvmlReturn_t nvmlDeviceGetDisplayActive(nvmlDevice_t device, unsigned *active) {
    NVML_VIEW(view, device);
    return sg_nvml_put(active, 0);
}
