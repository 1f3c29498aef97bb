#include "stream.h"

#include <pthread.h>
#include <string.h>

#include "busy.h"
#include "device.h"
#include "driver.h"
#include "heddle/atomic.h"
#include "symbols.h"
#include "thread.h"

enum {
    ENTRIES = 4096,
    PROBES = 16, /* a stream stands at most this far from its place, so a miss is cheap */
    IDLE = HEDDLE_STREAM_IDLE,
    CLEAN = HEDDLE_STREAM_CLEAN,
    DIRTY = HEDDLE_STREAM_DIRTY,
    STATE_BITS = 2,
    STATE_MASK = HEDDLE_STREAM_STATES,
};

static const uint64_t tomb = UINT64_MAX;

typedef heddle_result (*get_flags)(void *, unsigned *);

static struct heddle_stream table[ENTRIES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards adding and removing keys */
static uint64_t sequence;
static uint32_t tracked; /* entries ever added */
static uint32_t highest; /* entries above this were never used */

static uint32_t place(uint64_t key) {
    return (uint32_t)((key * 0x9e3779b97f4a7c15U) >> 52);
}

/*
 * Handles are addresses, so odd keys are free for the default streams: the legacy one of a device,
 * and the one that a thread has for itself.
 */
uint64_t heddle_stream_key(void *stream, bool per_thread, uint32_t device) {
    const uintptr_t handle = (uintptr_t)stream;

    if (handle == HEDDLE_STREAM_PER_THREAD || (handle == 0 && per_thread)) {
        return ((uint64_t)(uintptr_t)&heddle_thread << 8) | (uint64_t)device << 1 | 1U;
    }
    if (handle == 0 || handle == HEDDLE_STREAM_LEGACY) {
        return (uint64_t)device << 1 | 1U;
    }
    return (uint64_t)handle;
}

struct heddle_stream *heddle_stream_find(uint64_t key) {
    const uint32_t start = place(key);

    for (uint32_t i = 0; i < PROBES; i++) {
        struct heddle_stream *entry = &table[(start + i) % ENTRIES];
        const uint64_t found = heddle_load_acquire64(&entry->key);

        if (found == key) {
            return entry;
        }
        if (found == 0) {
            return NULL;
        }
    }
    return NULL;
}

static bool is_blocking(void *stream, bool per_thread) {
    unsigned flags = 0;

    if (per_thread || (uintptr_t)stream <= HEDDLE_STREAM_PER_THREAD) {
        return true;
    }
    return HEDDLE_DRIVER(get_flags, cuStreamGetFlags)(stream, &flags) == HEDDLE_CUDA_SUCCESS &&
           (flags & HEDDLE_STREAM_NON_BLOCKING) == 0;
}

static struct heddle_stream *add(uint64_t key, uint32_t device, void *context, bool blocking) {
    const uint32_t start = place(key);
    struct heddle_stream *entry = NULL;

    for (uint32_t i = 0; i < PROBES && entry == NULL; i++) {
        struct heddle_stream *candidate = &table[(start + i) % ENTRIES];

        if (candidate->key == 0 || candidate->key == tomb) {
            entry = candidate;
        }
    }
    if (entry == NULL) {
        return NULL;
    }
    entry->context = context;
    entry->device = device;
    entry->blocking = blocking;
    heddle_store_relaxed64(&entry->last[0].function, 0);
    heddle_store_relaxed64(&entry->last[1].function, 0);
    heddle_store_release64(&entry->word, heddle_add_seq_cst64(&sequence, 1) << STATE_BITS);
    heddle_store_release64(&entry->key, key);
    heddle_store_release32(&tracked, tracked + 1);
    if (heddle_stream_number(entry) >= highest) {
        heddle_store_release32(&highest, heddle_stream_number(entry) + 1);
    }
    return entry;
}

static __attribute__((noinline)) struct heddle_stream *look_up(uint64_t key, void *stream,
                                                               bool per_thread, uint32_t device) {
    struct heddle_stream *entry = heddle_stream_find(key);

    if (entry == NULL) {
        const bool blocking = is_blocking(stream, per_thread);
        void *context = heddle_device_context();

        pthread_mutex_lock(&lock);
        entry = heddle_stream_find(key);
        if (entry == NULL) {
            entry = add(key, device, context, blocking);
        }
        pthread_mutex_unlock(&lock);
    }
    heddle_thread.stream = entry;
    heddle_thread.stream_key = key;
    return entry;
}

struct heddle_stream *heddle_stream_obtain(void *stream, bool per_thread, uint32_t device) {
    const uint64_t key = heddle_stream_key(stream, per_thread, device);
    struct heddle_stream *last = heddle_thread.stream;

    if (last != NULL && heddle_thread.stream_key == key &&
        heddle_load_relaxed64(&last->key) == key) {
        return last;
    }
    return look_up(key, stream, per_thread, device);
}

void heddle_stream_soil(struct heddle_stream *entry) {
    uint64_t word = heddle_load_acquire64(&entry->word);

    while ((word & STATE_MASK) != DIRTY) {
        if (heddle_cas_seq_cst64(&entry->word, &word, (word & ~(uint64_t)STATE_MASK) | DIRTY)) {
            if ((word & STATE_MASK) == IDLE) {
                heddle_busy_begin(entry->device);
            }
            return;
        }
    }
}

static uint64_t mark_as(struct heddle_stream *entry, uint64_t number) {
    const uint64_t clean = number << STATE_BITS | CLEAN;
    uint64_t word = heddle_load_acquire64(&entry->word);

    while ((word & STATE_MASK) == DIRTY) {
        if (heddle_cas_seq_cst64(&entry->word, &word, clean)) {
            return clean;
        }
    }
    return (word & STATE_MASK) == CLEAN ? word : 0;
}

uint64_t heddle_stream_mark(struct heddle_stream *entry) {
    if ((heddle_load_acquire64(&entry->word) & STATE_MASK) == IDLE) {
        return 0;
    }
    return mark_as(entry, heddle_add_seq_cst64(&sequence, 1));
}

void heddle_stream_settle(struct heddle_stream *entry, uint64_t mark) {
    if (mark != 0 && heddle_cas_seq_cst64(&entry->word, &mark, mark & ~(uint64_t)STATE_MASK)) {
        heddle_busy_end(entry->device, entry);
    }
}

static bool concerned(const struct heddle_stream *entry, const void *context, bool blocking_only) {
    const uint64_t key = heddle_load_acquire64(&entry->key);

    return key != 0 && key != tomb && entry->context == context &&
           (!blocking_only || entry->blocking);
}

uint64_t heddle_stream_mark_all(const void *context, bool blocking_only) {
    const uint64_t number = heddle_add_seq_cst64(&sequence, 1);
    const uint32_t end = heddle_load_acquire32(&highest);

    for (uint32_t i = 0; i < end; i++) {
        if (concerned(&table[i], context, blocking_only)) {
            (void)mark_as(&table[i], number);
        }
    }
    return number;
}

/* A sequence up to ours was given before our wait began, so the wait covers it. */
void heddle_stream_settle_all(const void *context, bool blocking_only, uint64_t mark) {
    const uint32_t end = heddle_load_acquire32(&highest);

    for (uint32_t i = 0; i < end; i++) {
        const uint64_t word = heddle_load_acquire64(&table[i].word);

        if ((word & STATE_MASK) == CLEAN && word >> STATE_BITS <= mark &&
            concerned(&table[i], context, blocking_only)) {
            heddle_stream_settle(&table[i], word);
        }
    }
}

static void drop(struct heddle_stream *entry) {
    const uint64_t word =
        heddle_swap_seq_cst64(&entry->word, heddle_add_seq_cst64(&sequence, 1) << STATE_BITS);

    if ((word & STATE_MASK) != IDLE) {
        heddle_busy_end(entry->device, NULL);
    }
    heddle_store_release64(&entry->key, tomb);
}

void heddle_stream_forget(uint64_t key) {
    struct heddle_stream *entry = NULL;

    pthread_mutex_lock(&lock);
    entry = heddle_stream_find(key);
    if (entry != NULL) {
        drop(entry);
    }
    pthread_mutex_unlock(&lock);
}

void heddle_stream_forget_context(const void *context) {
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < highest; i++) {
        if (concerned(&table[i], context, false)) {
            drop(&table[i]);
        }
    }
    pthread_mutex_unlock(&lock);
}

void heddle_stream_forget_thread(void) {
    for (uint32_t device = 0; device < heddle_device_count(); device++) {
        heddle_stream_forget(heddle_stream_key(NULL, true, device));
    }
}

void heddle_stream_forget_launches(void) {
    const uint32_t end = heddle_load_acquire32(&highest);

    for (uint32_t i = 0; i < end; i++) {
        heddle_store_relaxed64(&table[i].last[0].function, 0);
        heddle_store_relaxed64(&table[i].last[1].function, 0);
    }
}

bool heddle_stream_any(void) {
    return heddle_load_acquire32(&tracked) != 0;
}

uint32_t heddle_stream_number(const struct heddle_stream *entry) {
    return (uint32_t)(entry - table);
}

struct heddle_stream *heddle_stream_at(uint32_t number) {
    return &table[number % ENTRIES];
}

void heddle_stream_reset(void) {
    pthread_mutex_init(&lock, NULL);
    memset(table, 0, sizeof(table));
    tracked = 0;
    highest = 0;
}
