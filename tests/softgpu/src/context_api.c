/* cuCtx...: creating, destroying, the thread's stack, and what can be asked of a context. */
#include "driver.h"

static CUresult push(struct sg_ctx *ctx) {
    if (sg_self.depth == SG_CTX_DEPTH) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    sg_self.stack[sg_self.depth++] = ctx;
    return CUDA_SUCCESS;
}

static CUresult create(CUcontext *out, unsigned flags, CUdevice device, unsigned version) {
    if (out == NULL || (flags & ~0x1ffu) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!sg_device_ok(device)) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    CUresult rc;
    sg_lock();
    struct sg_ctx *ctx = sg_ctx_make(device, flags, version, &rc);
    sg_unlock();
    if (ctx == NULL) {
        return rc;
    }
    *out = ctx;
    return push(ctx);
}

SG_API(cuCtxCreate, (CUcontext * out, unsigned flags, CUdevice device)) {
    SG_ENTER();
    return create(out, flags, device, 3010);
}

SG_API(cuCtxCreate_v2, (CUcontext * out, unsigned flags, CUdevice device)) {
    SG_ENTER();
    return create(out, flags, device, 3020);
}

SG_API(cuCtxCreate_v3,
       (CUcontext * out, const void *affinity, int count, unsigned flags, CUdevice device)) {
    SG_ENTER();
    if (affinity != NULL && count > 0) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    return create(out, flags, device, 3020);
}

SG_API(cuCtxCreate_v4, (CUcontext * out, const void *params, unsigned flags, CUdevice device)) {
    SG_ENTER();
    const struct {
        void *affinity;
        int count;
        void *cig;
    } *p = params;
    if (p != NULL && ((p->affinity != NULL && p->count > 0) || p->cig != NULL)) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    return create(out, flags, device, 3020);
}

