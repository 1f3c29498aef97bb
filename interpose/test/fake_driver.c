/*
 * A driver of a few functions for the interposer's own tests: every call counts and returns success,
 * the rest of the driver's names are missing, as in a very old one. cuGetProcAddress can be told to
 * answer an address that is not exported.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "fake_driver.h"

#define EXPORT __attribute__((visibility("default")))
#define COUNT(counter) __atomic_add_fetch(&fake_calls.counter, 1, __ATOMIC_RELAXED)

EXPORT struct fake_calls fake_calls;
EXPORT struct fake_answers fake_answers;

EXPORT int cuInit(unsigned flags);
EXPORT int cuInit(unsigned flags) {
    (void)flags;
    COUNT(init);
    return 0;
}

EXPORT int cuCtxGetCurrent(void **context);
EXPORT int cuCtxGetCurrent(void **context) {
    *context = &fake_calls;
    return 0;
}

EXPORT int cuCtxGetDevice(int *device);
EXPORT int cuCtxGetDevice(int *device) {
    *device = 0;
    return 0;
}

EXPORT int cuDeviceGetUuid(void *uuid, int device);
EXPORT int cuDeviceGetUuid(void *uuid, int device) {
    memset(uuid, 0x40 + device, 16);
    return 0;
}

EXPORT int cuCtxCreate_v2(void **context, unsigned flags, int device);
EXPORT int cuCtxCreate_v2(void **context, unsigned flags, int device) {
    (void)flags;
    (void)device;
    *context = &fake_calls;
    return 0;
}

EXPORT int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                          unsigned bz, unsigned shared, void *stream, void **params, void **extra);
EXPORT int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                          unsigned bz, unsigned shared, void *stream, void **params, void **extra) {
    const uintptr_t sum = (uintptr_t)f + gx + 2 * gy + 3 * gz + 5 * bx + 7 * by + 11 * bz +
                          13 * shared + 17 * (uintptr_t)stream + 19 * (uintptr_t)params +
                          23 * (uintptr_t)extra;

    COUNT(launches);
    __atomic_store_n(&fake_calls.last_sum, sum, __ATOMIC_RELAXED);
    return fake_answers.launch;
}

EXPORT int cuGraphLaunch(void *graph, void *stream);
EXPORT int cuGraphLaunch(void *graph, void *stream) {
    (void)graph;
    (void)stream;
    COUNT(graphs);
    return 0;
}

EXPORT int cuStreamGetFlags(void *stream, unsigned *flags);
EXPORT int cuStreamGetFlags(void *stream, unsigned *flags) {
    (void)stream;
    *flags = 1;
    return 0;
}

EXPORT int cuStreamSynchronize(void *stream);
EXPORT int cuStreamSynchronize(void *stream) {
    (void)stream;
    COUNT(syncs);
    return fake_answers.sync;
}

EXPORT int cuEventCreate(void **event, unsigned flags);
EXPORT int cuEventCreate(void **event, unsigned flags) {
    static char events[256];

    (void)flags;
    *event = &events[COUNT(events_created) % sizeof(events)];
    return 0;
}

EXPORT int cuEventRecord(void *event, void *stream);
EXPORT int cuEventRecord(void *event, void *stream) {
    (void)event;
    (void)stream;
    COUNT(events_recorded);
    return 0;
}

EXPORT int cuEventQuery(void *event);
EXPORT int cuEventQuery(void *event) {
    (void)event;
    COUNT(events_queried);
    return __atomic_load_n(&fake_answers.query, __ATOMIC_RELAXED);
}

EXPORT int cuEventElapsedTime(float *ms, void *start, void *end);
EXPORT int cuEventElapsedTime(float *ms, void *start, void *end) {
    (void)start;
    (void)end;
    *ms = fake_answers.elapsed_ms;
    return 0;
}

EXPORT int cuStreamQuery(void *stream);
EXPORT int cuStreamQuery(void *stream) {
    (void)stream;
    return fake_answers.busy;
}

EXPORT int cuFuncGetName(const char **name, void *function);
EXPORT int cuFuncGetName(const char **name, void *function) {
    (void)function;
    COUNT(names_asked);
    *name = fake_answers.name;
    return *name != NULL ? 0 : 400;
}

EXPORT int cuFuncGetAttribute(int *value, int attribute, void *function);
EXPORT int cuFuncGetAttribute(int *value, int attribute, void *function) {
    (void)function;
    *value = attribute == 0 ? 1024 : 10 + attribute;
    return 0;
}

EXPORT int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function, int threads,
                                                       size_t shared);
EXPORT int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function, int threads,
                                                       size_t shared) {
    (void)function;
    (void)shared;
    *blocks = 2048 / threads;
    return 0;
}

EXPORT int cuModuleUnload(void *module);
EXPORT int cuModuleUnload(void *module) {
    (void)module;
    return 0;
}

EXPORT int cuCtxGetStreamPriorityRange(int *least, int *greatest);
EXPORT int cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    *least = 0;
    *greatest = -5;
    return 0;
}

EXPORT int cuStreamCreate(void **stream, unsigned flags);
EXPORT int cuStreamCreateWithPriority(void **stream, unsigned flags, int priority);
EXPORT int cuStreamCreateWithPriority(void **stream, unsigned flags, int priority) {
    (void)flags;
    *stream = &fake_answers;
    fake_calls.last_priority = priority;
    return 0;
}

EXPORT int cuStreamCreate(void **stream, unsigned flags) {
    return cuStreamCreateWithPriority(stream, flags, 0);
}

EXPORT int cuThreadExchangeStreamCaptureMode(int *mode);
EXPORT int cuThreadExchangeStreamCaptureMode(int *mode) {
    static __thread int now;
    const int old = now;

    now = *mode;
    *mode = old;
    return 0;
}

static int unexported(void) {
    return 77;
}

EXPORT int cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags);

EXPORT int cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags,
                               int *status);
EXPORT int cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags,
                               int *status) {
    void *answer = NULL;

    (void)version;
    (void)flags;
    if (strcmp(symbol, "cuInit") == 0) {
        answer = (void *)(uintptr_t)&cuInit;
    } else if (strcmp(symbol, "cuGetProcAddress") == 0) {
        answer = (void *)(uintptr_t)&cuGetProcAddress_v2;
    } else if (strcmp(symbol, "cuUnexported") == 0) {
        answer = (void *)(uintptr_t)&unexported;
    }
    if (status != NULL) {
        *status = answer == NULL ? 1 : 0;
    }
    *function = answer;
    return answer == NULL ? 500 : 0;
}

EXPORT int cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags) {
    return cuGetProcAddress_v2(symbol, function, version, flags, NULL);
}
