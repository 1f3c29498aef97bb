/* Plain allocations: device, pitched, managed, host, registered; and what a pointer is. */
#include "driver.h"
#include "mig.h"

static CUresult alloc(struct sg_ctx *ctx, CUdeviceptr *out, size_t size, enum sg_mem_type type,
                      unsigned flags) {
    if (out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sg_lock();
    CUresult rc = sg_alloc(ctx, size, type, flags, out);
    sg_unlock();
    return rc;
}

SG_API(cuMemAlloc_v2, (CUdeviceptr * out, size_t size)) {
    SG_ENTER_CTX(ctx);
    CUresult rc = sg_capture_unsafe();
    return rc != CUDA_SUCCESS ? rc : alloc(ctx, out, size, SG_MEM_DEVICE, 0);
}

SG_API(cuMemAllocPitch_v2,
       (CUdeviceptr * out, size_t *pitch, size_t width, size_t height, unsigned element)) {
    SG_ENTER_CTX(ctx);
    (void)ctx;
    if (out == NULL || pitch == NULL || (element != 4 && element != 8 && element != 16) ||
        width == 0 || height == 0 || width > SIZE_MAX - 511) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *pitch = (width + 511) / 512 * 512;
    if (height > ((size_t)1 << 46) / *pitch) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    /* Through the export: a driver may call itself, and one build does so visibly. */
    return cuMemAlloc_v2(out, *pitch * height);
}

SG_API(cuMemAllocManaged, (CUdeviceptr * out, size_t size, unsigned flags)) {
    SG_ENTER_CTX(ctx);
    if ((flags & ~0xfu) != 0 || (flags & 3) == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult rc = sg_capture_unsafe();
    return rc != CUDA_SUCCESS ? rc : alloc(ctx, out, size, SG_MEM_MANAGED, flags);
}

/* Waits for the device first, as cuMemFree does. */
SG_API(cuMemFree_v2, (CUdeviceptr p)) {
    SG_ENTER_CTX(ctx);
    if (p == 0) {
        return CUDA_SUCCESS;
    }
    CUresult rc = sg_capture_unsafe();
    if (rc != CUDA_SUCCESS) {
        return rc;
    }
    if (__atomic_load_n(&sg.pending, __ATOMIC_ACQUIRE) != 0) {
        rc = sg_wait_ctx(ctx);
    }
    if (rc == CUDA_SUCCESS) {
        sg_lock();
        const struct sg_block *b = sg_block_find((uintptr_t)p);
        rc = b == NULL || b->type == SG_MEM_HOST ? CUDA_ERROR_INVALID_VALUE : sg_free(p);
        sg_unlock();
    }
    return rc;
}

SG_API(cuMemGetInfo_v2, (size_t * free_bytes, size_t *total)) {
    SG_ENTER_CTX(ctx);
    if (free_bytes == NULL || total == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const struct softgpu_unit *u = &sg.node.st->units[ctx->unit];
    sg_state_lock(&sg.node);
    sg_reap(&sg.node, sg.proc, false);
    *total = u->memory_bytes;
    *free_bytes = sg_unit_free_bytes(sg.node.st, ctx->unit);
    sg_state_unlock(&sg.node);
    return CUDA_SUCCESS;
}

SG_API(cuMemGetAddressRange_v2, (CUdeviceptr * base, size_t *size, CUdeviceptr p)) {
    SG_ENTER_CTX(ctx);
    (void)ctx;
    sg_lock();
    const struct sg_block *b = sg_block_find((uintptr_t)p);
    CUresult rc = CUDA_ERROR_NOT_FOUND;
    if (b != NULL) {
        if (base != NULL) {
            *base = (CUdeviceptr)b->base;
        }
        if (size != NULL) {
            *size = b->size;
        }
        rc = CUDA_SUCCESS;
    }
    sg_unlock();
    return rc;
}

static CUresult host_alloc(struct sg_ctx *ctx, void **out, size_t size, unsigned flags) {
    if (out == NULL || (flags & ~7u) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUdeviceptr p;
    CUresult rc = alloc(ctx, &p, size, SG_MEM_HOST, flags);
    if (rc == CUDA_SUCCESS) {
        *out = (void *)(uintptr_t)p;
    }
    return rc;
}

SG_API(cuMemHostAlloc, (void **out, size_t size, unsigned flags)) {
    SG_ENTER_CTX(ctx);
    return host_alloc(ctx, out, size, flags);
}

SG_API(cuMemAllocHost_v2, (void **out, size_t size)) {
    SG_ENTER_CTX(ctx);
    return host_alloc(ctx, out, size, 0);
}

SG_API(cuMemFreeHost, (void *p)) {
    SG_ENTER_CTX(ctx);
    CUresult rc = CUDA_SUCCESS;
    if (__atomic_load_n(&sg.pending, __ATOMIC_ACQUIRE) != 0) {
        rc = sg_wait_ctx(ctx);
    }
    if (rc == CUDA_SUCCESS) {
        sg_lock();
        const struct sg_block *b = sg_block_find((uintptr_t)p);
        rc = b == NULL || b->type != SG_MEM_HOST ? CUDA_ERROR_INVALID_VALUE
                                                 : sg_free((CUdeviceptr)(uintptr_t)p);
        sg_unlock();
    }
    return rc;
}

SG_API(cuMemHostRegister_v2, (void *p, size_t size, unsigned flags)) {
    SG_ENTER_CTX(ctx);
    if (p == NULL || size == 0 || (flags & ~0xfu) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sg_lock();
    CUresult rc = CUDA_SUCCESS;
    struct sg_block b = {.base = (uintptr_t)p,
                         .size = size,
                         .span = size,
                         .type = SG_MEM_REGISTERED,
                         .ctx = ctx,
                         .unit = ctx->unit,
                         .flags = flags,
                         .access = true};
    if (sg_block_find((uintptr_t)p) != NULL || sg_block_find((uintptr_t)p + size - 1) != NULL) {
        rc = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    } else if (sg_block_add(&b) == NULL) {
        rc = CUDA_ERROR_OUT_OF_MEMORY;
    }
    sg_unlock();
    return rc;
}

SG_API(cuMemHostRegister, (void *p, size_t size, unsigned flags)) {
    return cuMemHostRegister_v2(p, size, flags);
}

SG_API(cuMemHostUnregister, (void *p)) {
    SG_ENTER_CTX(ctx);
    (void)ctx;
    sg_lock();
    struct sg_block *b = sg_block_find((uintptr_t)p);
    CUresult rc = CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    if (b != NULL && b->type == SG_MEM_REGISTERED && b->base == (uintptr_t)p) {
        sg_block_remove(b);
        rc = CUDA_SUCCESS;
    }
    sg_unlock();
    return rc;
}

SG_API(cuMemHostGetDevicePointer_v2, (CUdeviceptr * out, void *p, unsigned flags)) {
    SG_ENTER_CTX(ctx);
    (void)ctx;
    if (out == NULL || flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sg_lock();
    const struct sg_block *b = sg_block_find((uintptr_t)p);
    bool host = b != NULL && (b->type == SG_MEM_HOST || b->type == SG_MEM_REGISTERED);
    sg_unlock();
    if (!host) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = (CUdeviceptr)(uintptr_t)p;
    return CUDA_SUCCESS;
}

SG_API(cuMemHostGetFlags, (unsigned *flags, void *p)) {
    SG_ENTER_CTX(ctx);
    (void)ctx;
    sg_lock();
    const struct sg_block *b = sg_block_find((uintptr_t)p);
    bool host = b != NULL && (b->type == SG_MEM_HOST || b->type == SG_MEM_REGISTERED);
    if (host && flags != NULL) {
        *flags = b->flags;
    }
    sg_unlock();
    return host && flags != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
