/* cuDeviceGetAttribute and the structure of the old cuDeviceGetProperties. */
#include <string.h>

#include "driver.h"

/* Attributes with the same answer on every model. The numbers are CUDA's. */
static const struct {
    int attribute;
    int value;
} fixed[] = {
    {1, 1024},                                /* max threads per block */
    {2, 1024},                                /* max block x */
    {3, 1024},                                /* y */
    {4, 64},                                  /* z */
    {5, 2147483647},                          /* max grid x */
    {6, 65535},                               /* y */
    {7, 65535},                               /* z */
    {8, 49152},                               /* shared memory per block */
    {9, 65536},                               /* constant memory */
    {10, 32},                                 /* warp size */
    {11, 2147483647},                         /* max pitch */
    {14, 512},                                /* texture alignment */
    {15, 1},                                  /* copy and compute overlap */
    {17, 0},                                  /* kernel timeout */
    {18, 0},                                  /* integrated */
    {19, 1},                                  /* can map host memory */
    {21, 131072},                             /* 1D texture */
    {22, 131072},                             /* 2D texture, width */
    {23, 65536},                              /* height */
    {24, 16384},                              /* 3D texture */
    {25, 16384},      {26, 16384}, {30, 512}, /* surface alignment */
    {31, 1},                                  /* concurrent kernels */
    {32, 1},                                  /* ECC */
    {35, 0},                                  /* TCC driver (Windows) */
    {41, 1},                                  /* unified addressing */
    {51, 32},                                 /* texture pitch alignment */
    {78, 1},                                  /* stream priorities */
    {79, 1},                                  /* L1 cache for globals */
    {80, 1},                                  /* and for locals */
    {83, 1},                                  /* managed memory */
    {84, 0},                                  /* multi-GPU board */
    {85, 0},                                  /* its group */
    {86, 0},                                  /* native host atomics over the link */
    {87, 2},  /* single to double precision: 2 on the data-centre parts */
    {88, 0},  /* pageable memory access */
    {89, 1},  /* concurrent managed access */
    {90, 1},  /* compute preemption */
    {91, 1},  /* host pointers for registered memory */
    {92, 1},  /* batch memory operations, first form */
    {93, 1},  /* 64-bit ones, first form */
    {94, 1},  /* wait value "nor", first form */
    {95, 1},  /* cooperative launch */
    {96, 0},  /* over several devices */
    {98, 1},  /* flush of remote writes */
    {99, 1},  /* host register */
    {100, 0}, /* pageable access through the host's page tables */
    {101, 0}, /* direct managed access from the host */
    {102, 1}, /* virtual memory management */
    {103, 0}, /* handle types: file descriptor */
    {104, 0},         {105, 0},    {107, 0}, /* generic compression */
    {110, 0},                                /* GPUDirect RDMA with VMM */
    {111, 1024},                             /* reserved shared memory per block */
    {112, 0},                                /* sparse arrays */
    {113, 1},                                /* read-only host register */
    {114, 0},                                /* timeline semaphores */
    {115, 1},                                /* memory pools */
    {116, 0},                                /* GPUDirect RDMA */
    {117, 0},         {118, 0},    {119, 0}, /* handle types of pools */
    {120, 0},                                /* cluster launch */
    {121, 0},                                /* deferred mapping */
    {122, 1},                                /* 64-bit stream memory operations */
    {123, 1},                                /* wait value "nor" */
    {124, 0},                                /* DMA buffers */
    {125, 0},                                /* inter-process events */
    {126, 0},                                /* memory synchronisation domains */
    {127, 0},                                /* tensor maps */
    {128, 0},                                /* fabric handles */
    {129, 0},                                /* unified function pointers */
    {130, -1},                               /* NUMA configuration: none; id below */
    {131, 0},         {132, 0},              /* multicast */
    {133, 0},                                /* MPS is enabled: see below */
    {134, -1},                               /* NUMA id of the host */
    {135, 0},                                /* D3D12 */
};

static uint32_t smem_optin(const struct softgpu_model *m) {
    return m->smem_per_block_optin;
}

static bool by_model(const struct softgpu_model *m, const struct softgpu_device *d, int attribute,
                     int *value) {
    uint32_t v;
    switch (attribute) {
    case 12: /* registers per block */
    case 82: /* per SM */
        v = m->registers_per_sm;
        break;
    case 13:
        v = m->sm_clock_mhz * 1000;
        break;
    case 33:
        v = d->pci_bus;
        break;
    case 34:
        v = d->pci_device;
        break;
    case 50:
        v = d->pci_domain;
        break;
    case 36:
        v = m->memory_clock_mhz * 1000;
        break;
    case 37:
        v = m->memory_bus_bits;
        break;
    case 38:
        v = m->l2_bytes;
        break;
    case 39:
        v = m->threads_per_sm;
        break;
    case 40:
        v = m->max_copy_engines;
        break;
    case 75:
        v = m->cc_major;
        break;
    case 76:
        v = m->cc_minor;
        break;
    case 81:
        v = m->smem_per_sm;
        break;
    case 97:
        v = smem_optin(m);
        break;
    case 106:
        v = m->blocks_per_sm;
        break;
    case 108: /* L2 that may be set aside */
    case 109: /* access policy window */
        v = m->l2_bytes / 2;
        break;
    default:
        return false;
    }
    *value = (int)v;
    return true;
}

SG_API(cuDeviceGetAttribute, (int *value, int attribute, CUdevice device)) {
    SG_ENTER();
    if (value == NULL || attribute < 1) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!sg_device_ok(device)) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    if (attribute == 16) { /* SMs: of the unit, which under MPS is the client's share */
        const struct softgpu_proc *p = &sg.node.st->procs[sg.proc];
        *value = (int)sg_mps_cap(sg_unit(device)->sm_count,
                                 p->flags & SOFTGPU_PROC_MPS ? p->sm_percent : 100);
        return CUDA_SUCCESS;
    }
    uint32_t engines = sg_unit(device)->copy_engines;
    if (attribute == 40 && engines > 0 && engines < sg_model(device)->max_copy_engines) {
        *value = (int)engines;
        return CUDA_SUCCESS;
    }
    if (attribute == 20) {
        *value = sg_mig_of(device) != NULL ? 0 : (int)sg_device(device)->compute_mode;
        return CUDA_SUCCESS;
    }
    if (attribute == 133) {
        *value = (sg.node.st->procs[sg.proc].flags & SOFTGPU_PROC_MPS) != 0;
        return CUDA_SUCCESS;
    }
    if (by_model(sg_model(device), sg_device(device), attribute, value)) {
        return CUDA_SUCCESS;
    }
    for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
        if (fixed[i].attribute == attribute) {
            *value = fixed[i].value;
            return CUDA_SUCCESS;
        }
    }
    /* Limits of textures and surfaces that nobody asks for by number; 0 says "none of it". */
    if (attribute <= 148) {
        *value = 0;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

struct properties {
    int threads_per_block;
    int threads_dim[3];
    int grid_size[3];
    int smem_per_block;
    int constant_bytes;
    int warp;
    int pitch;
    int registers;
    int clock_khz;
    int texture_align;
};

SG_API(cuDeviceGetProperties, (struct properties * out, CUdevice device)) {
    SG_ENTER();
    if (out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!sg_device_ok(device)) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    const struct softgpu_model *m = sg_model(device);
    *out = (struct properties){
        1024,       {1024, 1024, 64},         {2147483647, 65535, 65535},  49152, 65536, 32,
        2147483647, (int)m->registers_per_sm, (int)m->sm_clock_mhz * 1000, 512};
    return CUDA_SUCCESS;
}
