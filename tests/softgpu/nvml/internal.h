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
    unsigned instance, compute; /* on a MIG device; else NVML_NO_INSTANCE */
    bool mps;
};

/* What one call needs to know of a device, copied at one moment, so that no query needs to know how the state
 * is shared. Of a MIG device its own memory and processes; the rest is of the GPU that it is on. */
struct nvml_view {
    const struct softgpu_model *model;
    unsigned index;
    bool is_mig;
    unsigned instance, compute, mig_index; /* of a MIG device, as the next four */
    const struct softgpu_mig_profile *profile;
    unsigned compute_slices, sm_count;
    char name[96];
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

/* sg_nvml_look moves the device model to now, forgets the dead, and copies what `device` looks like to the
 * function `entry`, which a fault may strike (NULL: none does). A MIG device is refused unless `mig`. */
nvmlReturn_t sg_nvml_look(const char *entry, nvmlDevice_t device, bool mig, struct nvml_view *view);

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

/* Every query of a device begins with one of these: `view` is its state, or the call ends with the reason. ANY
 * takes MIG devices too; FOR is for a function that answers for several of NVML's. */
#define NVML_VIEW(view, device) NVML_VIEW_AS(__func__, view, device, false)
#define NVML_VIEW_ANY(view, device) NVML_VIEW_AS(__func__, view, device, true)
#define NVML_VIEW_FOR(entry, view, device) NVML_VIEW_AS(entry, view, device, false)
#define NVML_VIEW_ANY_FOR(entry, view, device) NVML_VIEW_AS(entry, view, device, true)
#define NVML_VIEW_AS(entry, view, device, mig)                                                     \
    struct nvml_view view;                                                                         \
    do {                                                                                           \
        nvmlReturn_t look_error_ = sg_nvml_look(entry, device, mig, &view);                        \
        if (look_error_ != NVML_SUCCESS)                                                           \
            return look_error_;                                                                    \
    } while (0)

#endif
