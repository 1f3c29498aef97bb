#include "hostile.h"

#include <heddle/abi.h>
#include <heddle/atomic.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    THREADS_MAX = 64,
    LINE_BYTES = 512,
    PAUSE_US = 100,
    FULL_GRID = 132 * 32, /* blocks of 32 threads that fill an H100 once */
};

static struct hostile_gpu own;
static atomic_bool stop;
static pthread_t threads[THREADS_MAX];
static size_t running;
static uint64_t flood_ns;
static atomic_uint_fast64_t launches;
static uint64_t lie_ns;
static uint64_t seed;

/* Every thread, until it stopped. */
static void end(void) {
    atomic_store(&stop, true);
    for (size_t i = 0; i < running; i++) {
        pthread_join(threads[i], NULL);
    }
    running = 0;
}

static bool begin(size_t count, void *(*run)(void *)) {
    const size_t all = running + count;

    atomic_store(&stop, false);
    while (all <= THREADS_MAX && running < all &&
           pthread_create(&threads[running], NULL, run, NULL) == 0) {
        running++;
    }
    return running == all;
}

/* The segment that the interposer shares with heddled and with other clients, writable to us. */
static struct heddle_client_segment *segment(void) {
    char line[LINE_BYTES];
    uintptr_t found = 0;
    FILE *maps = fopen("/proc/self/maps", "re");

    while (maps != NULL && found == 0 && fgets(line, sizeof line, maps) != NULL) {
        uintptr_t from = 0;
        if (strstr(line, "rw-s") != NULL && strstr(line, "memfd:heddle-client") != NULL &&
            sscanf(line, "%" SCNxPTR, &from) == 1) {
            found = from;
        }
    }
    if (maps != NULL) {
        fclose(maps);
    }
    return (struct heddle_client_segment *)found;
}

static uint64_t next_random(uint64_t *state) {
    *state = *state * 6364136223846793005U + 1442695040888963407U;
    return *state ^ *state >> 29;
}

static void scribble_words(void *from, size_t bytes, uint64_t *state) {
    uint64_t *words = from;

    for (size_t i = 0; i < bytes / sizeof *words; i++) {
        heddle_store_relaxed64(&words[i], next_random(state));
    }
}

/* All of it: no reader can take that for a segment. */
static void *scribble_all(void *unused) {
    uint64_t state = seed;

    (void)unused;
    while (!atomic_load(&stop)) {
        struct heddle_client_segment *s = segment();
        if (s != NULL) {
            scribble_words(s, sizeof *s, &state);
        }
        usleep(PAUSE_US);
    }
    return NULL;
}

/* Only what no reader can know to be wrong: times, predictions and records. */
static void *scribble_some(void *unused) {
    uint64_t state = seed;
    struct heddle_client_segment *s = segment();

    (void)unused;
    while (s != NULL && !atomic_load(&stop)) {
        struct heddle_client_device *d = &s->devices[0];

        heddle_store_relaxed32(&d->doorbell, (uint32_t)next_random(&state));
        scribble_words(&d->idle_since_ns, 5 * sizeof(uint64_t), &state);
        scribble_words(&d->held_ns, 5 * sizeof(uint64_t), &state);
        heddle_store_relaxed64(&d->device_ns, next_random(&state));
        scribble_words(s->samples, sizeof s->samples, &state);
        scribble_words(s->kernels, sizeof s->kernels, &state);
        usleep(PAUSE_US);
    }
    return NULL;
}

/* Each record of a launch says that it took lie_ns, before anybody can have read another time. */
static void *forge(void *unused) {
    struct heddle_client_segment *s = segment();

    (void)unused;
    while (s != NULL && !atomic_load(&stop)) {
        for (size_t i = 0; i < HEDDLE_SAMPLES; i++) {
            heddle_store_relaxed64(&s->samples[i].device_ns, lie_ns);
        }
    }
    return NULL;
}

/* A stream of its own, and never a wait. */
static void *flood(void *unused) {
    cu_stream stream = NULL;
    cu_pointer none = 0;
    uint64_t tag = 1;
    void *args[] = {&none, &flood_ns, &flood_ns, &tag};
    cu_result rc = own.cu->context_set(own.context);

    (void)unused;
    rc = rc != CU_OK ? rc : own.cu->stream_create(&stream, 1);
    while (rc == CU_OK && !atomic_load(&stop)) {
        rc = own.cu->launch(own.tick, FULL_GRID, 1, 1, 32, 1, 1, 0, stream, args, NULL);
        atomic_fetch_add(&launches, 1);
    }
    return NULL;
}

/* Kernels behind a value that never comes: outstanding for ever, and nothing to run. */
static void *stall(void *unused) {
    cu_stream stream = NULL;
    cu_pointer never = 0;
    uint64_t ns = 1000;
    uint64_t tag = 1;
    void *args[] = {&never, &ns, &ns, &tag};
    cu_result rc = own.cu->context_set(own.context);

    (void)unused;
    rc = rc != CU_OK ? rc : own.cu->alloc(&never, sizeof(uint64_t));
    rc = rc != CU_OK ? rc : own.cu->fill8(never, 0, sizeof(uint64_t));
    rc = rc != CU_OK ? rc : own.cu->stream_create(&stream, 1);
    rc = rc != CU_OK ? rc : own.cu->wait_value(stream, never, 1, 0);
    while (rc == CU_OK && !atomic_load(&stop)) {
        rc = own.cu->launch(own.tick, 1, 1, 1, 32, 1, 1, 0, stream, args, NULL);
        atomic_fetch_add(&launches, 1);
    }
    return NULL;
}

static void say(bool good) {
    puts(good ? "ok" : "what no thread");
}

bool hostile_command(const struct hostile_gpu *gpu, const char *name, uint64_t a, uint64_t b) {
    own = *gpu;
    if (strcmp(name, "scribble") == 0 && segment() != NULL) {
        seed = b;
        say(begin(1, a == 0 ? scribble_all : scribble_some));
    } else if (strcmp(name, "forge") == 0 && segment() != NULL) {
        lie_ns = a;
        say(begin(1, forge));
    } else if (strcmp(name, "flood") == 0 && a <= THREADS_MAX) {
        flood_ns = b;
        say(begin(a, flood));
    } else if (strcmp(name, "stall") == 0) {
        say(begin(1, stall));
    } else if (strcmp(name, "flooded") == 0) {
        printf("ok %" PRIu64 "\n", (uint64_t)atomic_load(&launches));
    } else if (strcmp(name, "peace") == 0) {
        end();
        puts("ok");
    } else {
        return false;
    }
    return true;
}
