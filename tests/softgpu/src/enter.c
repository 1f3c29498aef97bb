/* What every call does first, and the injected faults. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "fault.h"

void sg_lock(void) {
    pthread_mutex_lock(&sg.mutex);
}

void sg_unlock(void) {
    pthread_mutex_unlock(&sg.mutex);
}

void sg_count(enum softgpu_counter c, uint64_t n) {
    __atomic_add_fetch(&sg.node.st->procs[sg.proc].calls[c], n, __ATOMIC_RELAXED);
}

CUresult sg_fault(const char *entry) {
    struct softgpu_state *st = sg.node.st;
    if (__builtin_expect(__atomic_load_n(&st->header.faults_armed, __ATOMIC_RELAXED) == 0, 1)) {
        return CUDA_SUCCESS;
    }
    if (strncmp(entry, "do_", 3) == 0) {
        entry += 3;
    }
    struct sg_call call = {
        .entry = entry, .pid = st->procs[sg.proc].pid, .device = SOFTGPU_NONE, .late = false};
    uint32_t flags = 0;
    uint32_t result = sg_fault_strike(st, &call, &flags);
    if (result == 0) {
        return CUDA_SUCCESS;
    }
    sg_count(SOFTGPU_COUNT_FAULT, 1);
    if ((flags & SOFTGPU_FAULT_STICKY) && sg_current() != NULL) {
        sg_poison(sg_current(), (CUresult)result);
    }
    return (CUresult)result;
}

CUresult sg_enter(const char *entry) {
    if (__builtin_expect(!__atomic_load_n(&sg.initialised, __ATOMIC_ACQUIRE), 0)) {
        return sg_leaving() ? CUDA_ERROR_DEINITIALIZED : CUDA_ERROR_NOT_INITIALIZED;
    }
    if (__builtin_expect(sg_self.in_callback, 0)) {
        return CUDA_ERROR_NOT_PERMITTED; /* host functions may not call the driver */
    }
    return sg_fault(entry);
}

struct sg_ctx *sg_current(void) {
    return sg_self.depth > 0 ? sg_self.stack[sg_self.depth - 1] : NULL;
}

CUresult sg_ctx_error(const struct sg_ctx *ctx) {
    const struct softgpu_state *st = sg.node.st;
    if (__atomic_load_n(&st->devices[st->units[ctx->unit].device].lost, __ATOMIC_RELAXED) != 0) {
        return CUDA_ERROR_UNKNOWN; /* as after a device has fallen off the bus */
    }
    return (CUresult)__atomic_load_n(&sg.node.st->contexts[ctx->slot].error, __ATOMIC_RELAXED);
}

CUresult sg_enter_ctx(const char *entry, struct sg_ctx **ctx) {
    CUresult rc = sg_enter(entry);
    if (rc != CUDA_SUCCESS) {
        return rc;
    }
    *ctx = sg_current();
    if (*ctx == NULL) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if ((*ctx)->magic != SG_CONTEXT) {
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    return sg_ctx_error(*ctx);
}

/* A fatal fault. Under MPS it takes every client of the server: all contexts of the unit's
 * group. */
void sg_poison(struct sg_ctx *ctx, CUresult error) {
    struct softgpu_state *st = sg.node.st;
    sg_state_lock(&sg.node);
    const struct softgpu_context *own = &st->contexts[ctx->slot];
    for (uint32_t i = 0; i < st->header.context_high; i++) {
        struct softgpu_context *c = &st->contexts[i];
        bool same = c == own || ((own->flags & SOFTGPU_CONTEXT_MPS) &&
                                 (c->flags & SOFTGPU_CONTEXT_MPS) && c->unit == own->unit);
        if (same && c->state == SOFTGPU_SLOT_USED && c->error == 0) {
            __atomic_store_n(&c->error, (uint32_t)error, __ATOMIC_RELEASE);
        }
    }
    for (uint32_t i = 0; i < st->header.stream_high; i++) {
        struct softgpu_stream *s = &st->streams[i];
        if (s->state == SOFTGPU_SLOT_USED && st->contexts[s->context].error != 0) {
            sg_engine_drop_stream(st, i);
        }
    }
    sg_engine_kick(st, own->unit, sg_state_now(st));
    sg_state_unlock(&sg.node);
}

void sg_spin_until(uint64_t real_ns) {
    while (sg_monotonic_ns() < real_ns) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ volatile("yield");
#endif
    }
}

/* Every object ever made stays in this list: reachable for good, and known to be so by a leak
 * checker. */
struct keep {
    struct keep *next;
    uint64_t pad; /* what follows is aligned as malloc's memory is */
};

static struct keep *kept;

void *sg_object(size_t size, uint32_t magic) {
    struct keep *k = calloc(1, sizeof(*k) + size);
    if (k == NULL) {
        return NULL;
    }
    k->next = __atomic_load_n(&kept, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&kept, &k->next, k, false, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED)) {
    }
    uint32_t *object = (uint32_t *)(k + 1);
    *object = magic;
    return object;
}
