#include "measure.h"

#include <pthread.h>
#include <string.h>

#include "capture.h"
#include "client.h"
#include "clock.h"
#include "device.h"
#include "driver.h"
#include "resolve.h"
#include "stream.h"
#include "symbols.h"
#include "tell.h"
#include "thread.h"
#include "trace.h"

/*
 * As many launches as can be measured at once; more go unmeasured. So that it is not those every time
 * that a program launches last before it waits, all are measured only up to FREELY at once, then one in
 * THIN of them, and from SPARINGLY on one in THIN of those.
 */
enum { PAIRS = 32, FREELY = 16, SPARINGLY = 24, THIN = 8 };

typedef heddle_result (*event_create)(void **, unsigned);
typedef heddle_result (*event_record)(void *, void *);
typedef heddle_result (*event_call)(void *);
typedef heddle_result (*event_elapsed)(float *, void *, void *);

enum state { FREE, OPEN, AWAITED };

struct pair {
    enum state state;
    void *start;
    void *end;
    void *context;
    uint64_t begun_ns; /* when the start was recorded on an idle stream, 0 = it was not idle */
    struct heddle_sample_record sample;
    uint64_t lead_ns;  /* duration: part of the time between the events before the launch */
    uint64_t began_ns; /* when the driver was called, 0 = not told for a timeline */
    uint32_t stream;
};

