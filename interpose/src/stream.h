/*
 * Which streams have outstanding work, without asking the driver.
 *
 * Each stream that launched has a word: a sequence and a state, idle, clean or dirty. A launch makes
 * it dirty. Whoever is about to wait for the stream first makes it clean under a new sequence; if it
 * is still clean under that sequence when the wait has ended, nothing came in between, and the
 * stream is idle.
 */
#ifndef HEDDLE_STREAM_H
#define HEDDLE_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel.h"

struct heddle_stream {
    uint64_t key; /* 0 = free, HEDDLE_STREAM_TOMB = was used */
    uint64_t word;
    void *context;
    uint32_t device;
    bool blocking; /* ordered with the legacy default stream */
    uint32_t capturing;
    uint32_t turn;               /* which of the two is the newer */
    struct heddle_shape last[2]; /* the last two launches */
};

/* Per launch, and so a few stores and no more: what they mean is found out when it is asked. */
static inline void heddle_stream_remember(struct heddle_stream *entry,
                                          const struct heddle_shape *shape) {
    const uint32_t turn = heddle_load_relaxed32(&entry->turn) ^ 1U;

    heddle_shape_store(&entry->last[turn & 1U], shape);
    heddle_store_relaxed32(&entry->turn, turn);
}

/* The last launch on a stream, and the one before it. */
static inline struct heddle_shape heddle_stream_last(const struct heddle_stream *entry) {
    return heddle_shape_load(&entry->last[heddle_load_relaxed32(&entry->turn) & 1U]);
}

static inline struct heddle_shape heddle_stream_before(const struct heddle_stream *entry) {
    return heddle_shape_load(&entry->last[~heddle_load_relaxed32(&entry->turn) & 1U]);
}

/* Functions go away: what was launched is not known any more. */
void heddle_stream_forget_launches(void);

/* A handle as given by the program, and whether it came through a per-thread export. */
uint64_t heddle_stream_key(void *stream, bool per_thread, uint32_t device);

/* The entry of a stream; find returns NULL if it never launched, obtain if the table is full. */
struct heddle_stream *heddle_stream_find(uint64_t key);
struct heddle_stream *heddle_stream_obtain(void *stream, bool per_thread, uint32_t device);

enum heddle_stream_states {
    HEDDLE_STREAM_IDLE = 0,
    HEDDLE_STREAM_CLEAN = 1,
    HEDDLE_STREAM_DIRTY = 2,
    HEDDLE_STREAM_STATES = 3, /* a mask */
};

/* Makes a stream dirty that is not. */
void heddle_stream_soil(struct heddle_stream *entry);

/* Before a launch, and again after it, since a wait that began in between proves nothing. */
static inline void heddle_stream_dirty(struct heddle_stream *entry) {
    if ((heddle_load_acquire64(&entry->word) & HEDDLE_STREAM_STATES) != HEDDLE_STREAM_DIRTY) {
        heddle_stream_soil(entry);
    }
}

/* Before a wait; the mark is 0 if nothing is outstanding. */
uint64_t heddle_stream_mark(struct heddle_stream *entry);
/* After it. */
void heddle_stream_settle(struct heddle_stream *entry, uint64_t mark);

/* The same for every stream of a context, or only for those ordered with its legacy stream. */
uint64_t heddle_stream_mark_all(const void *context, bool blocking_only);
void heddle_stream_settle_all(const void *context, bool blocking_only, uint64_t mark);

/* A destroyed stream or context, a thread that ends, a context that is lost. */
void heddle_stream_forget(uint64_t key);
void heddle_stream_forget_context(const void *context);
void heddle_stream_forget_thread(void);

/* Whether any stream was ever tracked: if not, waits have nothing to tell. */
bool heddle_stream_any(void);

uint32_t heddle_stream_number(const struct heddle_stream *entry);
struct heddle_stream *heddle_stream_at(uint32_t number);
void heddle_stream_reset(void);

#endif /* HEDDLE_STREAM_H */
