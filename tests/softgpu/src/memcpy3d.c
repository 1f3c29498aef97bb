/* Copies with rows and layers, and copies to and from arrays. */
#include "driver.h"

/* One side of a copy as the structures describe it. */
struct side {
    int type;
    const void *host;
    CUdeviceptr device;
    CUarray array;
    size_t x, y, z;
    size_t pitch, height;
};

static bool resolve(const struct side *s, size_t width, struct sg_plane *out) {
    size_t pitch = s->pitch;
    size_t height = s->height;
    unsigned char *base;
    switch (s->type) {
    case CU_MEMORYTYPE_HOST:
        base = (unsigned char *)(uintptr_t)s->host;
        break;
    case CU_MEMORYTYPE_DEVICE:
    case CU_MEMORYTYPE_UNIFIED:
        base = (unsigned char *)(uintptr_t)s->device;
        break;
    case CU_MEMORYTYPE_ARRAY:
        if (s->array == NULL || s->array->magic != SG_ARRAY) {
            return false;
        }
        base = (unsigned char *)(uintptr_t)s->array->base;
        pitch = s->array->pitch;
        height = s->array->desc.Height == 0 ? 1 : s->array->desc.Height;
        break;
    default:
        return false;
    }
    if (base == NULL) {
        return false;
    }
    pitch = pitch == 0 ? s->x + width : pitch;
    if (pitch < width) {
        return false;
    }
    out->pitch = pitch;
    out->slice = pitch * height;
    out->base = base + s->z * out->slice + s->y * pitch + s->x;
    return true;
}