static struct pair pairs[PAIRS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards pairs */
static uint32_t awaited;
static uint32_t dice = 1; /* guarded by lock */

static bool elapsed(const struct pair *pair, uint64_t *ns) {
    float ms = 0;
    const heddle_result result =
        heddle_resolve_has(HEDDLE_SYM_cuEventElapsedTime_v2)
            ? HEDDLE_DRIVER(event_elapsed, cuEventElapsedTime_v2)(&ms, pair->start, pair->end)
            : HEDDLE_DRIVER(event_elapsed, cuEventElapsedTime)(&ms, pair->start, pair->end);

    if (result != HEDDLE_CUDA_SUCCESS || !(ms >= 0) || ms > 1e9F) {
        return false;
    }
    *ns = (uint64_t)((double)ms * 1e6);
    return true;
}

/*
 * The lead is too long if the thread lost its processor behind the launch. Where it is much of the
 * time it is not believed: the kernel then counts as longer, rather than as much too short.
 */
static uint64_t surely(uint64_t ns, uint64_t lead_ns) {
    return lead_ns <= ns / 4 ? ns - lead_ns : ns;
}

static void finish(struct pair *pair, bool tell) {
    struct heddle_sample_record *sample = &pair->sample;
    uint64_t ns = 0;

    if (tell && elapsed(pair, &ns)) {
        sample->device_ns = ns > pair->lead_ns ? ns - pair->lead_ns : 0;
        heddle_add_seq_cst64(&heddle_client()->devices[sample->device_slot].device_ns,
                             sample->device_ns);
        heddle_kernel_took(sample->kernel, surely(ns, pair->lead_ns));
        if (sample->kernel != 0) {
            heddle_tell_sample(sample);
        }
        if (pair->began_ns != 0 && heddle_trace_wanted() != 0) {
            heddle_trace_device(sample, pair->began_ns, pair->stream);
        }
    }
    pair->state = FREE;
    heddle_store_relaxed32(&awaited, awaited - 1);
}

static void collect(void) {
    int mode = 0;

    if (awaited == 0) {
        return;
    }
    mode = heddle_capture_exchange(HEDDLE_CAPTURE_MODE_RELAXED);
    for (uint32_t i = 0; i < PAIRS; i++) {
        if (pairs[i].state == AWAITED) {
            const heddle_result result = HEDDLE_DRIVER(event_call, cuEventQuery)(pairs[i].end);

            if (result != HEDDLE_CUDA_NOT_READY) {
                finish(&pairs[i], result == HEDDLE_CUDA_SUCCESS);
            }
        }
    }
    (void)heddle_capture_exchange(mode);
}

void heddle_measure_collect(void) {
    if (heddle_load_relaxed32(&awaited) != 0 && pthread_mutex_trylock(&lock) == 0) {
        collect();
        pthread_mutex_unlock(&lock);
    }
}

static void destroy(void **event) {
    if (*event != NULL) {
        (void)HEDDLE_DRIVER(event_call, cuEventDestroy_v2)(*event);
        *event = NULL;
    }
}

/* Events belong to one context; a pair gets others if the program moved on to another. */
static bool prepare(struct pair *pair, void *context) {
    if (pair->end != NULL && pair->context == context) {
        return true;
    }
    destroy(&pair->start);
    destroy(&pair->end);
    pair->context = context;
    return HEDDLE_DRIVER(event_create, cuEventCreate)(&pair->start, 0) == HEDDLE_CUDA_SUCCESS &&
           HEDDLE_DRIVER(event_create, cuEventCreate)(&pair->end, 0) == HEDDLE_CUDA_SUCCESS;
}

static bool record(void *event, const struct heddle_launch *launch) {
    const heddle_result result =
        launch->per_thread ? HEDDLE_DRIVER(event_record, cuEventRecord_ptsz)(event, launch->handle)
                           : HEDDLE_DRIVER(event_record, cuEventRecord)(event, launch->handle);

    return result == HEDDLE_CUDA_SUCCESS;
}

/* On an idle stream the start is in the past before the launch arrives. */
static bool idle(const struct heddle_launch *launch) {
    return (launch->per_thread
                ? HEDDLE_DRIVER(event_call, cuStreamQuery_ptsz)(launch->handle)
                : HEDDLE_DRIVER(event_call, cuStreamQuery)(launch->handle)) == HEDDLE_CUDA_SUCCESS;
}

/* By chance (xorshift), because a count could be in step with the program. */
static bool one_in(uint32_t so_many) {
    dice ^= dice << 13;
    dice ^= dice >> 17;
    dice ^= dice << 5;
    return dice % so_many == 0;
}

/* Whether a launch is worth one of the pairs that are left. One of a kernel of which little is known is. */
static bool worth(uint64_t kernel) {
    if (awaited < FREELY || heddle_kernel_unproven(kernel)) {
        return true;
    }
    return one_in(awaited < SPARINGLY ? THIN : THIN * THIN);
}

static void describe(struct pair *pair, const struct heddle_launch *launch,
                     const struct heddle_shape *shape, uint64_t kernel) {
    const struct heddle_shape before = heddle_stream_before(launch->stream);

    pair->sample = (struct heddle_sample_record){
        .kernel = kernel,
        .previous = heddle_kernel_key(&before),
        .device_slot = (uint32_t)launch->device,
        .flags = HEDDLE_SAMPLE_MEASURED | (launch->graph ? (uint32_t)HEDDLE_SAMPLE_GRAPH : 0)};
    heddle_kernel_measured(pair->sample.kernel, shape);
}

static void begin(struct heddle_launch *launch, const struct heddle_shape *shape, uint64_t kernel,
                  uint32_t at) {
    void *context = heddle_device_context();
    struct pair *pair = &pairs[at];
    const int mode = heddle_capture_exchange(HEDDLE_CAPTURE_MODE_RELAXED);

    describe(pair, launch, shape, kernel);
    if (prepare(pair, context)) {
        const bool was_idle = idle(launch);

        if (record(pair->start, launch)) {
            pair->state = OPEN;
            pair->sample.time_ns = heddle_clock_now();
            pair->begun_ns = was_idle ? pair->sample.time_ns : 0;
            launch->pair = at + 1;
        }
    }
    (void)heddle_capture_exchange(mode);
}

void heddle_measure_begin(struct heddle_launch *launch, const struct heddle_shape *shape) {
    uint32_t at = 0;

    if (pthread_mutex_trylock(&lock) != 0) {
        return;
    }
    collect();
    while (at < PAIRS && pairs[at].state != FREE) {
        at++;
    }
    if (at < PAIRS) {
        const uint64_t kernel = heddle_kernel_key(shape);

        if (worth(kernel)) {
            begin(launch, shape, kernel, at);
        }
    }
    pthread_mutex_unlock(&lock);
}

void heddle_measure_end(const struct heddle_launch *launch, int result) {
    struct pair *pair = &pairs[launch->pair - 1];
    const uint64_t now = heddle_clock_now();
    int mode = 0;

    pthread_mutex_lock(&lock);
    if (pair->state == OPEN) { /* else its context was lost meanwhile */
        mode = heddle_capture_exchange(HEDDLE_CAPTURE_MODE_RELAXED);
        pair->state = FREE;
        if (result == HEDDLE_CUDA_SUCCESS && record(pair->end, launch)) {
            pair->lead_ns = pair->begun_ns != 0 && now > pair->begun_ns ? now - pair->begun_ns : 0;
            pair->began_ns = launch->began_ns;
            pair->stream = heddle_stream_number(launch->stream);
            pair->state = AWAITED;
            heddle_store_relaxed32(&awaited, awaited + 1);
        }
        (void)heddle_capture_exchange(mode);
    }
    pthread_mutex_unlock(&lock);
}

void heddle_measure_forget_context(const void *context) {
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < PAIRS; i++) {
        if (pairs[i].context == context) {
            if (pairs[i].state == AWAITED) {
                heddle_store_relaxed32(&awaited, awaited - 1);
            }
            pairs[i] = (struct pair){.state = FREE};
        }
    }
    pthread_mutex_unlock(&lock);
}

void heddle_measure_reset(void) {
    pthread_mutex_init(&lock, NULL);
    memset(pairs, 0, sizeof(pairs));
    awaited = 0;
}
