/* Calls that a program may make and that change nothing here, and those that are refused. */
#include <string.h>

#include "driver.h"

static CUresult check_range(CUdeviceptr p, size_t size) {
    sg_lock();
    bool ok = size != 0 && sg_range_ok((void *)(uintptr_t)p, size);
    sg_unlock();
    return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Managed memory is host memory: it is everywhere already. */
SG_TWO_FORMS(cuMemPrefetchAsync, _ptsz, (CUdeviceptr p, size_t size, CUdevice to, CUstream h),
             (p, size, to, h), (p, size, to, SG_PER_THREAD(h))) {
    SG_ENTER_CTX(ctx);
    (void)ctx;
    (void)h;
    return to != -1 && !sg_device_ok(to) ? CUDA_ERROR_INVALID_DEVICE : check_range(p, size);
}

SG_TWO_FORMS(cuMemPrefetchAsync_v2, _ptsz,
             (CUdeviceptr p, size_t size, CUmemLocation to, unsigned flags, CUstream h),
             (p, size, to, flags, h), (p, size, to, flags, SG_PER_THREAD(h))) {
    SG_ENTER_CTX(ctx);
    (void)ctx;
    (void)h;
    if (flags != 0 || to.type < CU_MEM_LOCATION_TYPE_DEVICE ||
        to.type > CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return check_range(p, size);
}

SG_API(cuMemAdvise, (CUdeviceptr p, size_t size, int advice, CUdevice device)) {
    SG_ENTER_CTX(ctx);
    (void)ctx;
    (void)device;
    return advice < 1 || advice > 6 ? CUDA_ERROR_INVALID_VALUE : check_range(p, size);
}

SG_API(cuMemAdvise_v2, (CUdeviceptr p, size_t size, int advice, CUmemLocation location)) {
    SG_ENTER_CTX(ctx);
    (void)ctx;
    (void)location;
    return advice < 1 || advice > 6 ? CUDA_ERROR_INVALID_VALUE : check_range(p, size);
}

SG_TWO_FORMS(cuStreamAttachMemAsync, _ptsz,
             (CUstream h, CUdeviceptr p, size_t size, unsigned flags), (h, p, size, flags),
             (SG_PER_THREAD(h), p, size, flags)) {
    SG_ENTER_CTX(ctx);
    (void)ctx;
    (void)h;
    (void)size;
    return flags == 0 || flags > 4 ? CUDA_ERROR_INVALID_VALUE : check_range(p, 1);
}

SG_API(cuProfilerStart, (void)) {
    SG_ENTER_CTX(ctx);
    (void)ctx;
    return CUDA_SUCCESS;
}

SG_API(cuProfilerStop, (void)) {
    SG_ENTER_CTX(ctx);
    (void)ctx;
    return CUDA_SUCCESS;
}

SG_API(cuFlushGPUDirectRDMAWrites, (int target, int scope)) {
    SG_ENTER_CTX(ctx);
    (void)ctx;
    return target != 0 || (scope != 100 && scope != 200) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/* Handles for other processes: memory is private to its process here, so there are none. */
SG_API(cuIpcGetMemHandle, (void *handle, CUdeviceptr p)) {
    SG_ENTER_CTX(ctx);
    (void)ctx;
    CUresult rc = check_range(p, 1);
    return handle == NULL || rc != CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE
                                                : CUDA_ERROR_NOT_SUPPORTED;
}

SG_API(cuIpcGetEventHandle, (void *handle, CUevent ev)) {
    SG_ENTER_CTX(ctx);
    (void)ctx;
    return handle == NULL || ev == NULL || ev->magic != SG_EVENT ? CUDA_ERROR_INVALID_VALUE
                                                                 : CUDA_ERROR_NOT_SUPPORTED;
}

SG_API(cuIpcCloseMemHandle, (CUdeviceptr p)) {
    SG_ENTER_CTX(ctx);
    (void)ctx;
    (void)p;
    return CUDA_ERROR_INVALID_VALUE; /* nothing was ever opened */
}

/* Stream attributes: the synchronisation policy and the priority are remembered by nobody but the
 * stream itself; the access policy window has no effect on the model. */
SG_TWO_FORMS(cuStreamSetAttribute, _ptsz, (CUstream h, int attribute, const void *value),
             (h, attribute, value), (SG_PER_THREAD(h), attribute, value)) {
    SG_ENTER_CTX(ctx);
    sg_lock();
    bool known = sg_stream_get(ctx, h) != NULL;
    sg_unlock();
    if (!known) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    return value == NULL || (attribute != 1 && attribute != 3) ? CUDA_ERROR_INVALID_VALUE
                                                               : CUDA_SUCCESS;
}

SG_TWO_FORMS(cuStreamGetAttribute, _ptsz, (CUstream h, int attribute, void *value),
             (h, attribute, value), (SG_PER_THREAD(h), attribute, value)) {
    SG_ENTER_CTX(ctx);
    sg_lock();
    const struct sg_stream *s = sg_stream_get(ctx, h);
    sg_unlock();
    if (s == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (value == NULL || (attribute != 1 && attribute != 3 && attribute != 8)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    memset(value, 0, 64);
    if (attribute == 3) {
        *(int *)value = 1; /* automatic synchronisation policy */
    } else if (attribute == 8) {
        *(int *)value = s->priority;
    }
    return CUDA_SUCCESS;
}

/* No graph here owns memory. */
SG_API(cuDeviceGetGraphMemAttribute, (CUdevice device, int attribute, void *value)) {
    SG_ENTER();
    if (!sg_device_ok(device)) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    if (value == NULL || attribute < 0 || attribute > 3) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    memset(value, 0, sizeof(uint64_t));
    return CUDA_SUCCESS;
}

SG_API(cuDeviceGraphMemTrim, (CUdevice device)) {
    SG_ENTER();
    return sg_device_ok(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

SG_TWO_FORMS(cuStreamCopyAttributes, _ptsz, (CUstream to, CUstream from), (to, from),
             (SG_PER_THREAD(to), SG_PER_THREAD(from))) {
    SG_ENTER_CTX(ctx);
    sg_lock();
    bool known = sg_stream_get(ctx, to) != NULL && sg_stream_get(ctx, from) != NULL;
    sg_unlock();
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
