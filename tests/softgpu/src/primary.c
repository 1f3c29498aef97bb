/* Primary contexts: one per device and process, counted. */
#include "driver.h"

static CUresult check(CUdevice device) {
    return sg_device_ok(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

SG_API(cuDevicePrimaryCtxRetain, (CUcontext * out, CUdevice device)) {
    SG_ENTER();
    if (out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult rc = check(device);
    if (rc != CUDA_SUCCESS) {
        return rc;
    }
    sg_lock();
    struct sg_ctx *ctx = sg.primary[device];
    if (ctx != NULL) {
        ctx->references++;
    } else {
        ctx = sg_ctx_make(device, 0, 0, &rc);
        sg.primary[device] = ctx;
    }
    sg_unlock();
    if (ctx != NULL) {
        *out = ctx;
    }
    return rc;
}

static CUresult release(CUdevice device, bool at_once) {
    CUresult rc = check(device);
    if (rc != CUDA_SUCCESS) {
        return rc;
    }
    sg_lock();
    struct sg_ctx *ctx = sg.primary[device];
    bool last = ctx != NULL && (at_once || --ctx->references == 0);
    if (last) {
        sg.primary[device] = NULL;
    }
    sg_unlock();
    if (ctx == NULL) {
        return at_once ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
    }
    if (last) {
        (void)sg_wait_ctx(ctx);
        sg_lock();
        sg_ctx_close(ctx);
        sg_unlock();
    }
    return CUDA_SUCCESS;
}

SG_API(cuDevicePrimaryCtxRelease, (CUdevice device)) {
    SG_ENTER();
    return release(device, false);
}

SG_API(cuDevicePrimaryCtxRelease_v2, (CUdevice device)) {
    SG_ENTER();
    return release(device, false);
}

SG_API(cuDevicePrimaryCtxReset, (CUdevice device)) {
    SG_ENTER();
    return release(device, true);
}

SG_API(cuDevicePrimaryCtxReset_v2, (CUdevice device)) {
    SG_ENTER();
    return release(device, true);
}

static CUresult set_flags(CUdevice device, unsigned flags) {
    if ((flags & ~0x1ffu) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult rc = check(device);
    if (rc == CUDA_SUCCESS) {
        sg.primary_flags[device] = flags;
    }
    return rc;
}

SG_API(cuDevicePrimaryCtxSetFlags, (CUdevice device, unsigned flags)) {
    SG_ENTER();
    return set_flags(device, flags);
}

SG_API(cuDevicePrimaryCtxSetFlags_v2, (CUdevice device, unsigned flags)) {
    SG_ENTER();
    return set_flags(device, flags);
}

SG_API(cuDevicePrimaryCtxGetState, (CUdevice device, unsigned *flags, int *active)) {
    SG_ENTER();
    if (flags == NULL || active == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult rc = check(device);
    if (rc == CUDA_SUCCESS) {
        *flags = sg.primary_flags[device];
        *active = sg.primary[device] != NULL;
    }
    return rc;
}
