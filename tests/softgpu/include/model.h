/* What a GPU model is to the software GPU: facts only, as data. */
#ifndef SOFTGPU_MODEL_H
#define SOFTGPU_MODEL_H

#include <stdint.h>

struct softgpu_model {
    const char *name;    /* key, as in SOFTGPU_GPUS: "H100" */
    const char *product; /* as cuDeviceGetName and NVML answer */
    const char *arch;    /* "hopper" */
    uint32_t cc_major;
    uint32_t cc_minor;
    uint32_t pci_device_id; /* device id << 16 | vendor id, as NVML answers */
    uint32_t sm_count;
    uint32_t cores_per_sm;
    uint32_t threads_per_sm;
    uint32_t blocks_per_sm;
    uint32_t registers_per_sm;
    uint32_t smem_per_sm;          /* bytes */
    uint32_t smem_per_block_optin; /* bytes; 48 KiB without opting in */
    uint32_t l2_bytes;
    uint32_t sm_clock_mhz;
    uint32_t memory_clock_mhz;
    uint32_t memory_bus_bits;
    uint64_t memory_bytes;    /* all of it */
    uint64_t reserved_bytes;  /* of it: the driver's own */
    double dram_bytes_per_ns; /* peak; equals GB/s */
    double h2d_bytes_per_ns;  /* one copy engine, pinned memory */
    double d2h_bytes_per_ns;
    uint32_t max_copy_engines;
    uint32_t power_limit_mw;
    uint32_t mig_capable;
};

/* The model of that name (letter case does not matter), or NULL. */
const struct softgpu_model *softgpu_model_find(const char *name);

/* The i-th model, or NULL past the end: for listings. */
const struct softgpu_model *softgpu_model_at(uint32_t i);

#endif /* SOFTGPU_MODEL_H */