static CUresult copy(struct sg_ctx *ctx, CUstream h, const struct side *to, const struct side *from,
                     size_t width, size_t height, size_t depth, bool async) {
    struct sg_plane t;
    struct sg_plane f;
    if (width == 0 || height == 0 || depth == 0) {
        return CUDA_SUCCESS;
    }
    if (!resolve(to, width, &t) || !resolve(from, width, &f)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (depth > 1 && (t.slice < (height - 1) * t.pitch || f.slice < (height - 1) * f.pitch)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return sg_copy(ctx, h, &t, &f, width, height, depth, async);
}

static CUresult copy2d(struct sg_ctx *ctx, CUstream h, const CUDA_MEMCPY2D *c, bool async) {
    if (c == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct side to = {
        c->dstMemoryType, c->dstHost, c->dstDevice, c->dstArray, c->dstXInBytes, c->dstY, 0,
        c->dstPitch,      0};
    struct side from = {
        c->srcMemoryType, c->srcHost, c->srcDevice, c->srcArray, c->srcXInBytes, c->srcY, 0,
        c->srcPitch,      0};
    return copy(ctx, h, &to, &from, c->WidthInBytes, c->Height, 1, async);
}

#define COPY_2D(name)                                                                              \
    SG_API(name, (const CUDA_MEMCPY2D *c)) {                                                       \
        SG_ENTER_CTX(ctx);                                                                         \
        return copy2d(ctx, NULL, c, false);                                                        \
    }                                                                                              \
    SG_API(name##_ptds, (const CUDA_MEMCPY2D *c)) {                                                \
        SG_ENTER_CTX(ctx);                                                                         \
        return copy2d(ctx, CU_STREAM_PER_THREAD, c, false);                                        \
    }

COPY_2D(cuMemcpy2D_v2)
COPY_2D(cuMemcpy2DUnaligned_v2)

SG_TWO_FORMS(cuMemcpy2DAsync_v2, _ptsz, (const CUDA_MEMCPY2D *c, CUstream h), (c, h),
             (c, SG_PER_THREAD(h))) {
    SG_ENTER_CTX(ctx);
    return copy2d(ctx, h, c, true);
}

static void sides_of(const CUDA_MEMCPY3D *c, struct side *to, struct side *from) {
    *to = (struct side){c->dstMemoryType, c->dstHost, c->dstDevice, c->dstArray, c->dstXInBytes,
                        c->dstY,          c->dstZ,    c->dstPitch,  c->dstHeight};
    *from = (struct side){c->srcMemoryType, c->srcHost, c->srcDevice, c->srcArray, c->srcXInBytes,
                          c->srcY,          c->srcZ,    c->srcPitch,  c->srcHeight};
}

struct sg_work *sg_copy_work(const CUDA_MEMCPY3D *c) {
    struct side to;
    struct side from;
    struct sg_work *w = sg_work_new(SG_WORK_COPY);
    if (w == NULL) {
        return NULL;
    }
    sides_of(c, &to, &from);
    if (c->Height == 0 || c->Depth == 0 || !resolve(&to, c->WidthInBytes, &w->copy.to) ||
        !resolve(&from, c->WidthInBytes, &w->copy.from)) {
        sg_work_free(w);
        return NULL;
    }
    w->copy.width = c->WidthInBytes;
    w->copy.height = c->Height;
    w->copy.depth = c->Depth;
    w->copy.queue = to.type == from.type              ? SOFTGPU_QUEUE_D2D
                    : from.type == CU_MEMORYTYPE_HOST ? SOFTGPU_QUEUE_H2D
                                                      : SOFTGPU_QUEUE_D2H;
    return w;
}

static CUresult copy3d(struct sg_ctx *ctx, CUstream h, const CUDA_MEMCPY3D *c, bool async) {
    if (c == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct side to;
    struct side from;
    sides_of(c, &to, &from);
    return copy(ctx, h, &to, &from, c->WidthInBytes, c->Height, c->Depth, async);
}

SG_API(cuMemcpy3D_v2, (const CUDA_MEMCPY3D *c)) {
    SG_ENTER_CTX(ctx);
    return copy3d(ctx, NULL, c, false);
}

SG_API(cuMemcpy3D_v2_ptds, (const CUDA_MEMCPY3D *c)) {
    SG_ENTER_CTX(ctx);
    return copy3d(ctx, CU_STREAM_PER_THREAD, c, false);
}

SG_TWO_FORMS(cuMemcpy3DAsync_v2, _ptsz, (const CUDA_MEMCPY3D *c, CUstream h), (c, h),
             (c, SG_PER_THREAD(h))) {
    SG_ENTER_CTX(ctx);
    return copy3d(ctx, h, c, true);
}

/* Between contexts; the memory is the process's own all the same. */
static CUresult copy3d_peer(struct sg_ctx *ctx, CUstream h, const CUDA_MEMCPY3D_PEER *c,
                            bool async) {
    if (c == NULL || (c->srcContext != NULL && !sg_ctx_valid(c->srcContext)) ||
        (c->dstContext != NULL && !sg_ctx_valid(c->dstContext))) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct side to = {c->dstMemoryType, c->dstHost, c->dstDevice, c->dstArray, c->dstXInBytes,
                      c->dstY,          c->dstZ,    c->dstPitch,  c->dstHeight};
    struct side from = {c->srcMemoryType, c->srcHost, c->srcDevice, c->srcArray, c->srcXInBytes,
                        c->srcY,          c->srcZ,    c->srcPitch,  c->srcHeight};
    return copy(ctx, h, &to, &from, c->WidthInBytes, c->Height, c->Depth, async);
}

SG_API(cuMemcpy3DPeer, (const CUDA_MEMCPY3D_PEER *c)) {
    SG_ENTER_CTX(ctx);
    return copy3d_peer(ctx, NULL, c, false);
}

SG_API(cuMemcpy3DPeer_ptds, (const CUDA_MEMCPY3D_PEER *c)) {
    SG_ENTER_CTX(ctx);
    return copy3d_peer(ctx, CU_STREAM_PER_THREAD, c, false);
}

SG_TWO_FORMS(cuMemcpy3DPeerAsync, _ptsz, (const CUDA_MEMCPY3D_PEER *c, CUstream h), (c, h),
             (c, SG_PER_THREAD(h))) {
    SG_ENTER_CTX(ctx);
    return copy3d_peer(ctx, h, c, true);
}

/* Row-less copies between an array and memory; `offset` is in bytes of the array's first row. */
static CUresult with_array(struct sg_ctx *ctx, CUstream h, CUarray a, size_t offset, void *p,
                           size_t size, bool to_array, bool async) {
    if (a == NULL || a->magic != SG_ARRAY) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (p == NULL || offset + size > a->desc.Width * a->element) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sg_plane in = {
        .base = (unsigned char *)(uintptr_t)a->base + offset, .pitch = size, .slice = size};
    struct sg_plane out = {.base = p, .pitch = size, .slice = size};
    return to_array ? sg_copy(ctx, h, &in, &out, size, 1, 1, async)
                    : sg_copy(ctx, h, &out, &in, size, 1, 1, async);
}

SG_API(cuMemcpyHtoA_v2, (CUarray to, size_t offset, const void *from, size_t size)) {
    SG_ENTER_CTX(ctx);
    return with_array(ctx, NULL, to, offset, (void *)(uintptr_t)from, size, true, false);
}

SG_API(cuMemcpyHtoA_v2_ptds, (CUarray to, size_t offset, const void *from, size_t size)) {
    SG_ENTER_CTX(ctx);
    return with_array(ctx, CU_STREAM_PER_THREAD, to, offset, (void *)(uintptr_t)from, size, true,
                      false);
}

SG_API(cuMemcpyAtoH_v2, (void *to, CUarray from, size_t offset, size_t size)) {
    SG_ENTER_CTX(ctx);
    return with_array(ctx, NULL, from, offset, to, size, false, false);
}

SG_API(cuMemcpyAtoH_v2_ptds, (void *to, CUarray from, size_t offset, size_t size)) {
    SG_ENTER_CTX(ctx);
    return with_array(ctx, CU_STREAM_PER_THREAD, from, offset, to, size, false, false);
}

SG_API(cuMemcpyDtoA_v2, (CUarray to, size_t offset, CUdeviceptr from, size_t size)) {
    SG_ENTER_CTX(ctx);
    return with_array(ctx, NULL, to, offset, (void *)(uintptr_t)from, size, true, false);
}

SG_API(cuMemcpyAtoD_v2, (CUdeviceptr to, CUarray from, size_t offset, size_t size)) {
    SG_ENTER_CTX(ctx);
    return with_array(ctx, NULL, from, offset, (void *)(uintptr_t)to, size, false, false);
}

SG_TWO_FORMS(cuMemcpyHtoAAsync_v2, _ptsz,
             (CUarray to, size_t offset, const void *from, size_t size, CUstream h),
             (to, offset, from, size, h), (to, offset, from, size, SG_PER_THREAD(h))) {
    SG_ENTER_CTX(ctx);
    return with_array(ctx, h, to, offset, (void *)(uintptr_t)from, size, true, true);
}

SG_TWO_FORMS(cuMemcpyAtoHAsync_v2, _ptsz,
             (void *to, CUarray from, size_t offset, size_t size, CUstream h),
             (to, from, offset, size, h), (to, from, offset, size, SG_PER_THREAD(h))) {
    SG_ENTER_CTX(ctx);
    return with_array(ctx, h, from, offset, to, size, false, true);
}
