/* Sets, of one row or many. The value goes along in the call; there is no host side. */
#include "driver.h"

static CUresult set(struct sg_ctx *ctx, CUstream h, CUdeviceptr p, size_t pitch, uint32_t value,
                    uint32_t size, size_t count, size_t height, bool async) {
    if (count > ((size_t)1 << 46) / size) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    size_t width = count * size;
    if (width == 0 || height == 0) {
        return CUDA_SUCCESS;
    }
    if (p % size != 0 || (height > 1 && (pitch < width || height > ((size_t)1 << 46) / pitch))) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sg_work *w = sg_work_new(SG_WORK_SET);
    if (w == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    w->set.to = (struct sg_plane){.base = (unsigned char *)(uintptr_t)p, .pitch = pitch};
    w->set.width = width;
    w->set.height = height;
    w->set.value = value;
    w->set.size = size;
    sg_count(SOFTGPU_COUNT_MEMSET, 1);
    sg_lock();
    struct sg_stream *s = sg_stream_get(ctx, h);
    CUresult rc = s == NULL ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
    if (rc == CUDA_SUCCESS && !sg_range_ok(w->set.to.base, (height - 1) * pitch + width)) {
        rc = CUDA_ERROR_INVALID_VALUE;
    }
    if (rc == CUDA_SUCCESS) {
        rc = sg_submit(s, w);
    } else {
        sg_work_free(w);
    }
    sg_unlock();
    return rc == CUDA_SUCCESS && !async ? sg_wait_stream(s) : rc;
}

/* A synchronous set: in the legacy stream, or with _ptds in the thread's own. */
#define SET_SYNC(name, type, bytes)                                                                \
    static CUresult do_##name(CUdeviceptr p, type value, size_t n, CUstream h) {                   \
        SG_ENTER_CTX(ctx);                                                                         \
        CUresult rc = sg_capture_unsafe();                                                         \
        return rc != CUDA_SUCCESS ? rc : set(ctx, h, p, 0, value, bytes, n, 1, false);             \
    }                                                                                              \
    SG_API(name, (CUdeviceptr p, type value, size_t n)) {                                          \
        return do_##name(p, value, n, NULL);                                                       \
    }                                                                                              \
    SG_API(name##_ptds, (CUdeviceptr p, type value, size_t n)) {                                   \
        return do_##name(p, value, n, CU_STREAM_PER_THREAD);                                       \
    }

#define SET_ASYNC(name, type, bytes)                                                               \
    SG_TWO_FORMS(name, _ptsz, (CUdeviceptr p, type value, size_t n, CUstream h), (p, value, n, h), \
                 (p, value, n, SG_PER_THREAD(h))) {                                                \
        SG_ENTER_CTX(ctx);                                                                         \
        return set(ctx, h, p, 0, value, bytes, n, 1, true);                                        \
    }

#define SET_2D_SYNC(name, type, bytes)                                                             \
    static CUresult do_##name(CUdeviceptr p, size_t pitch, type value, size_t n, size_t height,    \
                              CUstream h) {                                                        \
        SG_ENTER_CTX(ctx);                                                                         \
        CUresult rc = sg_capture_unsafe();                                                         \
        return rc != CUDA_SUCCESS ? rc : set(ctx, h, p, pitch, value, bytes, n, height, false);    \
    }                                                                                              \
    SG_API(name, (CUdeviceptr p, size_t pitch, type value, size_t n, size_t height)) {             \
        return do_##name(p, pitch, value, n, height, NULL);                                        \
    }                                                                                              \
    SG_API(name##_ptds, (CUdeviceptr p, size_t pitch, type value, size_t n, size_t height)) {      \
        return do_##name(p, pitch, value, n, height, CU_STREAM_PER_THREAD);                        \
    }

#define SET_2D_ASYNC(name, type, bytes)                                                            \
    SG_TWO_FORMS(name, _ptsz,                                                                      \
                 (CUdeviceptr p, size_t pitch, type value, size_t n, size_t height, CUstream h),   \
                 (p, pitch, value, n, height, h),                                                  \
                 (p, pitch, value, n, height, SG_PER_THREAD(h))) {                                 \
        SG_ENTER_CTX(ctx);                                                                         \
        return set(ctx, h, p, pitch, value, bytes, n, height, true);                               \
    }

SET_SYNC(cuMemsetD8_v2, unsigned char, 1)
SET_SYNC(cuMemsetD16_v2, unsigned short, 2)
SET_SYNC(cuMemsetD32_v2, unsigned, 4)
SET_ASYNC(cuMemsetD8Async, unsigned char, 1)
SET_ASYNC(cuMemsetD16Async, unsigned short, 2)
SET_ASYNC(cuMemsetD32Async, unsigned, 4)
SET_2D_SYNC(cuMemsetD2D8_v2, unsigned char, 1)
SET_2D_SYNC(cuMemsetD2D16_v2, unsigned short, 2)
SET_2D_SYNC(cuMemsetD2D32_v2, unsigned, 4)
SET_2D_ASYNC(cuMemsetD2D8Async, unsigned char, 1)
SET_2D_ASYNC(cuMemsetD2D16Async, unsigned short, 2)
SET_2D_ASYNC(cuMemsetD2D32Async, unsigned, 4)
