/* Host functions and values in memory as stream operations. */
#include "driver.h"

static CUresult submit(struct sg_ctx *ctx, CUstream h, struct sg_work *w) {
    if (w == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    sg_lock();
    struct sg_stream *s = sg_stream_get(ctx, h);
    CUresult rc = CUDA_ERROR_INVALID_HANDLE;
    if (s == NULL) {
        sg_work_free(w);
    } else {
        rc = sg_submit(s, w);
    }
    sg_unlock();
    return rc;
}

SG_TWO_FORMS(cuLaunchHostFunc, _ptsz, (CUstream h, CUhostFn fn, void *user), (h, fn, user),
             (SG_PER_THREAD(h), fn, user)) {
    SG_ENTER_CTX(ctx);
    if (fn == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sg_work *w = sg_work_new(SG_WORK_HOST);
    if (w != NULL) {
        w->host.fn = fn;
        w->host.user = user;
    }
    return submit(ctx, h, w);
}

SG_TWO_FORMS(cuStreamAddCallback, _ptsz,
             (CUstream h, CUstreamCallback callback, void *user, unsigned flags),
             (h, callback, user, flags), (SG_PER_THREAD(h), callback, user, flags)) {
    SG_ENTER_CTX(ctx);
    if (callback == NULL || flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sg_work *w = sg_work_new(SG_WORK_CALLBACK);
    if (w != NULL) {
        w->host.callback = callback;
        w->host.user = user;
    }
    return submit(ctx, h, w);
}

static CUresult value_op(struct sg_ctx *ctx, CUstream h, enum sg_work_kind kind, CUdeviceptr p,
                         uint64_t value, unsigned flags, bool wide) {
    size_t size = wide ? 8 : 4;
    sg_lock();
    bool ok = p % size == 0 && sg_range_ok((void *)(uintptr_t)p, size);
    sg_unlock();
    if (!ok) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sg_work *w = sg_work_new(kind);
    if (w != NULL) {
        w->value.address = (void *)(uintptr_t)p;
        w->value.value = value;
        w->value.flags = flags;
        w->value.wide = wide;
    }
    return submit(ctx, h, w);
}

#define VALUE_OP(name, type, kind, wide)                                                           \
    SG_TWO_FORMS(name, _ptsz, (CUstream h, CUdeviceptr p, type value, unsigned flags),             \
                 (h, p, value, flags), (SG_PER_THREAD(h), p, value, flags)) {                      \
        SG_ENTER_CTX(ctx);                                                                         \
        return value_op(ctx, h, kind, p, value, flags, wide);                                      \
    }

VALUE_OP(cuStreamWriteValue32, cuuint32_t, SG_WORK_WRITE, false)
VALUE_OP(cuStreamWriteValue32_v2, cuuint32_t, SG_WORK_WRITE, false)
VALUE_OP(cuStreamWriteValue64, cuuint64_t, SG_WORK_WRITE, true)
VALUE_OP(cuStreamWriteValue64_v2, cuuint64_t, SG_WORK_WRITE, true)
VALUE_OP(cuStreamWaitValue32, cuuint32_t, SG_WORK_WAIT_VALUE, false)
VALUE_OP(cuStreamWaitValue32_v2, cuuint32_t, SG_WORK_WAIT_VALUE, false)
VALUE_OP(cuStreamWaitValue64, cuuint64_t, SG_WORK_WAIT_VALUE, true)
VALUE_OP(cuStreamWaitValue64_v2, cuuint64_t, SG_WORK_WAIT_VALUE, true)

enum {
    BATCH_WAIT32 = 1,
    BATCH_WRITE32 = 2,
    BATCH_WAIT64 = 4,
    BATCH_WRITE64 = 5,
    BATCH_BARRIER = 6,
    BATCH_FLUSH = 3
};

static CUresult batch(struct sg_ctx *ctx, CUstream h, unsigned count,
                      const CUstreamBatchMemOpParams *ops, unsigned flags) {
    if (ops == NULL || count > 256 || flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult rc = CUDA_SUCCESS;
    for (unsigned i = 0; i < count && rc == CUDA_SUCCESS; i++) {
        const CUstreamBatchMemOpParams *o = &ops[i];
        bool wide = o->operation == BATCH_WAIT64 || o->operation == BATCH_WRITE64;
        uint64_t value = wide ? o->value.value64 : o->value.value;
        switch (o->operation) {
        case BATCH_WAIT32:
        case BATCH_WAIT64:
            rc =
                value_op(ctx, h, SG_WORK_WAIT_VALUE, o->value.address, value, o->value.flags, wide);
            break;
        case BATCH_WRITE32:
        case BATCH_WRITE64:
            rc = value_op(ctx, h, SG_WORK_WRITE, o->value.address, value, o->value.flags, wide);
            break;
        case BATCH_BARRIER: /* everything in a stream is ordered here anyway */
        case BATCH_FLUSH:
            break;
        default:
            rc = CUDA_ERROR_INVALID_VALUE;
        }
    }
    return rc;
}

SG_TWO_FORMS(cuStreamBatchMemOp, _ptsz,
             (CUstream h, unsigned count, CUstreamBatchMemOpParams *ops, unsigned flags),
             (h, count, ops, flags), (SG_PER_THREAD(h), count, ops, flags)) {
    SG_ENTER_CTX(ctx);
    return batch(ctx, h, count, ops, flags);
}

SG_TWO_FORMS(cuStreamBatchMemOp_v2, _ptsz,
             (CUstream h, unsigned count, CUstreamBatchMemOpParams *ops, unsigned flags),
             (h, count, ops, flags), (SG_PER_THREAD(h), count, ops, flags)) {
    SG_ENTER_CTX(ctx);
    return batch(ctx, h, count, ops, flags);
}
