/* Copies of a stretch of memory. Addresses are unified: what a side is follows from its pointer. */
#include <stdlib.h>
#include <string.h>

#include "driver.h"

static bool is_device(const void *p) {
    const struct sg_block *b = sg_block_find((uintptr_t)p);
    return b != NULL && b->type != SG_MEM_HOST && b->type != SG_MEM_REGISTERED;
}

static int queue_of(const struct sg_plane *to, const struct sg_plane *from) {
    bool to_device = is_device(to->base);
    bool from_device = is_device(from->base);
    if (to_device == from_device) {
        return SOFTGPU_QUEUE_D2D;
    }
    return to_device ? SOFTGPU_QUEUE_H2D : SOFTGPU_QUEUE_D2H;
}

/* Pageable memory may be reused by its owner as soon as the call returns: take it along. */
static bool stage(struct sg_work *w) {
    size_t row = w->copy.width;
    size_t layer = row * w->copy.height;
    unsigned char *copy = malloc(layer * w->copy.depth);
    if (copy == NULL) {
        return false;
    }
    for (size_t z = 0; z < w->copy.depth; z++) {
        for (size_t y = 0; y < w->copy.height; y++) {
            memcpy(copy + z * layer + y * row,
                   w->copy.from.base + z * w->copy.from.slice + y * w->copy.from.pitch, row);
        }
    }
    w->copy.staged = copy;
    w->copy.from = (struct sg_plane){.base = copy, .pitch = row, .slice = layer};
    return true;
}

