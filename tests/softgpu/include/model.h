/* What a GPU model is to the software GPU: facts only, as data. */
#ifndef SOFTGPU_MODEL_H
#define SOFTGPU_MODEL_H

#include <stdint.h>

enum softgpu_mig_limits {
    SOFTGPU_MIG_STARTS = 8,  /* placements of one profile */
    SOFTGPU_MIG_COMPUTES = 5 /* compute instance profiles of one GPU instance profile */
};

/* A GPU instance profile. Its identity is (model, id): names repeat with other shapes. */
struct softgpu_mig_profile {
    const char *name;   /* "1g.10gb+me" */
    uint32_t profile;   /* the number that NVML calls take */
    uint32_t id;        /* the number that NVML answers */
    uint32_t slices;    /* compute slices */
    uint32_t instances; /* how many fit on an empty device */
    uint32_t memory_mib;
    uint32_t sm_count;
    uint32_t copy_engines;
    uint32_t decoders;
    uint32_t encoders;
    uint32_t jpeg;
    uint32_t ofa;
    uint32_t size; /* memory slices taken */
    uint32_t start_count;
    uint32_t starts[SOFTGPU_MIG_STARTS]; /* legal first memory slices */
    uint32_t compute_count;
    struct {
        uint32_t slices;
        uint32_t instances; /* most per GPU instance */
    } compute[SOFTGPU_MIG_COMPUTES];
};

struct softgpu_model {
    const char *name;    /* key, as in SOFTGPU_GPUS: "H100" */
    const char *alias;   /* a second key, "H100-80", or NULL */
    const char *product; /* as cuDeviceGetName and NVML answer */
    const char *arch;    /* "hopper" */
    uint32_t cc_major;
    uint32_t cc_minor;
    uint32_t pci_device_id; /* device id << 16 | vendor id, as NVML answers */
    uint32_t pci_subsystem_id;
    uint32_t pcie_generation;
    uint32_t nvlinks;
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
    uint32_t mig_resetless; /* its MIG mode changes without a reset of the device */
    uint32_t mig_compute_slices;
    uint32_t mig_memory_slices;
    uint32_t mig_profile_count;
    const struct softgpu_mig_profile *mig_profiles;
};

/* The model of that key or alias (letter case does not matter), or NULL. */
const struct softgpu_model *softgpu_model_find(const char *name);

/* The i-th model, or NULL past the end: for listings. */
const struct softgpu_model *softgpu_model_at(uint32_t i);

#endif /* SOFTGPU_MODEL_H */
