/* Asking about a capture, and changing what its next node depends on. */
#include "capture.h"

static CUresult info(struct sg_ctx *ctx, CUstream h, int *status, cuuint64_t *id, CUgraph *graph,
                     const CUgraphNode **needs, const void **edges, size_t *count) {
    if (status == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sg_lock();
    struct sg_stream *s = sg_stream_get(ctx, h);
    CUresult rc = s == NULL ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
    if (s != NULL && s->capture == NULL) {
        *status = CU_STREAM_CAPTURE_STATUS_NONE;
    } else if (s != NULL) {
        const struct sg_capture *c = s->capture;
        *status =
            c->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
        if (id != NULL) {
            *id = c->id;
        }
        if (graph != NULL) {
            *graph = c->graph;
        }
        if (needs != NULL) {
            *needs = s->tips.nodes;
        }
        if (edges != NULL) {
            *edges = NULL;
        }
        if (count != NULL) {
            *count = s->tips.count;
        }
    }
    sg_unlock();
    return rc;
}

SG_TWO_FORMS(cuStreamIsCapturing, _ptsz, (CUstream h, int *status), (h, status),
             (SG_PER_THREAD(h), status)) {
    SG_ENTER_CTX(ctx);
    return info(ctx, h, status, NULL, NULL, NULL, NULL, NULL);
}

SG_TWO_FORMS(cuStreamGetCaptureInfo, _ptsz, (CUstream h, int *status, cuuint64_t *id),
             (h, status, id), (SG_PER_THREAD(h), status, id)) {
    SG_ENTER_CTX(ctx);
    return info(ctx, h, status, id, NULL, NULL, NULL, NULL);
}

SG_TWO_FORMS(cuStreamGetCaptureInfo_v2, _ptsz,
             (CUstream h, int *status, cuuint64_t *id, CUgraph *graph, const CUgraphNode **needs,
              size_t *count),
             (h, status, id, graph, needs, count),
             (SG_PER_THREAD(h), status, id, graph, needs, count)) {
    SG_ENTER_CTX(ctx);
    return info(ctx, h, status, id, graph, needs, NULL, count);
}

SG_TWO_FORMS(cuStreamGetCaptureInfo_v3, _ptsz,
             (CUstream h, int *status, cuuint64_t *id, CUgraph *graph, const CUgraphNode **needs,
              const void **edges, size_t *count),
             (h, status, id, graph, needs, edges, count),
             (SG_PER_THREAD(h), status, id, graph, needs, edges, count)) {
    SG_ENTER_CTX(ctx);
    return info(ctx, h, status, id, graph, needs, edges, count);
}

static CUresult update(struct sg_ctx *ctx, CUstream h, CUgraphNode *needs, size_t count,
                       unsigned flags) {
    if (flags > 1 || (count != 0 && needs == NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sg_lock();
    struct sg_stream *s = sg_stream_get(ctx, h);
    CUresult rc = CUDA_SUCCESS;
    if (s == NULL) {
        rc = CUDA_ERROR_INVALID_HANDLE;
    } else if (s->capture == NULL) {
        rc = CUDA_ERROR_INVALID_VALUE;
    } else if (s->capture->invalid) {
        rc = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    } else {
        s->tips.count = flags == 1 ? 0 : s->tips.count; /* 1: set, 0: add */
        for (size_t i = 0; i < count && rc == CUDA_SUCCESS; i++) {
            rc = sg_tips_add(&s->tips, needs[i]) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    sg_unlock();
    return rc;
}

SG_TWO_FORMS(cuStreamUpdateCaptureDependencies, _ptsz,
             (CUstream h, CUgraphNode *needs, size_t count, unsigned flags),
             (h, needs, count, flags), (SG_PER_THREAD(h), needs, count, flags)) {
    SG_ENTER_CTX(ctx);
    return update(ctx, h, needs, count, flags);
}

SG_TWO_FORMS(cuStreamUpdateCaptureDependencies_v2, _ptsz,
             (CUstream h, CUgraphNode *needs, const void *edges, size_t count, unsigned flags),
             (h, needs, edges, count, flags), (SG_PER_THREAD(h), needs, edges, count, flags)) {
    SG_ENTER_CTX(ctx);
    (void)edges;
    return update(ctx, h, needs, count, flags);
}
