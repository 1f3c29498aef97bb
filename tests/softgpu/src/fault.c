/* Injected faults: counting calls, and deciding which of them are struck. */
#define _GNU_SOURCE
#include "fault.h"

#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A number in [0, 1) from a seed and a position: the same run strikes at the same calls. */
static double draw(uint64_t seed, uint64_t i) {
    uint64_t x = seed + i * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    x ^= x >> 31;
    return (double)(x >> 11) / 9007199254740992.0;
}

static bool matches(const struct softgpu_fault *f, const struct sg_call *call) {
    bool management = strncmp(call->entry, "nvml", 4) == 0;
    const char *any = management ? "nvml*" : "*";
    return (f->pid == 0 || f->pid == call->pid) &&
           (f->device == 0 || f->device == call->device + 1) &&
           ((f->flags & SOFTGPU_FAULT_LATE) != 0) == call->late &&
           (strcmp(f->entry, any) == 0 || strcmp(f->entry, call->entry) == 0);
}

/* Whoever takes a fault out counts it out: without armed faults a call looks at one word only. */
static bool disarm(struct softgpu_state *st, struct softgpu_fault *f) {
    uint32_t armed = 1;
    if (!__atomic_compare_exchange_n(&f->armed, &armed, 0, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED)) {
        return false;
    }
    __atomic_sub_fetch(&st->header.faults_armed, 1, __ATOMIC_RELEASE);
    return true;
}

static bool strikes(struct softgpu_state *st, struct softgpu_fault *f) {
    uint64_t call = __atomic_add_fetch(&f->calls, 1, __ATOMIC_RELAXED);
    if (call <= f->after) {
        return false;
    }
    if (f->flags & SOFTGPU_FAULT_RANDOM) {
        return draw(f->seed, call) < f->probability;
    }
    if (f->flags & SOFTGPU_FAULT_ALWAYS) {
        return true;
    }
    /* Each call has a number of its own, so that exactly `times` of them are struck. */
    uint64_t times = f->times == 0 ? 1 : f->times;
    uint64_t turn = call - f->after;
    return turn < times || (turn == times && disarm(st, f));
}

static void suffer(uint64_t delay_ns, uint32_t flags) {
    if (delay_ns > 0) {
        struct timespec ts = {.tv_sec = (time_t)(delay_ns / 1000000000u),
                              .tv_nsec = (long)(delay_ns % 1000000000u)};
        while (nanosleep(&ts, &ts) != 0) {
        }
    }
    if (flags & SOFTGPU_FAULT_KILL) {
        kill(getpid(), SIGKILL);
    }
}

uint32_t sg_fault_strike(struct softgpu_state *st, const struct sg_call *call, uint32_t *flags) {
    if (__builtin_expect(__atomic_load_n(&st->header.faults_armed, __ATOMIC_RELAXED) == 0, 1)) {
        return 0;
    }
    for (int i = 0; i < SOFTGPU_MAX_FAULTS; i++) {
        struct softgpu_fault *f = &st->faults[i];
        if (__atomic_load_n(&f->armed, __ATOMIC_ACQUIRE) == 0 || !matches(f, call)) {
            continue;
        }
        /* Read first: a fault that is spent may be another's at once. */
        uint32_t result = f->result;
        uint64_t delay_ns = f->delay_ns;
        *flags = f->flags;
        if (!strikes(st, f)) {
            continue;
        }
        __atomic_add_fetch(&f->hits, 1, __ATOMIC_RELAXED);
        suffer(delay_ns, *flags);
        if (result != 0) {
            return result;
        }
    }
    return 0;
}