static CUresult destroy(CUcontext ctx) {
    if (!sg_ctx_valid(ctx)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (ctx->primary) {
        return CUDA_ERROR_INVALID_CONTEXT; /* it is released, not destroyed */
    }
    (void)sg_wait_ctx(ctx);
    sg_lock();
    CUresult rc = sg_ctx_close(ctx);
    sg_unlock();
    if (sg_current() == ctx) {
        sg_self.depth--;
    }
    return rc;
}

SG_API(cuCtxDestroy_v2, (CUcontext ctx)) {
    SG_ENTER();
    return destroy(ctx);
}

SG_API(cuCtxDestroy, (CUcontext ctx)) {
    SG_ENTER();
    return destroy(ctx);
}

SG_API(cuCtxAttach, (CUcontext * out, unsigned flags)) {
    SG_ENTER_CTX(ctx);
    if (out == NULL || flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    ctx->references++;
    *out = ctx;
    return CUDA_SUCCESS;
}

SG_API(cuCtxDetach, (CUcontext ctx)) {
    SG_ENTER();
    if (!sg_ctx_valid(ctx)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    return --ctx->references > 0 ? CUDA_SUCCESS : destroy(ctx);
}

SG_API(cuCtxSetCurrent, (CUcontext ctx)) {
    SG_ENTER();
    if (ctx == NULL) {
        if (sg_self.depth > 0) {
            sg_self.depth--;
        }
        return CUDA_SUCCESS;
    }
    if (!sg_ctx_valid(ctx)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (sg_self.depth == 0) {
        return push(ctx);
    }
    sg_self.stack[sg_self.depth - 1] = ctx;
    return CUDA_SUCCESS;
}

SG_API(cuCtxGetCurrent, (CUcontext * out)) {
    SG_ENTER();
    if (out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = sg_current();
    return CUDA_SUCCESS;
}

SG_API(cuCtxPushCurrent_v2, (CUcontext ctx)) {
    SG_ENTER();
    return sg_ctx_valid(ctx) ? push(ctx) : CUDA_ERROR_INVALID_CONTEXT;
}

SG_API(cuCtxPushCurrent, (CUcontext ctx)) {
    SG_ENTER();
    return sg_ctx_valid(ctx) ? push(ctx) : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult pop(CUcontext *out) {
    if (sg_self.depth == 0) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    struct sg_ctx *ctx = sg_self.stack[--sg_self.depth];
    if (out != NULL) {
        *out = ctx;
    }
    return CUDA_SUCCESS;
}

SG_API(cuCtxPopCurrent_v2, (CUcontext * out)) {
    SG_ENTER();
    return pop(out);
}

SG_API(cuCtxPopCurrent, (CUcontext * out)) {
    SG_ENTER();
    return pop(out);
}

SG_API(cuCtxGetDevice, (CUdevice * device)) {
    SG_ENTER_CTX(ctx);
    if (device == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *device = ctx->device;
    return CUDA_SUCCESS;
}

SG_API(cuCtxGetDevice_v2, (CUdevice * device, CUcontext ctx)) {
    SG_ENTER();
    ctx = ctx == NULL ? sg_current() : ctx;
    if (device == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!sg_ctx_valid(ctx)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    *device = ctx->device;
    return CUDA_SUCCESS;
}

SG_API(cuCtxGetFlags, (unsigned *flags)) {
    SG_ENTER_CTX(ctx);
    if (flags == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *flags = ctx->primary ? sg.primary_flags[ctx->device] : ctx->flags;
    return CUDA_SUCCESS;
}

SG_API(cuCtxSetFlags, (unsigned flags)) {
    SG_ENTER_CTX(ctx);
    ctx->flags = flags;
    return CUDA_SUCCESS;
}

SG_API(cuCtxGetId, (CUcontext ctx, unsigned long long *id)) {
    SG_ENTER();
    ctx = ctx == NULL ? sg_current() : ctx;
    if (id == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!sg_ctx_valid(ctx)) {
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    *id = ctx->id;
    return CUDA_SUCCESS;
}

SG_API(cuCtxGetApiVersion, (CUcontext ctx, unsigned *version)) {
    SG_ENTER();
    ctx = ctx == NULL ? sg_current() : ctx;
    if (version == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!sg_ctx_valid(ctx)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    *version = ctx->version == 3010 ? 3010 : 3020;
    return CUDA_SUCCESS;
}

enum { SG_LIMITS = 7 };

SG_API(cuCtxSetLimit, (int limit, size_t value)) {
    SG_ENTER_CTX(ctx);
    if (limit < 0 || limit >= SG_LIMITS) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    ctx->limits[limit] = value;
    return CUDA_SUCCESS;
}

SG_API(cuCtxGetLimit, (size_t * value, int limit)) {
    SG_ENTER_CTX(ctx);
    if (value == NULL || limit < 0 || limit >= SG_LIMITS) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *value = ctx->limits[limit];
    return CUDA_SUCCESS;
}

SG_API(cuCtxGetCacheConfig, (int *config)) {
    SG_ENTER_CTX(ctx);
    if (config == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *config = ctx->cache_config;
    return CUDA_SUCCESS;
}

SG_API(cuCtxSetCacheConfig, (int config)) {
    SG_ENTER_CTX(ctx);
    ctx->cache_config = config;
    return CUDA_SUCCESS;
}

SG_API(cuCtxGetSharedMemConfig, (int *config)) {
    SG_ENTER_CTX(ctx);
    (void)ctx;
    if (config == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *config = 1; /* four-byte banks, the only size since Maxwell */
    return CUDA_SUCCESS;
}

SG_API(cuCtxSetSharedMemConfig, (int config)) {
    SG_ENTER_CTX(ctx);
    (void)ctx;
    (void)config;
    return CUDA_SUCCESS;
}

SG_API(cuCtxResetPersistingL2Cache, (void)) {
    SG_ENTER_CTX(ctx);
    (void)ctx;
    return CUDA_SUCCESS;
}

SG_API(cuCtxGetStreamPriorityRange, (int *least, int *greatest)) {
    SG_ENTER_CTX(ctx);
    (void)ctx;
    if (least != NULL) {
        *least = 0;
    }
    if (greatest != NULL) {
        *greatest = -5;
    }
    return CUDA_SUCCESS;
}

static CUresult synchronize(struct sg_ctx *ctx) {
    CUresult rc = sg_capture_unsafe();
    return rc != CUDA_SUCCESS ? rc : sg_wait_ctx(ctx);
}

SG_API(cuCtxSynchronize, (void)) {
    SG_ENTER_CTX(ctx);
    return synchronize(ctx);
}

SG_API(cuCtxSynchronize_v2, (CUcontext ctx)) {
    SG_ENTER();
    ctx = ctx == NULL ? sg_current() : ctx;
    if (!sg_ctx_valid(ctx)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    return synchronize(ctx);
}

SG_API(cuCtxEnablePeerAccess, (CUcontext peer, unsigned flags)) {
    SG_ENTER_CTX(ctx);
    if (flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!sg_ctx_valid(peer) || peer == ctx) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
}

SG_API(cuCtxDisablePeerAccess, (CUcontext peer)) {
    SG_ENTER_CTX(ctx);
    if (!sg_ctx_valid(peer) || peer == ctx) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}
