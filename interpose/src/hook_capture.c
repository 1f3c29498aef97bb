/*
 * Captures: while one is open, nothing of ours may touch a stream, and no launch of the process
 * waits. Other streams join a capture through events, so the driver is asked about each stream; that
 * question is allowed at any time, and put only while a capture is open.
 */
#include "capture.h"

#include <pthread.h>
#include <stddef.h>

#include "driver.h"
#include "heddle/atomic.h"
#include "symbols.h"

enum { OPEN_MAX = 256 };

typedef heddle_result (*is_capturing)(void *, int *);
typedef heddle_result (*exchange_mode)(int *);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards streams */
static void
    *streams[OPEN_MAX]; /* where captures began; the first heddle_capture_count are in use */
uint32_t heddle_capture_count;

bool heddle_capture_asks(void *stream, bool per_thread) {
    int status = HEDDLE_CAPTURE_NONE;
    const heddle_result result =
        per_thread ? HEDDLE_DRIVER(is_capturing, cuStreamIsCapturing_ptsz)(stream, &status)
                   : HEDDLE_DRIVER(is_capturing, cuStreamIsCapturing)(stream, &status);
    return result != HEDDLE_CUDA_SUCCESS || status != HEDDLE_CAPTURE_NONE;
}

int heddle_capture_exchange(int mode) {
    (void)HEDDLE_DRIVER(exchange_mode, cuThreadExchangeStreamCaptureMode)(&mode);
    return mode;
}

static heddle_result begun(void *stream, heddle_result result) {
    if (result == HEDDLE_CUDA_SUCCESS) {
        pthread_mutex_lock(&lock);
        if (heddle_capture_count < OPEN_MAX) {
            streams[heddle_capture_count] = stream;
            heddle_store_release32(&heddle_capture_count, heddle_capture_count + 1);
        }
        pthread_mutex_unlock(&lock);
    }
    return result;
}

/* Also after an error: ending an invalidated capture fails, and ends it. */
void heddle_capture_forget(void *stream) {
    if (!heddle_capture_open()) {
        return;
    }
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < heddle_capture_count; i++) {
        if (streams[i] == stream) {
            streams[i] = streams[heddle_capture_count - 1];
            heddle_store_release32(&heddle_capture_count, heddle_capture_count - 1);
            break;
        }
    }
    pthread_mutex_unlock(&lock);
}

void heddle_capture_reset(void) {
    pthread_mutex_init(&lock, NULL);
    heddle_capture_count = 0;
}

#define HEDDLE_HOOK_BEGIN_V1(name)                                                                 \
    HEDDLE_HOOK(name, (void *stream)) {                                                            \
        return begun(stream, HEDDLE_REAL(name)(stream));                                           \
    }

#define HEDDLE_HOOK_BEGIN_V2(name)                                                                 \
    HEDDLE_HOOK(name, (void *stream, int mode)) {                                                  \
        return begun(stream, HEDDLE_REAL(name)(stream, mode));                                     \
    }

#define HEDDLE_HOOK_BEGIN_TO_GRAPH(name)                                                           \
    HEDDLE_HOOK(name, (void *stream, void *graph, const void *dependencies, const void *edges,     \
                       size_t count, int mode)) {                                                  \
        return begun(stream, HEDDLE_REAL(name)(stream, graph, dependencies, edges, count, mode));  \
    }

/* Arguments after the stream that we need not know are handed on as the registers hold them. */
#define HEDDLE_HOOK_BEGIN_OTHER(name)                                                              \
    HEDDLE_HOOK(name, (void *stream, void *a, void *b, void *c, void *d, void *e)) {               \
        return begun(stream, HEDDLE_REAL(name)(stream, a, b, c, d, e));                            \
    }

#define HEDDLE_HOOK_END(name)                                                                      \
    HEDDLE_HOOK(name, (void *stream, void **graph)) {                                              \
        const heddle_result result = HEDDLE_REAL(name)(stream, graph);                             \
        heddle_capture_forget(stream);                                                             \
        return result;                                                                             \
    }

HEDDLE_HOOK_BEGIN_V1(cuStreamBeginCapture)
HEDDLE_HOOK_BEGIN_V1(cuStreamBeginCapture_ptsz)
HEDDLE_HOOK_BEGIN_V2(cuStreamBeginCapture_v2)
HEDDLE_HOOK_BEGIN_V2(cuStreamBeginCapture_v2_ptsz)
HEDDLE_HOOK_BEGIN_TO_GRAPH(cuStreamBeginCaptureToGraph)
HEDDLE_HOOK_BEGIN_TO_GRAPH(cuStreamBeginCaptureToGraph_ptsz)
HEDDLE_HOOK_BEGIN_OTHER(cuStreamBeginCaptureToCig)
HEDDLE_HOOK_BEGIN_OTHER(cuStreamBeginRecaptureToGraph)
HEDDLE_HOOK_BEGIN_OTHER(cuStreamBeginRecaptureToGraph_ptsz)
HEDDLE_HOOK_END(cuStreamEndCapture)
HEDDLE_HOOK_END(cuStreamEndCapture_ptsz)

HEDDLE_HOOK(cuStreamEndCaptureToCig, (void *stream)) {
    const heddle_result result = HEDDLE_REAL(cuStreamEndCaptureToCig)(stream);

    heddle_capture_forget(stream);
    return result;
}
