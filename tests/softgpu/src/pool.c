/* Stream-ordered allocation and memory pools. The address is there at once, as with a real driver;
 * a free takes effect when the stream reaches it. */
#include <string.h>

#include "driver.h"

struct sg_pool {
    uint32_t magic;
    int device;
    uint64_t threshold; /* kept back; here nothing is, and the number is only remembered */
    uint64_t used;
    uint64_t used_high;
    int reuse[4];
    bool is_default;
};

static struct sg_pool *defaults[SOFTGPU_MAX_DEVICES];
static struct sg_pool *current[SOFTGPU_MAX_DEVICES];

static struct sg_pool *make(int device) {
    struct sg_pool *p = sg_object(sizeof(*p), SG_POOL);
    if (p != NULL) {
        p->device = device;
        for (int i = 1; i < 4; i++) {
            p->reuse[i] = 1;
        }
    }
    return p;
}

static struct sg_pool *default_pool(int device) {
    if (defaults[device] == NULL) {
        defaults[device] = make(device);
        if (defaults[device] != NULL) {
            defaults[device]->is_default = true;
        }
    }
    return defaults[device];
}

static bool is_pool(CUmemoryPool p) {
    return p != NULL && p->magic == SG_POOL;
}

static CUresult pool_of(CUmemoryPool *out, CUdevice device, struct sg_pool **table) {
    if (out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!sg_device_ok(device)) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    sg_lock();
    *out = table != NULL && table[device] != NULL ? table[device] : default_pool(device);
    sg_unlock();
    return *out == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

SG_API(cuDeviceGetDefaultMemPool, (CUmemoryPool * out, CUdevice device)) {
    SG_ENTER();
    return pool_of(out, device, NULL);
}

SG_API(cuDeviceGetMemPool, (CUmemoryPool * out, CUdevice device)) {
    SG_ENTER();
    return pool_of(out, device, current);
}

SG_API(cuDeviceSetMemPool, (CUdevice device, CUmemoryPool pool)) {
    SG_ENTER();
    if (!sg_device_ok(device)) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    if (!is_pool(pool) || pool->device != device) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    current[device] = pool;
    return CUDA_SUCCESS;
}

SG_API(cuMemPoolCreate, (CUmemoryPool * out, const CUmemPoolProps *props)) {
    SG_ENTER();
    if (out == NULL || props == NULL || props->allocType != 1) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (props->handleTypes != 0 || props->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
        return CUDA_ERROR_NOT_SUPPORTED; /* shared, or on the host */
    }
    if (!sg_device_ok(props->location.id)) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *out = make(props->location.id);
    return *out == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

SG_API(cuMemPoolDestroy, (CUmemoryPool pool)) {
    SG_ENTER();
    if (!is_pool(pool) || pool->is_default) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sg_lock();
    if (current[pool->device] == pool) {
        current[pool->device] = NULL;
    }
    pool->magic = SG_DEAD; /* its allocations live on until they are freed */
    sg_unlock();
    return CUDA_SUCCESS;
}

SG_API(cuMemPoolTrimTo, (CUmemoryPool pool, size_t keep)) {
    SG_ENTER();
    (void)keep; /* nothing is held back that could be given up */
    return is_pool(pool) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

enum {
    POOL_THRESHOLD = 4,
    POOL_RESERVED = 5,
    POOL_RESERVED_HIGH = 6,
    POOL_USED = 7,
    POOL_USED_HIGH = 8
};

SG_API(cuMemPoolSetAttribute, (CUmemoryPool pool, int attribute, void *value)) {
    SG_ENTER();
    if (!is_pool(pool) || value == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (attribute >= 1 && attribute <= 3) {
        memcpy(&pool->reuse[attribute], value, sizeof(int));
    } else if (attribute == POOL_THRESHOLD) {
        memcpy(&pool->threshold, value, sizeof(uint64_t));
    } else if (attribute == POOL_RESERVED_HIGH || attribute == POOL_USED_HIGH) {
        pool->used_high = pool->used;
    } else {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

SG_API(cuMemPoolGetAttribute, (CUmemoryPool pool, int attribute, void *value)) {
    SG_ENTER();
    if (!is_pool(pool) || value == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (attribute >= 1 && attribute <= 3) {
        memcpy(value, &pool->reuse[attribute], sizeof(int));
        return CUDA_SUCCESS;
    }
    uint64_t v;
    switch (attribute) {
    case POOL_THRESHOLD:
        v = pool->threshold;
        break;
    case POOL_RESERVED:
    case POOL_USED:
        v = pool->used;
        break;
    case POOL_RESERVED_HIGH:
    case POOL_USED_HIGH:
        v = pool->used_high;
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    memcpy(value, &v, sizeof(v));
    return CUDA_SUCCESS;
}

SG_API(cuMemPoolSetAccess, (CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)) {
    SG_ENTER();
    if (!is_pool(pool) || (count != 0 && map == NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < count; i++) {
        if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
            map[i].location.id != pool->device) {
            return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
        }
    }
    return CUDA_SUCCESS;
}

SG_API(cuMemPoolGetAccess, (int *flags, CUmemoryPool pool, const CUmemLocation *location)) {
    SG_ENTER();
    if (!is_pool(pool) || flags == NULL || location == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *flags = location->type == CU_MEM_LOCATION_TYPE_DEVICE && location->id == pool->device ? 3 : 0;
    return CUDA_SUCCESS;
}

SG_API(cuMemPoolExportToShareableHandle,
       (void *handle, CUmemoryPool pool, int type, unsigned long long flags)) {
    SG_ENTER();
    (void)type;
    (void)flags;
    return !is_pool(pool) || handle == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult alloc(struct sg_ctx *ctx, CUdeviceptr *out, size_t size, struct sg_pool *pool,
                      CUstream h) {
    if (out == NULL || size == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sg_lock();
    struct sg_stream *s = sg_stream_get(ctx, h);
    CUresult rc = s == NULL ? CUDA_ERROR_INVALID_HANDLE : sg_capture_refuse(s);
    pool = pool != NULL                   ? pool
           : current[ctx->device] != NULL ? current[ctx->device]
                                          : default_pool(ctx->device);
    if (rc == CUDA_SUCCESS && pool == NULL) {
        rc = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (rc == CUDA_SUCCESS) {
        rc = sg_alloc(ctx, size, SG_MEM_ASYNC, 0, out);
    }
    if (rc == CUDA_SUCCESS) {
        struct sg_block *b = sg_block_find((uintptr_t)*out);
        b->pool = pool;
        pool->used += b->span;
        pool->used_high = pool->used > pool->used_high ? pool->used : pool->used_high;
    }
    sg_unlock();
    return rc;
}

SG_TWO_FORMS(cuMemAllocAsync, _ptsz, (CUdeviceptr * out, size_t size, CUstream h), (out, size, h),
             (out, size, SG_PER_THREAD(h))) {
    SG_ENTER_CTX(ctx);
    return alloc(ctx, out, size, NULL, h);
}

SG_TWO_FORMS(cuMemAllocFromPoolAsync, _ptsz,
             (CUdeviceptr * out, size_t size, CUmemoryPool pool, CUstream h), (out, size, pool, h),
             (out, size, pool, SG_PER_THREAD(h))) {
    SG_ENTER_CTX(ctx);
    return is_pool(pool) ? alloc(ctx, out, size, pool, h) : CUDA_ERROR_INVALID_VALUE;
}

SG_TWO_FORMS(cuMemFreeAsync, _ptsz, (CUdeviceptr p, CUstream h), (p, h), (p, SG_PER_THREAD(h))) {
    SG_ENTER_CTX(ctx);
    sg_lock();
    struct sg_stream *s = sg_stream_get(ctx, h);
    struct sg_block *b = sg_block_find((uintptr_t)p);
    CUresult rc = s == NULL ? CUDA_ERROR_INVALID_HANDLE : sg_capture_refuse(s);
    if (rc == CUDA_SUCCESS &&
        (b == NULL || b->base != (uintptr_t)p || b->freed ||
         (b->type != SG_MEM_ASYNC && b->type != SG_MEM_DEVICE && b->type != SG_MEM_MANAGED))) {
        rc = CUDA_ERROR_INVALID_VALUE;
    }
    struct sg_work *w = rc == CUDA_SUCCESS ? sg_work_new(SG_WORK_FREE) : NULL;
    if (w != NULL) {
        if (b->pool != NULL) {
            b->pool->used -= b->span;
        }
        w->address = p;
        rc = sg_submit(s, w);
    } else if (rc == CUDA_SUCCESS) {
        rc = CUDA_ERROR_OUT_OF_MEMORY;
    }
    sg_unlock();
    return rc;
}
