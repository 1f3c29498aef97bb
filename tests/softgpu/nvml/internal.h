/* Between the files of the software NVML: how a call gets at the state of a device. */
#ifndef SOFTGPU_NVML_INTERNAL_H
#define SOFTGPU_NVML_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "exports.h"
#include "model.h"
#include "softgpu.h"

enum { NVML_WINDOW_NS = 166666667 }; /* what "utilisation" looks back on: a sixth of a second */

/* One process as NVML lists it. */
struct nvml_process {
    unsigned pid;
    uint64_t bytes;
    uint64_t sm_ns;      /* SM time since it began */
    uint64_t generation; /* with pid, its identity */
    int64_t started_ns;
    bool mps;
};

/* What one call needs to know of a device, copied at one moment, so that no file but view.c knows how the
 * state is shared. */
struct nvml_view {
    const struct softgpu_model *model;
    unsigned index;
    unsigned minor;
    unsigned pci_domain, pci_bus, pci_device;
    char uuid[48];
    char serial[24];
    uint64_t memory_bytes, reserved_bytes, used_bytes; /* used: by processes */
    unsigned compute_mode;
    unsigned mig_mode, mig_pending;
    int64_t now_ns;                        /* simulated time */
    uint64_t wall_us;                      /* the time of day, which stamps samples */
    uint64_t busy_ns;                      /* since the node began */
    unsigned busy_percent, memory_percent; /* over the last window */
    unsigned tx_kib_per_s, rx_kib_per_s;   /* to the host, from the host; over the last window */
    unsigned process_count;
    struct nvml_process processes[SOFTGPU_MAX_PROCS];
};

/* sg_nvml_look moves the device model to now, forgets the dead, and copies what `device` looks like. */
nvmlReturn_t sg_nvml_look(nvmlDevice_t device, struct nvml_view *view);

/* sg_nvml_power_mw is what the device draws now. */
unsigned sg_nvml_power_mw(const struct nvml_view *view);

/* sg_nvml_ready answers whether nvmlInit has been called. */
nvmlReturn_t sg_nvml_ready(void);

/* sg_nvml_bus_id writes "00000000:41:00.0". */
void sg_nvml_bus_id(char text[32], const struct nvml_view *view);

/* sg_nvml_copy copies a text into a caller's buffer, whole or not at all. */
nvmlReturn_t sg_nvml_copy(char *to, unsigned length, const char *text);

/* sg_nvml_put answers a number. */
static inline nvmlReturn_t sg_nvml_put(unsigned *to, unsigned value) {
    if (to == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    *to = value;
    return NVML_SUCCESS;
}

/* Every query of a device begins with this: `view` is its state, or the call ends with the reason. */
#define NVML_VIEW(view, device)                                                                    \
    struct nvml_view view;                                                                         \
    do {                                                                                           \
        nvmlReturn_t look_error_ = sg_nvml_look(device, &view);                                    \
        if (look_error_ != NVML_SUCCESS)                                                           \
            return look_error_;                                                                    \
    } while (0)

#endif
