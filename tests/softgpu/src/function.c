/* What can be asked of a function, and occupancy. */
#include "driver.h"

enum { SG_ATTRIBUTES = 16 };

/* A CUfunction argument may be a CUkernel. */
CUresult sg_function_of(CUfunction h, struct sg_function **out) {
    if (h == NULL || (h->magic != SG_FUNCTION && h->magic != SG_KERNEL)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    *out = h;
    return CUDA_SUCCESS;
}

static CUresult get_attribute(int *value, int attribute, const struct sg_function *f) {
    const struct sg_spec *spec = f->spec;
    switch (attribute) {
    case 0: /* max threads per block */
        *value = (int)spec->max_threads;
        return CUDA_SUCCESS;
    case 1: /* static shared memory */
        *value = (int)spec->smem;
        return CUDA_SUCCESS;
    case 2: /* constant, local memory */
    case 3:
    case 7: /* cache mode */
        *value = 0;
        return CUDA_SUCCESS;
    case 4:
        *value = (int)spec->registers;
        return CUDA_SUCCESS;
    case 5: /* PTX version, binary version */
        *value = 70;
        return CUDA_SUCCESS;
    case 6:
        *value = 90;
        return CUDA_SUCCESS;
    case 8:
        *value = f->dynamic_smem_max != 0 ? f->dynamic_smem_max : 49152 - (int)spec->smem;
        return CUDA_SUCCESS;
    case 9:
        *value = f->carveout == 0 ? -1 : f->carveout;
        return CUDA_SUCCESS;
    default:
        *value = 0;
        return attribute > 9 && attribute < SG_ATTRIBUTES ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult set_attribute(struct sg_function *f, int attribute, int value, int device) {
    switch (attribute) {
    case 8: {
        int most = (int)(sg_model(device)->smem_per_block_optin - f->spec->smem);
        if (value < 0 || value > most) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        f->dynamic_smem_max = value;
        return CUDA_SUCCESS;
    }
    case 9:
        if (value < -1 || value > 100) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        f->carveout = value;
        return CUDA_SUCCESS;
    default:
        return attribute > 9 && attribute < SG_ATTRIBUTES ? CUDA_ERROR_NOT_SUPPORTED
                                                          : CUDA_ERROR_INVALID_VALUE;
    }
}

SG_API(cuFuncGetAttribute, (int *value, int attribute, CUfunction h)) {
    SG_ENTER_CTX(ctx);
    (void)ctx;
    struct sg_function *f;
    CUresult rc = sg_function_of(h, &f);
    if (rc != CUDA_SUCCESS || value == NULL) {
        return rc != CUDA_SUCCESS ? rc : CUDA_ERROR_INVALID_VALUE;
    }
    return get_attribute(value, attribute, f);
}

SG_API(cuFuncSetAttribute, (CUfunction h, int attribute, int value)) {
    SG_ENTER_CTX(ctx);
    struct sg_function *f;
    CUresult rc = sg_function_of(h, &f);
    return rc != CUDA_SUCCESS ? rc : set_attribute(f, attribute, value, ctx->device);
}

SG_API(cuKernelGetAttribute, (int *value, int attribute, CUkernel k, CUdevice device)) {
    SG_ENTER();
    struct sg_function *f;
    CUresult rc = sg_function_of(k, &f);
    if (rc != CUDA_SUCCESS || value == NULL) {
        return rc != CUDA_SUCCESS ? rc : CUDA_ERROR_INVALID_VALUE;
    }
    return sg_device_ok(device) ? get_attribute(value, attribute, f) : CUDA_ERROR_INVALID_DEVICE;
}

SG_API(cuKernelSetAttribute, (int attribute, int value, CUkernel k, CUdevice device)) {
    SG_ENTER();
    struct sg_function *f;
    CUresult rc = sg_function_of(k, &f);
    if (rc != CUDA_SUCCESS) {
        return rc;
    }
    return sg_device_ok(device) ? set_attribute(f, attribute, value, device)
                                : CUDA_ERROR_INVALID_DEVICE;
}

SG_API(cuFuncGetName, (const char **name, CUfunction h)) {
    SG_ENTER();
    struct sg_function *f;
    CUresult rc = sg_function_of(h, &f);
    if (rc != CUDA_SUCCESS || name == NULL) {
        return rc != CUDA_SUCCESS ? rc : CUDA_ERROR_INVALID_VALUE;
    }
    *name = f->spec->name;
    return CUDA_SUCCESS;
}

SG_API(cuFuncGetModule, (CUmodule * out, CUfunction h)) {
    SG_ENTER();
    struct sg_function *f;
    CUresult rc = sg_function_of(h, &f);
    if (rc != CUDA_SUCCESS || out == NULL) {
        return rc != CUDA_SUCCESS ? rc : CUDA_ERROR_INVALID_VALUE;
    }
    if (f->module->magic == SG_LIBRARY) {
        *out = f->module->as_module;
        return *out == NULL ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
    }
    *out = f->module;
    return CUDA_SUCCESS;
}

SG_API(cuFuncGetParamCount, (CUfunction h, size_t *count)) {
    SG_ENTER();
    struct sg_function *f;
    CUresult rc = sg_function_of(h, &f);
    if (rc != CUDA_SUCCESS || count == NULL) {
        return rc != CUDA_SUCCESS ? rc : CUDA_ERROR_INVALID_VALUE;
    }
    *count = f->spec->param_count;
    return CUDA_SUCCESS;
}

SG_API(cuFuncGetParamInfo, (CUfunction h, size_t index, size_t *offset, size_t *size)) {
    SG_ENTER();
    struct sg_function *f;
    CUresult rc = sg_function_of(h, &f);
    if (rc != CUDA_SUCCESS) {
        return rc;
    }
    if (offset == NULL || index >= f->spec->param_count) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *offset = f->spec->param_offset[index];
    if (size != NULL) {
        *size = f->spec->param_size[index];
    }
    return CUDA_SUCCESS;
}

SG_API(cuFuncIsLoaded, (int *state, CUfunction h)) {
    SG_ENTER();
    struct sg_function *f;
    CUresult rc = sg_function_of(h, &f);
    if (rc != CUDA_SUCCESS || state == NULL) {
        return rc != CUDA_SUCCESS ? rc : CUDA_ERROR_INVALID_VALUE;
    }
    *state = 1;
    return CUDA_SUCCESS;
}

SG_API(cuFuncLoad, (CUfunction h)) {
    SG_ENTER();
    struct sg_function *f;
    return sg_function_of(h, &f);
}

SG_API(cuFuncSetCacheConfig, (CUfunction h, int config)) {
    SG_ENTER_CTX(ctx);
    (void)ctx;
    struct sg_function *f;
    return config < 0 || config > 3 ? CUDA_ERROR_INVALID_VALUE : sg_function_of(h, &f);
}

SG_API(cuFuncSetSharedMemConfig, (CUfunction h, int config)) {
    SG_ENTER_CTX(ctx);
    (void)ctx;
    struct sg_function *f;
    return config < 0 || config > 2 ? CUDA_ERROR_INVALID_VALUE : sg_function_of(h, &f);
}

SG_API(cuKernelSetCacheConfig, (CUkernel k, int config, CUdevice device)) {
    SG_ENTER();
    struct sg_function *f;
    if (config < 0 || config > 3) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return sg_device_ok(device) ? sg_function_of(k, &f) : CUDA_ERROR_INVALID_DEVICE;
}

static uint32_t blocks(const struct sg_function *f, int device, int threads, size_t smem) {
    struct sg_sm_limits limits;
    sg_sm_limits(device, &limits);
    struct sg_footprint fp = {.blocks = 1,
                              .threads = (uint32_t)threads,
                              .registers = f->spec->registers,
                              .smem = f->spec->smem + (uint32_t)smem};
    return sg_blocks_per_sm(&limits, &fp);
}

SG_API(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
       (int *out, CUfunction h, int threads, size_t smem, unsigned flags)) {
    SG_ENTER_CTX(ctx);
    struct sg_function *f;
    CUresult rc = sg_function_of(h, &f);
    if (rc != CUDA_SUCCESS) {
        return rc;
    }
    if (out == NULL || threads <= 0 || flags > 1 || smem > 1u << 24) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = threads > 1024 ? 0 : (int)blocks(f, ctx->device, threads, smem);
    return CUDA_SUCCESS;
}

SG_API(cuOccupancyMaxActiveBlocksPerMultiprocessor,
       (int *out, CUfunction h, int threads, size_t smem)) {
    return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(out, h, threads, smem, 0);
}

SG_API(cuOccupancyMaxPotentialBlockSizeWithFlags,
       (int *grid, int *block, CUfunction h, size_t (*smem_of)(int), size_t smem, int limit,
        unsigned flags)) {
    SG_ENTER_CTX(ctx);
    struct sg_function *f;
    CUresult rc = sg_function_of(h, &f);
    if (rc != CUDA_SUCCESS) {
        return rc;
    }
    if (grid == NULL || block == NULL || flags > 1) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    int most = limit > 0 && limit < (int)f->spec->max_threads ? limit : (int)f->spec->max_threads;
    uint32_t best = 0;
    *grid = 0;
    *block = 0;
    for (int threads = most / 32 * 32; threads > 0; threads -= 32) {
        uint32_t b = blocks(f, ctx->device, threads, smem_of != NULL ? smem_of(threads) : smem);
        if (b * (uint32_t)threads > best) {
            best = b * (uint32_t)threads;
            *block = threads;
            *grid = (int)(b * sg_unit(ctx->device)->sm_count);
        }
    }
    return CUDA_SUCCESS;
}

SG_API(cuOccupancyMaxPotentialBlockSize,
       (int *grid, int *block, CUfunction h, size_t (*smem_of)(int), size_t smem, int limit)) {
    return cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, h, smem_of, smem, limit, 0);
}

SG_API(cuOccupancyAvailableDynamicSMemPerBlock,
       (size_t * bytes, CUfunction h, int blocks_wanted, int threads)) {
    SG_ENTER_CTX(ctx);
    struct sg_function *f;
    CUresult rc = sg_function_of(h, &f);
    if (rc != CUDA_SUCCESS) {
        return rc;
    }
    if (bytes == NULL || blocks_wanted <= 0 || threads <= 0 || threads > 1024) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const struct softgpu_model *m = sg_model(ctx->device);
    size_t share = m->smem_per_sm / (uint32_t)blocks_wanted;
    size_t used = 1024u + f->spec->smem;
    size_t most = m->smem_per_block_optin - f->spec->smem;
    *bytes = share > used ? share - used : 0;
    *bytes = *bytes > most ? most : *bytes;
    return CUDA_SUCCESS;
}
