/* What a thread of the program knows about itself. */
#ifndef HEDDLE_THREAD_H
#define HEDDLE_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "client.h"

struct heddle_stream;

/*
 * A thread's launches are counted in its own memory, and now and then told in the segment: whenever the
 * thread waits for its work, when it ends, and after so many launches.
 * So the count begins this far below the end of the positive numbers, and the launch that takes it
 * beyond takes the slow path, as one of a thread that has no counter: below zero means either.
 */
#define HEDDLE_THREAD_LAP 4096
#define HEDDLE_THREAD_START (INT64_MAX - HEDDLE_THREAD_LAP + 1)

struct heddle_thread {
    int64_t count;  /* one more for each launch, by the trampolines; negative: see above */
    uint64_t *own;  /* where it is told; NULL: in the last counter, which is shared */
    bool fast;      /* the count counts; else it is negative for good */
    uint32_t depth; /* above 0: inside a call of the driver that we made */
    bool registered;
    bool device_known; /* device holds the slot of the current context */
    int32_t device;
    uint64_t stream_key; /* the stream of the last launch and its entry */
    struct heddle_stream *stream;
    uint32_t unmeasured; /* launches since the last one that was measured */
};

/* The TLS model is a compiler flag: initial-exec, but for C libraries that cannot load that late. */
extern __thread struct heddle_thread heddle_thread;

/* From now on threads get no fast path: launches may be nested. */
void heddle_thread_careful(void);

/* Counts a launch whose trampoline found no counter, or the end of one. */
void heddle_thread_count(void);

/* Whether the trampoline counted the launch that has come here. */
static inline bool heddle_thread_counted(void) {
    return heddle_thread.count >= 0;
}

/* Takes back what the trampoline counted. */
static inline void heddle_thread_uncount(void) {
    if (heddle_thread.fast) {
        heddle_thread.count = (int64_t)((uint64_t)heddle_thread.count - 1U);
    }
}

/* Tells what was counted. */
static inline void heddle_thread_tell(void) {
    struct heddle_thread *self = &heddle_thread;
    const uint64_t more = (uint64_t)self->count - (uint64_t)HEDDLE_THREAD_START;

    if (!self->fast || more == 0) {
        return;
    }
    self->count = HEDDLE_THREAD_START;
    if (self->own != NULL) {
        heddle_store_relaxed64(self->own, heddle_load_relaxed64(self->own) + more);
    } else {
        heddle_add_seq_cst64(&heddle_client()->threads[HEDDLE_THREADS_MAX - 1].launches, more);
    }
}

/* In the child of a fork: only the calling thread is left, and it starts afresh. */
void heddle_thread_reset(void);

#endif /* HEDDLE_THREAD_H */
