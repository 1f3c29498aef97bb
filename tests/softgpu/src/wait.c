/* Waiting. A waiter sleeps until the earliest time at which its goal can be reached, looks again,
 * and returns `sync_ns` after the completion: sleeping late is hidden in that cost. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "driver.h"

/* Below this a sleep costs more than it saves. */
static const int64_t SG_SPIN_NS = 15000;
/* The death of another process frees the device for us; it is looked for this often. */
static const int64_t SG_NAP_MAX_NS = 2000000;

uint32_t sg_wake_word(void) {
    return __atomic_load_n(&sg.node.st->procs[sg.proc].wake, __ATOMIC_ACQUIRE);
}

static uint64_t to_real(int64_t sim_ns) {
    const struct softgpu_header *h = &sg.node.st->header;
    return h->epoch_ns + (uint64_t)((double)sim_ns / h->speed);
}

void sg_nap(uint32_t seen, int64_t until) {
    uint64_t now = sg_monotonic_ns();
    uint64_t limit = now + (uint64_t)SG_NAP_MAX_NS;
    uint64_t deadline = until == SG_NEVER ? limit : to_real(until);
    deadline = deadline < limit ? deadline : limit;
    if (deadline < now + (uint64_t)SG_SPIN_NS) {
        sg_spin_until(deadline);
        return;
    }
    struct timespec ts = {.tv_sec = (time_t)(deadline / 1000000000u),
                          .tv_nsec = (long)(deadline % 1000000000u)};
    /* The default slack of 50 us would be the largest error of the whole model. 0 restores it. */
    prctl(PR_SET_TIMERSLACK, 1ul);
    syscall(SYS_futex, &sg.node.st->procs[sg.proc].wake, FUTEX_WAIT_BITSET, seen, &ts, NULL,
            FUTEX_BITSET_MATCH_ANY);
    prctl(PR_SET_TIMERSLACK, 0ul);
}

struct goal {
    struct sg_ctx *ctx;
    struct sg_stream *stream; /* one stream; NULL: all of the context */
    struct sg_event *event;
    uint64_t record;
    uint64_t ticket;    /* works up to this one */
    bool blocking_only; /* all but the non-blocking streams */
    int64_t end_ns;
};

static int64_t bound_of(const struct sg_stream *s, uint64_t pos, int64_t now) {
    sg_state_lock(&sg.node);
    int64_t bound = sg_engine_bound(sg.node.st, s->slot, pos, now);
    sg_state_unlock(&sg.node);
    return bound;
}

static bool stream_reached(struct goal *g, const struct sg_stream *s, int64_t now, int64_t *bound) {
    uint64_t pos = 0;
    for (const struct sg_work *w = s->first; w != NULL && w->ticket <= g->ticket; w = w->next) {
        pos = w->pos;
    }
    if (pos == 0) {
        g->end_ns = s->done_ns > g->end_ns ? s->done_ns : g->end_ns;
        return true;
    }
    int64_t b = bound_of(s, pos, now);
    *bound = b > *bound ? b : *bound;
    return false;
}

static bool event_reached(struct goal *g, int64_t now, int64_t *bound) {
    const struct sg_event *ev = g->event;
    if (ev->done || ev->record != g->record || ev->magic != SG_EVENT ||
        ev->stream->magic != SG_STREAM) {
        g->end_ns = ev->time_ns;
        return true;
    }
    *bound = bound_of(ev->stream, ev->pos, now);
    return false;
}

/* Looks at the goal; sets when to look again. */
static bool reached(struct goal *g, int64_t *bound) {
    int64_t now = sg_state_now(sg.node.st);
    *bound = now;
    if (g->event != NULL) {
        return event_reached(g, now, bound);
    }
    if (g->stream != NULL) {
        return stream_reached(g, g->stream, now, bound);
    }
    bool all = true;
    for (struct sg_stream *s = g->ctx->streams; s != NULL; s = s->next) {
        if (!g->blocking_only || !(s->flags & SOFTGPU_STREAM_NONBLOCKING)) {
            all = stream_reached(g, s, now, bound) && all;
        }
    }
    return all;
}

static CUresult wait_for(struct goal *g) {
    sg_count(SOFTGPU_COUNT_SYNC, 1);
    for (;;) {
        int64_t bound;
        uint32_t seen = sg_wake_word();
        sg_lock();
        sg_settle();
        /* The process is ending: its slot is given back, nothing can be waited for any more. */
        bool over = sg_leaving();
        bool there = !over && reached(g, &bound);
        sg_unlock();
        CUresult rc = over ? CUDA_ERROR_DEINITIALIZED : sg_ctx_error(g->ctx);
        if (rc != CUDA_SUCCESS) {
            return rc;
        }
        if (there) {
            break;
        }
        sg_nap(seen, bound);
    }
    if (!sg.null_profile && g->end_ns > 0) {
        sg_spin_until(to_real(g->end_ns + (int64_t)sg.node.st->header.sync_ns));
    }
    return CUDA_SUCCESS;
}

static bool nothing_pending(void) {
    return __atomic_load_n(&sg.pending, __ATOMIC_ACQUIRE) == 0;
}

/* A wait covers what was submitted before it; what other threads submit meanwhile is their affair. */
static uint64_t newest_ticket(void) {
    return __atomic_load_n(&sg.ticket, __ATOMIC_ACQUIRE);
}

CUresult sg_wait_stream(struct sg_stream *s) {
    if (sg.null_profile && nothing_pending()) {
        sg_count(SOFTGPU_COUNT_SYNC, 1);
        return sg_ctx_error(s->ctx);
    }
    struct goal g = {.ctx = s->ctx, .stream = s, .ticket = newest_ticket()};
    if (s->flags & SOFTGPU_STREAM_LEGACY) {
        g.stream = NULL;
        g.blocking_only = true;
    }
    return wait_for(&g);
}

CUresult sg_wait_ctx(struct sg_ctx *ctx) {
    struct goal g = {.ctx = ctx, .ticket = newest_ticket()};
    return wait_for(&g);
}

CUresult sg_wait_event(struct sg_event *ev) {
    if (sg.null_profile && nothing_pending()) {
        sg_count(SOFTGPU_COUNT_SYNC, 1);
        return sg_ctx_error(ev->ctx);
    }
    struct goal g = {
        .ctx = ev->ctx, .event = ev, .record = __atomic_load_n(&ev->record, __ATOMIC_RELAXED)};
    return wait_for(&g);
}
