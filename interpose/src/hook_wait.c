/* Calls that tell when work is complete: they are made anyway, so knowing costs nothing. */
#include <stddef.h>

#include "driver.h"
#include "event.h"
#include "settle.h"
#include "symbols.h"

#define HEDDLE_HOOK_STREAM_WAIT(name, per_thread)                                                  \
    HEDDLE_HOOK(name, (void *stream)) {                                                            \
        struct heddle_settle settle;                                                               \
        heddle_settle_stream(&settle, stream, per_thread);                                         \
        return heddle_settle_end(&settle, HEDDLE_REAL(name)(stream));                              \
    }

HEDDLE_HOOK_STREAM_WAIT(cuStreamSynchronize, false)
HEDDLE_HOOK_STREAM_WAIT(cuStreamSynchronize_ptsz, true)
HEDDLE_HOOK_STREAM_WAIT(cuStreamQuery, false)
HEDDLE_HOOK_STREAM_WAIT(cuStreamQuery_ptsz, true)

HEDDLE_HOOK(cuCtxSynchronize, (void)) {
    struct heddle_settle settle;

    heddle_settle_context(&settle, NULL);
    return heddle_settle_end(&settle, HEDDLE_REAL(cuCtxSynchronize)());
}

HEDDLE_HOOK(cuCtxSynchronize_v2, (void *context)) {
    struct heddle_settle settle;

    heddle_settle_context(&settle, context);
    return heddle_settle_end(&settle, HEDDLE_REAL(cuCtxSynchronize_v2)(context));
}

#define HEDDLE_HOOK_EVENT_WAIT(name)                                                               \
    HEDDLE_HOOK(name, (void *event)) {                                                             \
        struct heddle_settle settle;                                                               \
        heddle_event_get(event, &settle);                                                          \
        return heddle_settle_end(&settle, HEDDLE_REAL(name)(event));                               \
    }

HEDDLE_HOOK_EVENT_WAIT(cuEventSynchronize)
HEDDLE_HOOK_EVENT_WAIT(cuEventQuery)

#define HEDDLE_HOOK_RECORD(name, per_thread)                                                       \
    HEDDLE_HOOK(name, (void *event, void *stream)) {                                               \
        struct heddle_settle settle;                                                               \
        heddle_result result = 0;                                                                  \
        heddle_settle_stream(&settle, stream, per_thread);                                         \
        heddle_event_forget(event);                                                                \
        result = HEDDLE_REAL(name)(event, stream);                                                 \
        if (result == HEDDLE_CUDA_SUCCESS) {                                                       \
            heddle_event_set(event, &settle);                                                      \
        }                                                                                          \
        return result;                                                                             \
    }

#define HEDDLE_HOOK_RECORD_FLAGS(name, per_thread)                                                 \
    HEDDLE_HOOK(name, (void *event, void *stream, unsigned flags)) {                               \
        struct heddle_settle settle;                                                               \
        heddle_result result = 0;                                                                  \
        heddle_settle_stream(&settle, stream, per_thread);                                         \
        heddle_event_forget(event);                                                                \
        result = HEDDLE_REAL(name)(event, stream, flags);                                          \
        if (result == HEDDLE_CUDA_SUCCESS) {                                                       \
            heddle_event_set(event, &settle);                                                      \
        }                                                                                          \
        return result;                                                                             \
    }

HEDDLE_HOOK_RECORD(cuEventRecord, false)
HEDDLE_HOOK_RECORD(cuEventRecord_ptsz, true)
HEDDLE_HOOK_RECORD_FLAGS(cuEventRecordWithFlags, false)
HEDDLE_HOOK_RECORD_FLAGS(cuEventRecordWithFlags_ptsz, true)

#define HEDDLE_HOOK_EVENT_DESTROY(name)                                                            \
    HEDDLE_HOOK(name, (void *event)) {                                                             \
        heddle_event_forget(event);                                                                \
        return HEDDLE_REAL(name)(event);                                                           \
    }

HEDDLE_HOOK_EVENT_DESTROY(cuEventDestroy)
HEDDLE_HOOK_EVENT_DESTROY(cuEventDestroy_v2)

/* Synchronous copies between host and device return when what came before them is done. */
#define HEDDLE_HOOK_TO_HOST(name, per_thread)                                                      \
    HEDDLE_HOOK(name, (void *host, heddle_ptr device, size_t bytes)) {                             \
        struct heddle_settle settle;                                                               \
        heddle_settle_copy(&settle, per_thread);                                                   \
        return heddle_settle_end(&settle, HEDDLE_REAL(name)(host, device, bytes));                 \
    }

#define HEDDLE_HOOK_TO_DEVICE(name, per_thread)                                                    \
    HEDDLE_HOOK(name, (heddle_ptr device, const void *host, size_t bytes)) {                       \
        struct heddle_settle settle;                                                               \
        heddle_settle_copy(&settle, per_thread);                                                   \
        return heddle_settle_end(&settle, HEDDLE_REAL(name)(device, host, bytes));                 \
    }

HEDDLE_HOOK_TO_HOST(cuMemcpyDtoH_v2, false)
HEDDLE_HOOK_TO_HOST(cuMemcpyDtoH_v2_ptds, true)
HEDDLE_HOOK_TO_DEVICE(cuMemcpyHtoD_v2, false)
HEDDLE_HOOK_TO_DEVICE(cuMemcpyHtoD_v2_ptds, true)