static CUresult submit(struct sg_stream *s, struct sg_work *w, bool async) {
    bool pageable = sg_block_find((uintptr_t)w->copy.from.base) == NULL;
    if (async && pageable && s->capture == NULL && !sg.null_profile && !stage(w)) {
        sg_work_free(w);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return sg_submit(s, w);
}

CUresult sg_copy(struct sg_ctx *ctx, CUstream h, const struct sg_plane *to,
                 const struct sg_plane *from, size_t width, size_t height, size_t depth,
                 bool async) {
    if (width == 0 || height == 0 || depth == 0) {
        return CUDA_SUCCESS;
    }
    if (to->base == NULL || from->base == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!async) {
        CUresult rc = sg_capture_unsafe();
        if (rc != CUDA_SUCCESS) {
            return rc;
        }
    }
    sg_count(SOFTGPU_COUNT_COPY, 1);
    sg_count(SOFTGPU_COUNT_COPY_BYTES, width * height * depth);
    struct sg_work *w = sg_work_new(SG_WORK_COPY);
    if (w == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    sg_lock();
    struct sg_stream *s = sg_stream_get(ctx, h);
    CUresult rc = CUDA_ERROR_INVALID_HANDLE;
    if (s == NULL) {
        sg_work_free(w);
    } else {
        w->copy.to = *to;
        w->copy.from = *from;
        w->copy.width = width;
        w->copy.height = height;
        w->copy.depth = depth;
        w->copy.queue = queue_of(to, from);
        rc = submit(s, w, async);
    }
    sg_unlock();
    return rc == CUDA_SUCCESS && !async ? sg_wait_stream(s) : rc;
}

/* A stretch whose device sides are known to be device memory. */
static CUresult linear(struct sg_ctx *ctx, CUstream h, void *to, const void *from, size_t size,
                       const void *device1, const void *device2, bool async) {
    sg_lock();
    bool ok = (device1 == NULL || sg_range_ok(device1, size)) &&
              (device2 == NULL || sg_range_ok(device2, size));
    sg_unlock();
    if (!ok && size != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sg_plane t = {.base = to, .pitch = size, .slice = size};
    struct sg_plane f = {.base = (unsigned char *)(uintptr_t)from, .pitch = size, .slice = size};
    return sg_copy(ctx, h, &t, &f, size, 1, 1, async);
}

#define PTR(d) ((void *)(uintptr_t)(d))
#define UNWRAP(...) __VA_ARGS__

/* A waiting copy: in the legacy stream, or with _ptds in the thread's own. */
#define COPY_SYNC(name, params, call)                                                              \
    SG_API(name, params) {                                                                         \
        SG_ENTER_CTX(ctx);                                                                         \
        return linear(ctx, NULL, UNWRAP call, false);                                              \
    }                                                                                              \
    SG_API(name##_ptds, params) {                                                                  \
        SG_ENTER_CTX(ctx);                                                                         \
        return linear(ctx, CU_STREAM_PER_THREAD, UNWRAP call, false);                              \
    }

COPY_SYNC(cuMemcpy, (CUdeviceptr to, CUdeviceptr from, size_t size),
          (PTR(to), PTR(from), size, NULL, NULL))

SG_TWO_FORMS(cuMemcpyAsync, _ptsz, (CUdeviceptr to, CUdeviceptr from, size_t size, CUstream h),
             (to, from, size, h), (to, from, size, SG_PER_THREAD(h))) {
    SG_ENTER_CTX(ctx);
    return linear(ctx, h, PTR(to), PTR(from), size, NULL, NULL, true);
}

COPY_SYNC(cuMemcpyHtoD_v2, (CUdeviceptr to, const void *from, size_t size),
          (PTR(to), from, size, PTR(to), NULL))

COPY_SYNC(cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t size),
          (to, PTR(from), size, PTR(from), NULL))

COPY_SYNC(cuMemcpyDtoD_v2, (CUdeviceptr to, CUdeviceptr from, size_t size),
          (PTR(to), PTR(from), size, PTR(to), PTR(from)))

SG_TWO_FORMS(cuMemcpyHtoDAsync_v2, _ptsz,
             (CUdeviceptr to, const void *from, size_t size, CUstream h), (to, from, size, h),
             (to, from, size, SG_PER_THREAD(h))) {
    SG_ENTER_CTX(ctx);
    return linear(ctx, h, PTR(to), from, size, PTR(to), NULL, true);
}

SG_TWO_FORMS(cuMemcpyDtoHAsync_v2, _ptsz, (void *to, CUdeviceptr from, size_t size, CUstream h),
             (to, from, size, h), (to, from, size, SG_PER_THREAD(h))) {
    SG_ENTER_CTX(ctx);
    return linear(ctx, h, to, PTR(from), size, PTR(from), NULL, true);
}

SG_TWO_FORMS(cuMemcpyDtoDAsync_v2, _ptsz,
             (CUdeviceptr to, CUdeviceptr from, size_t size, CUstream h), (to, from, size, h),
             (to, from, size, SG_PER_THREAD(h))) {
    SG_ENTER_CTX(ctx);
    return linear(ctx, h, PTR(to), PTR(from), size, PTR(to), PTR(from), true);
}

/* Between two contexts: on one node a copy like any other. */
SG_TWO_FORMS(cuMemcpyPeer, _ptds,
             (CUdeviceptr to, CUcontext to_ctx, CUdeviceptr from, CUcontext from_ctx, size_t size),
             (to, to_ctx, from, from_ctx, size), (to, to_ctx, from, from_ctx, size)) {
    SG_ENTER_CTX(ctx);
    if (!sg_ctx_valid(to_ctx) || !sg_ctx_valid(from_ctx)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    return linear(ctx, NULL, PTR(to), PTR(from), size, PTR(to), PTR(from), false);
}

SG_TWO_FORMS(cuMemcpyPeerAsync, _ptsz,
             (CUdeviceptr to, CUcontext to_ctx, CUdeviceptr from, CUcontext from_ctx, size_t size,
              CUstream h),
             (to, to_ctx, from, from_ctx, size, h),
             (to, to_ctx, from, from_ctx, size, SG_PER_THREAD(h))) {
    SG_ENTER_CTX(ctx);
    if (!sg_ctx_valid(to_ctx) || !sg_ctx_valid(from_ctx)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    return linear(ctx, h, PTR(to), PTR(from), size, PTR(to), PTR(from), true);
}
