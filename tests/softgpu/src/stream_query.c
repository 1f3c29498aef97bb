/* What can be asked of a stream, and waiting for it. */
#include "driver.h"

static CUresult lookup(struct sg_ctx *ctx, CUstream h, struct sg_stream **s) {
    sg_lock();
    *s = sg_stream_get(ctx, h);
    sg_unlock();
    return *s == NULL ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

/* Declares `s`, the stream of handle h in the current context, or returns the error. */
#define SG_STREAM_OF(s, h)                                                                         \
    SG_ENTER_CTX(ctx);                                                                             \
    struct sg_stream *s;                                                                           \
    do {                                                                                           \
        CUresult sg_rc2_ = lookup(ctx, h, &s);                                                     \
        if (sg_rc2_ != CUDA_SUCCESS) {                                                             \
            return sg_rc2_;                                                                        \
        }                                                                                          \
    } while (0)

/* The stream of a handle, if it may be waited for or asked. A capture may begin or end meanwhile, in
 * another thread. */
static CUresult lookup_uncaptured(struct sg_ctx *ctx, CUstream h, struct sg_stream **s) {
    sg_lock();
    *s = sg_stream_get(ctx, h);
    CUresult rc = *s == NULL ? CUDA_ERROR_INVALID_HANDLE : sg_capture_refuse(*s);
    sg_unlock();
    return rc == CUDA_SUCCESS ? sg_capture_unsafe() : rc;
}

SG_TWO_FORMS(cuStreamSynchronize, _ptsz, (CUstream h), (h), (SG_PER_THREAD(h))) {
    SG_ENTER_CTX(ctx);
    struct sg_stream *s;
    CUresult rc = lookup_uncaptured(ctx, h, &s);
    return rc != CUDA_SUCCESS ? rc : sg_wait_stream(s);
}

SG_TWO_FORMS(cuStreamQuery, _ptsz, (CUstream h), (h), (SG_PER_THREAD(h))) {
    SG_ENTER_CTX(ctx);
    struct sg_stream *s;
    CUresult rc = lookup_uncaptured(ctx, h, &s);
    if (rc != CUDA_SUCCESS) {
        return rc;
    }
    sg_count(SOFTGPU_COUNT_QUERY, 1);
    if (sg_stream_idle(s)) {
        return CUDA_SUCCESS;
    }
    sg_lock();
    sg_settle();
    bool idle = sg_stream_idle(s);
    sg_unlock();
    rc = sg_ctx_error(ctx);
    return rc != CUDA_SUCCESS ? rc : idle ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

SG_TWO_FORMS(cuStreamGetPriority, _ptsz, (CUstream h, int *priority), (h, priority),
             (SG_PER_THREAD(h), priority)) {
    SG_STREAM_OF(s, h);
    if (priority == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *priority = s->priority;
    return CUDA_SUCCESS;
}

SG_TWO_FORMS(cuStreamGetFlags, _ptsz, (CUstream h, unsigned *flags), (h, flags),
             (SG_PER_THREAD(h), flags)) {
    SG_STREAM_OF(s, h);
    if (flags == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *flags = s->flags & SOFTGPU_STREAM_NONBLOCKING ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT;
    return CUDA_SUCCESS;
}

SG_TWO_FORMS(cuStreamGetId, _ptsz, (CUstream h, unsigned long long *id), (h, id),
             (SG_PER_THREAD(h), id)) {
    SG_STREAM_OF(s, h);
    if (id == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *id = s->id;
    return CUDA_SUCCESS;
}

SG_TWO_FORMS(cuStreamGetCtx, _ptsz, (CUstream h, CUcontext *out), (h, out),
             (SG_PER_THREAD(h), out)) {
    SG_STREAM_OF(s, h);
    if (out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = s->ctx;
    return CUDA_SUCCESS;
}

SG_TWO_FORMS(cuStreamGetCtx_v2, _ptsz, (CUstream h, CUcontext *out, void **green), (h, out, green),
             (SG_PER_THREAD(h), out, green)) {
    SG_STREAM_OF(s, h);
    if (out == NULL || green == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = s->ctx;
    *green = NULL; /* no stream here belongs to a green context */
    return CUDA_SUCCESS;
}

SG_TWO_FORMS(cuStreamGetDevice, _ptsz, (CUstream h, CUdevice *out), (h, out),
             (SG_PER_THREAD(h), out)) {
    SG_STREAM_OF(s, h);
    if (out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = s->ctx->device;
    return CUDA_SUCCESS;
}
