/* Events. An event stands for a position in a stream; its time is when that was reached. */
#include <stdlib.h>

#include "driver.h"

SG_API(cuEventCreate, (CUevent * out, unsigned flags)) {
    SG_ENTER_CTX(ctx);
    if (out == NULL || (flags & ~7u) != 0 ||
        ((flags & CU_EVENT_INTERPROCESS) && !(flags & CU_EVENT_DISABLE_TIMING))) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sg_event *ev = sg_object(sizeof(*ev), SG_EVENT);
    if (ev == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    ev->ctx = ctx;
    ev->flags = flags;
    ev->done = 1; /* never recorded: as if over */
    *out = ev;
    return CUDA_SUCCESS;
}

static bool valid(CUevent ev) {
    return ev != NULL && ev->magic == SG_EVENT;
}

static CUresult destroy(CUevent ev) {
    if (!valid(ev)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    sg_lock();
    ev->magic = SG_DEAD;
    /* Works that still name it find another record. */
    __atomic_store_n(&ev->record, ev->record + 1, __ATOMIC_RELAXED);
    sg_unlock();
    return CUDA_SUCCESS;
}

SG_API(cuEventDestroy_v2, (CUevent ev)) {
    SG_ENTER();
    return destroy(ev);
}

SG_API(cuEventDestroy, (CUevent ev)) {
    SG_ENTER();
    return destroy(ev);
}

static void place(CUevent ev, struct sg_stream *s, uint64_t pos) {
    ev->stream = s;
    ev->stream_slot = s->slot;
    ev->stream_generation = sg.node.st->streams[s->slot].generation;
    ev->pos = pos;
}

/* While the stream is full, submitting lets others in: they find the event where it was before, so
 * that nothing waits for the old position in the new stream. */
static CUresult record_locked(CUevent ev, struct sg_stream *s) {
    if (s->capture != NULL) {
        return sg_capture_record(s, ev);
    }
    struct sg_work *w = sg_work_new(SG_WORK_EVENT);
    if (w == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    __atomic_store_n(&ev->capture, NULL, __ATOMIC_RELAXED);
    __atomic_store_n(&ev->record, ev->record + 1, __ATOMIC_RELAXED);
    ev->recorded = true;
    if (ev->stream == NULL) {
        place(ev, s, 0);
    }
    __atomic_store_n(&ev->done, 0, __ATOMIC_RELEASE);
    w->event.event = ev;
    w->event.record = ev->record;
    CUresult rc = sg_submit(s, w);
    if (rc == CUDA_SUCCESS) {
        place(ev, s, s->submitted);
    } else {
        __atomic_store_n(&ev->done, 1, __ATOMIC_RELEASE); /* nobody waits for what is not there */
    }
    return rc;
}

static CUresult record(CUevent ev, CUstream h, struct sg_ctx *ctx) {
    if (!valid(ev)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    sg_count(SOFTGPU_COUNT_EVENT_RECORD, 1);
    sg_lock();
    struct sg_stream *s = sg_stream_get(ctx, h);
    CUresult rc = CUDA_ERROR_INVALID_HANDLE;
    if (s != NULL && s->ctx == ev->ctx) {
        rc = record_locked(ev, s);
    }
    sg_unlock();
    return rc;
}

SG_TWO_FORMS(cuEventRecord, _ptsz, (CUevent ev, CUstream h), (ev, h), (ev, SG_PER_THREAD(h))) {
    SG_ENTER_CTX(ctx);
    return record(ev, h, ctx);
}

SG_TWO_FORMS(cuEventRecordWithFlags, _ptsz, (CUevent ev, CUstream h, unsigned flags),
             (ev, h, flags), (ev, SG_PER_THREAD(h), flags)) {
    SG_ENTER_CTX(ctx);
    return flags > 1 ? CUDA_ERROR_INVALID_VALUE : record(ev, h, ctx);
}

static bool over(const struct sg_event *ev) {
    return __atomic_load_n(&ev->done, __ATOMIC_ACQUIRE) != 0;
}

static bool is_captured(const struct sg_event *ev) {
    return __atomic_load_n(&ev->capture, __ATOMIC_RELAXED) != NULL;
}

/* Nothing of this process has finished and nothing can have: no need to lock. */
static bool nothing_new(const struct sg_event *ev) {
    struct softgpu_state *st = sg.node.st;
    return __atomic_load_n(&st->procs[sg.proc].done_head, __ATOMIC_ACQUIRE) == SOFTGPU_NONE &&
           sg_state_now(st) <
               __atomic_load_n(&st->units[ev->ctx->unit].next_event_ns, __ATOMIC_ACQUIRE);
}

SG_API(cuEventQuery, (CUevent ev)) {
    SG_ENTER();
    if (!valid(ev)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (is_captured(ev)) {
        return CUDA_ERROR_CAPTURED_EVENT;
    }
    CUresult rc = sg_capture_unsafe();
    if (rc == CUDA_SUCCESS) {
        rc = sg_ctx_error(ev->ctx);
    }
    if (rc != CUDA_SUCCESS) {
        return rc;
    }
    sg_count(SOFTGPU_COUNT_QUERY, 1);
    if (!over(ev) && !nothing_new(ev)) {
        sg_lock();
        sg_settle();
        sg_unlock();
    }
    return over(ev) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

SG_API(cuEventSynchronize, (CUevent ev)) {
    SG_ENTER();
    if (!valid(ev)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (is_captured(ev)) {
        return CUDA_ERROR_CAPTURED_EVENT;
    }
    CUresult rc = sg_capture_unsafe();
    return rc != CUDA_SUCCESS ? rc : sg_wait_event(ev);
}

static CUresult elapsed(float *ms, CUevent start, CUevent end) {
    if (ms == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!valid(start) || !valid(end) || !start->recorded || !end->recorded ||
        ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (!over(start) || !over(end)) {
        sg_lock();
        sg_settle();
        sg_unlock();
    }
    if (!over(start) || !over(end)) {
        return CUDA_ERROR_NOT_READY;
    }
    *ms = (float)((double)(end->time_ns - start->time_ns) / 1e6);
    return CUDA_SUCCESS;
}

SG_API(cuEventElapsedTime, (float *ms, CUevent start, CUevent end)) {
    SG_ENTER();
    return elapsed(ms, start, end);
}

SG_API(cuEventElapsedTime_v2, (float *ms, CUevent start, CUevent end)) {
    SG_ENTER();
    return elapsed(ms, start, end);
}

static CUresult wait_locked(struct sg_stream *s, struct sg_event *ev) {
    if (s->capture != NULL || ev->capture != NULL) {
        return sg_capture_wait(s, ev);
    }
    if (over(ev)) {
        return CUDA_SUCCESS;
    }
    struct sg_work *w = sg_work_new(SG_WORK_WAIT_EVENT);
    if (w == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    w->wait.stream = ev->stream_slot;
    w->wait.generation = ev->stream_generation;
    w->wait.pos = ev->pos;
    return sg_submit(s, w);
}

SG_TWO_FORMS(cuStreamWaitEvent, _ptsz, (CUstream h, CUevent ev, unsigned flags), (h, ev, flags),
             (SG_PER_THREAD(h), ev, flags)) {
    SG_ENTER_CTX(ctx);
    if (flags > 1) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!valid(ev)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    sg_lock();
    struct sg_stream *s = sg_stream_get(ctx, h);
    CUresult rc = s == NULL ? CUDA_ERROR_INVALID_HANDLE : wait_locked(s, ev);
    sg_unlock();
    return rc;
}
