#include "thread.h"

#include <pthread.h>
#include <string.h>

#include "stream.h"

enum { SHARED = HEDDLE_THREADS_MAX - 1 };

__thread struct heddle_thread heddle_thread = {.count = INT64_MIN};

static uint64_t taken; /* bit n: counter n has an owner; the last counter is nobody's */
static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static bool key_made;
#ifdef HEDDLE_NO_FAST_PATH
static uint32_t careful = 1; /* the trampolines count nothing */
#else
static uint32_t careful;
#endif

/* A counter goes on where its last owner stopped: the daemon reads sums. The last one is nobody's. */
static void leave(void *value) {
    const uint64_t bit = (uint64_t)1 << ((uintptr_t)value - 1);

    heddle_stream_forget_thread();
    heddle_thread_tell();
    heddle_thread.count = INT64_MIN;
    heddle_thread.fast = false;
    heddle_thread.own = NULL;
    heddle_thread.registered = false;
    __atomic_and_fetch(&taken, ~bit, __ATOMIC_SEQ_CST);
}

static void make_key(void) {
    key_made = pthread_key_create(&key, leave) == 0;
}

static int free_slot(void) {
    uint64_t old = __atomic_load_n(&taken, __ATOMIC_RELAXED);
    int slot = 0;

    do {
        slot = ~old == 0 ? SHARED : __builtin_ctzll(~old);
        if (slot >= SHARED) {
            return SHARED;
        }
    } while (!heddle_cas_seq_cst64(&taken, &old, old | (uint64_t)1 << slot));
    return slot;
}

/* Without a key nobody would give the counter back, or tell of the thread's last launches. */
static int take(void) {
    int slot = SHARED;

    pthread_once(&key_once, make_key);
    if (key_made) {
        slot = free_slot();
        pthread_setspecific(key, (void *)((uintptr_t)slot + 1));
    }
    return slot;
}

void heddle_thread_careful(void) {
    heddle_store_relaxed32(&careful, 1);
}

static void enter(struct heddle_thread *self) {
    const int slot = take();

    self->registered = true;
    self->own = slot == SHARED ? NULL : &heddle_client()->threads[slot].launches;
    if (key_made && heddle_load_relaxed32(&careful) == 0) {
        self->count = HEDDLE_THREAD_START;
        self->fast = true;
    }
}

void heddle_thread_count(void) {
    struct heddle_thread *self = &heddle_thread;

    if (!self->registered) {
        enter(self);
        self->count += self->fast ? 1 : 0;
    }
    if (self->fast) {
        heddle_thread_tell();
    } else if (self->own == NULL) {
        heddle_add_seq_cst64(&heddle_client()->threads[SHARED].launches, 1);
    } else {
        heddle_store_relaxed64(self->own, heddle_load_relaxed64(self->own) + 1);
    }
}

void heddle_thread_reset(void) {
    taken = 0;
    memset(&heddle_thread, 0, sizeof(heddle_thread));
    heddle_thread.count = INT64_MIN;
    if (key_made) {
        pthread_setspecific(key, NULL);
    }
}
