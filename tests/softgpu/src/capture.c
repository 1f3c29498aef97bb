/* The rules of stream capture: what becomes a node, what is forbidden, what is lost by it. */
#include "capture.h"

#include <stdlib.h>

/* All captures in progress in this process; guarded by sg.mutex. */
static struct sg_capture *captures;

static bool mine(const struct sg_capture *c) {
    return pthread_equal(c->thread, pthread_self()) != 0;
}

/* Does a potentially unsafe call of this thread collide with that capture? */
static bool collides(const struct sg_capture *c) {
    if (sg_self.capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED) {
        return false;
    }
    if (mine(c)) {
        return c->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    }
    return sg_self.capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
           c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

CUresult sg_capture_unsafe(void) {
    if (__builtin_expect(__atomic_load_n(&sg.captures, __ATOMIC_ACQUIRE) == 0, 1)) {
        return CUDA_SUCCESS;
    }
    CUresult rc = CUDA_SUCCESS;
    sg_lock();
    for (struct sg_capture *c = captures; c != NULL; c = c->next) {
        if (collides(c)) {
            c->invalid = true;
            rc = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    sg_unlock();
    return rc;
}

CUresult sg_capture_refuse(struct sg_stream *s) {
    if (s->capture == NULL) {
        return CUDA_SUCCESS;
    }
    s->capture->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult sg_capture_implicit(const struct sg_stream *s) {
    if (!(s->flags & SOFTGPU_STREAM_LEGACY) ||
        __atomic_load_n(&sg.captures, __ATOMIC_RELAXED) == 0) {
        return CUDA_SUCCESS;
    }
    CUresult rc = CUDA_SUCCESS;
    for (struct sg_stream *o = s->ctx->streams; o != NULL; o = o->next) {
        if (o->capture != NULL && !(o->flags & SOFTGPU_STREAM_NONBLOCKING)) {
            o->capture->invalid = true;
            rc = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        }
    }
    return rc;
}

static int type_of(const struct sg_work *w) {
    switch (w->kind) {
    case SG_WORK_KERNEL:
        return 0;
    case SG_WORK_COPY:
        return 1;
    case SG_WORK_SET:
        return 2;
    case SG_WORK_HOST:
        return 3;
    case SG_WORK_WRITE:
    case SG_WORK_WAIT_VALUE:
        return 12; /* batch of memory operations */
    default:
        return -1;
    }
}

CUresult sg_capture_work(struct sg_stream *s, struct sg_work *w) {
    struct sg_capture *c = s->capture;
    int type = type_of(w);
    if (c->invalid) {
        sg_work_free(w);
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    if (type < 0) {
        c->invalid = true;
        sg_work_free(w);
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    struct sg_node_s *n = sg_node_add(c->graph, type, w, s->tips.nodes, s->tips.count);
    if (n == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    s->tips.count = 0;
    return sg_tips_add(&s->tips, n) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* No node: the event stands for what the stream has captured so far. */
CUresult sg_capture_record(struct sg_stream *s, struct sg_event *ev) {
    if (s->capture->invalid) {
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    __atomic_store_n(&ev->capture, s->capture, __ATOMIC_RELAXED);
    __atomic_store_n(&ev->record, ev->record + 1, __ATOMIC_RELAXED);
    return sg_tips_copy(&ev->tips, &s->tips) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static bool in_progress(const struct sg_capture *capture) {
    for (const struct sg_capture *c = captures; c != NULL; c = c->next) {
        if (c == capture) {
            return true;
        }
    }
    return false;
}

CUresult sg_capture_wait(struct sg_stream *s, struct sg_event *ev) {
    if (ev->capture == NULL) { /* s captures, the event is from outside */
        if (!ev->recorded) {
            return CUDA_SUCCESS;
        }
        s->capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    if (!in_progress(ev->capture)) {
        return CUDA_ERROR_CAPTURED_EVENT;
    }
    if (ev->capture->invalid) {
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    if (s->flags & SOFTGPU_STREAM_LEGACY) {
        ev->capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    if (s->capture != NULL && s->capture != ev->capture) {
        s->capture->invalid = true;
        ev->capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    if (s->capture == NULL) {
        s->capture = ev->capture; /* it joins */
        s->tips.count = 0;
    }
    for (uint32_t i = 0; i < ev->tips.count; i++) {
        if (!sg_tips_add(&s->tips, ev->tips.nodes[i])) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    return CUDA_SUCCESS;
}

static CUresult begin(CUstream h, struct sg_graph *into, struct sg_node_s *const *needs,
                      size_t count, int mode, struct sg_ctx *ctx) {
    if (mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sg_stream *s = sg_stream_get(ctx, h);
    if (s == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (s->flags & SOFTGPU_STREAM_LEGACY) {
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (s->capture != NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sg_capture *c = sg_object(sizeof(*c), 0);
    if (c == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    c->graph = into != NULL ? into : sg_graph_new();
    c->into_given = into != NULL;
    c->origin = s;
    c->thread = pthread_self();
    c->mode = mode;
    c->id = ++sg.next_id;
    s->tips.count = 0;
    for (size_t i = 0; i < count; i++) {
        if (!sg_tips_add(&s->tips, needs[i])) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    if (c->graph == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    c->next = captures;
    captures = c;
    s->capture = c;
    __atomic_add_fetch(&sg.captures, 1, __ATOMIC_RELEASE);
    return CUDA_SUCCESS;
}

SG_TWO_FORMS(cuStreamBeginCapture_v2, _ptsz, (CUstream h, int mode), (h, mode),
             (SG_PER_THREAD(h), mode)) {
    SG_ENTER_CTX(ctx);
    sg_lock();
    CUresult rc = begin(h, NULL, NULL, 0, mode, ctx);
    sg_unlock();
    return rc;
}

SG_TWO_FORMS(cuStreamBeginCapture, _ptsz, (CUstream h), (h), (SG_PER_THREAD(h))) {
    SG_ENTER_CTX(ctx);
    sg_lock();
    CUresult rc = begin(h, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL, ctx);
    sg_unlock();
    return rc;
}

SG_TWO_FORMS(cuStreamBeginCaptureToGraph, _ptsz,
             (CUstream h, CUgraph graph, const CUgraphNode *needs, const void *edges, size_t count,
              int mode),
             (h, graph, needs, edges, count, mode),
             (SG_PER_THREAD(h), graph, needs, edges, count, mode)) {
    SG_ENTER_CTX(ctx);
    (void)edges;
    if (graph == NULL || graph->magic != SG_GRAPH || (count != 0 && needs == NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sg_lock();
    CUresult rc = begin(h, graph, needs, count, mode, ctx);
    sg_unlock();
    return rc;
}

static void mark_needed(struct sg_node_s *n) {
    if (!n->seen) {
        n->seen = true;
        for (uint32_t i = 0; i < n->needs.count; i++) {
            mark_needed(n->needs.nodes[i]);
        }
    }
}

/* Everything captured has to lead back into the stream where it began. */
static bool is_joined(const struct sg_capture *c) {
    const struct sg_tips *all = &c->graph->nodes;
    for (uint32_t i = 0; i < all->count; i++) {
        all->nodes[i]->seen = false;
    }
    for (uint32_t i = 0; i < c->origin->tips.count; i++) {
        mark_needed(c->origin->tips.nodes[i]);
    }
    for (uint32_t i = 0; i < all->count && !c->into_given; i++) {
        if (!all->nodes[i]->seen) {
            return false;
        }
    }
    return true;
}

static void leave_capture(struct sg_capture *c) {
    for (struct sg_ctx *ctx = sg.contexts; ctx != NULL; ctx = ctx->next) {
        for (struct sg_stream *s = ctx->streams; s != NULL; s = s->next) {
            if (s->capture == c) {
                s->capture = NULL;
                s->tips.count = 0;
            }
        }
    }
    for (struct sg_capture **link = &captures; *link != NULL; link = &(*link)->next) {
        if (*link == c) {
            *link = c->next;
            break;
        }
    }
    __atomic_sub_fetch(&sg.captures, 1, __ATOMIC_RELEASE);
}

static CUresult end(CUstream h, CUgraph *out, struct sg_ctx *ctx) {
    struct sg_stream *s = sg_stream_get(ctx, h);
    if (s == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    struct sg_capture *c = s->capture;
    if (c == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (c->origin != s) {
        c->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    }
    if (!mine(c) && c->mode != CU_STREAM_CAPTURE_MODE_RELAXED) {
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    }
    CUresult rc = CUDA_SUCCESS;
    if (c->invalid) {
        rc = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    } else if (!is_joined(c)) {
        rc = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    }
    leave_capture(c);
    *out = rc == CUDA_SUCCESS ? c->graph : NULL;
    return rc;
}

SG_TWO_FORMS(cuStreamEndCapture, _ptsz, (CUstream h, CUgraph *out), (h, out),
             (SG_PER_THREAD(h), out)) {
    SG_ENTER_CTX(ctx);
    if (out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sg_lock();
    CUresult rc = end(h, out, ctx);
    sg_unlock();
    return rc;
}

SG_API(cuThreadExchangeStreamCaptureMode, (int *mode)) {
    SG_ENTER();
    if (mode == NULL || *mode < CU_STREAM_CAPTURE_MODE_GLOBAL ||
        *mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    int old = sg_self.capture_mode;
    sg_self.capture_mode = *mode;
    *mode = old;
    return CUDA_SUCCESS;
}
