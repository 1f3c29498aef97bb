/* What a thread of the program knows about itself. */
#ifndef HEDDLE_THREAD_H
#define HEDDLE_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "client.h"

struct heddle_stream;

struct heddle_thread {
    uint64_t *counter; /* for the trampolines; NULL: they count nothing here, or not yet */
    uint64_t *own;     /* the same, for the slow path; NULL: shares the last counter */
    uint32_t depth;    /* above 0: inside a call of the driver that we made */
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

/* Counts a launch that its trampoline did not count, giving the thread a counter if it has none. */
void heddle_thread_count(void);

/* Takes back what the trampoline counted. */
void heddle_thread_uncount(void);

/* In the child of a fork: only the calling thread is left, and it starts afresh. */
void heddle_thread_reset(void);

#endif /* HEDDLE_THREAD_H */
