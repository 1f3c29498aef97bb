/* Contexts and streams that come and go: device slots are bound here, and what is gone is forgotten. */
#include <stddef.h>

#include "capture.h"
#include "client.h"
#include "device.h"
#include "driver.h"
#include "kernel.h"
#include "ledger.h"
#include "measure.h"
#include "resolve.h"
#include "stream.h"
#include "symbols.h"
#include "window.h"

typedef heddle_result (*get_range)(int *, int *);
typedef heddle_result (*get_state)(heddle_device, unsigned *, int *);

static heddle_result opened(heddle_device device, heddle_result result) {
    heddle_device_context_changed();
    if (result == HEDDLE_CUDA_SUCCESS) {
        (void)heddle_device_open(device);
    }
    return result;
}

static void forget_context(const void *context) {
    if (context != NULL) {
        heddle_window_forget_context(context);
        heddle_measure_forget_context(context);
        heddle_stream_forget_launches();
        heddle_kernel_forget(NULL);
        heddle_stream_forget_context(context);
        heddle_ledger_forget_context(context);
    }
    heddle_device_context_changed();
}

static heddle_result changed(heddle_result result) {
    heddle_device_context_changed();
    return result;
}

#define HEDDLE_HOOK_CREATE(name)                                                                   \
    HEDDLE_HOOK(name, (void **context, unsigned flags, heddle_device device)) {                    \
        return opened(device, HEDDLE_REAL(name)(context, flags, device));                          \
    }

HEDDLE_HOOK_CREATE(cuCtxCreate)
HEDDLE_HOOK_CREATE(cuCtxCreate_v2)
HEDDLE_HOOK_CREATE(cuGLCtxCreate)
HEDDLE_HOOK_CREATE(cuGLCtxCreate_v2)

HEDDLE_HOOK(cuCtxCreate_v3,
            (void **context, void *affinity, int count, unsigned flags, heddle_device device)) {
    return opened(device, HEDDLE_REAL(cuCtxCreate_v3)(context, affinity, count, flags, device));
}

HEDDLE_HOOK(cuCtxCreate_v4, (void **context, void *params, unsigned flags, heddle_device device)) {
    return opened(device, HEDDLE_REAL(cuCtxCreate_v4)(context, params, flags, device));
}

#define HEDDLE_HOOK_VDPAU(name)                                                                    \
    HEDDLE_HOOK(name, (void **context, unsigned flags, heddle_device device, unsigned vdp,         \
                       void *get_address)) {                                                       \
        return opened(device, HEDDLE_REAL(name)(context, flags, device, vdp, get_address));        \
    }

HEDDLE_HOOK_VDPAU(cuVDPAUCtxCreate)
HEDDLE_HOOK_VDPAU(cuVDPAUCtxCreate_v2)

HEDDLE_HOOK(cuDevicePrimaryCtxRetain, (void **context, heddle_device device)) {
    const heddle_result result = HEDDLE_REAL(cuDevicePrimaryCtxRetain)(context, device);

    if (result == HEDDLE_CUDA_SUCCESS) {
        (void)heddle_device_open(device);
        heddle_ledger_primary(device, *context);
    }
    return result;
}

/* The last release ends the primary context; a reset ends what is in it. */
static heddle_result primary_released(heddle_device device, bool reset, heddle_result result) {
    unsigned flags = 0;
    int active = 0;

    if (result == HEDDLE_CUDA_SUCCESS &&
        (reset || (HEDDLE_DRIVER(get_state, cuDevicePrimaryCtxGetState)(device, &flags, &active) ==
                       HEDDLE_CUDA_SUCCESS &&
                   active == 0))) {
        forget_context(heddle_ledger_primary_of(device));
    }
    return result;
}

#define HEDDLE_HOOK_PRIMARY(name, reset)                                                           \
    HEDDLE_HOOK(name, (heddle_device device)) {                                                    \
        return primary_released(device, reset, HEDDLE_REAL(name)(device));                         \
    }

HEDDLE_HOOK_PRIMARY(cuDevicePrimaryCtxRelease, false)
HEDDLE_HOOK_PRIMARY(cuDevicePrimaryCtxRelease_v2, false)
HEDDLE_HOOK_PRIMARY(cuDevicePrimaryCtxReset, true)
HEDDLE_HOOK_PRIMARY(cuDevicePrimaryCtxReset_v2, true)

#define HEDDLE_HOOK_DESTROY(name)                                                                  \
    HEDDLE_HOOK(name, (void *context)) {                                                           \
        const heddle_result result = HEDDLE_REAL(name)(context);                                   \
        if (result == HEDDLE_CUDA_SUCCESS) {                                                       \
            forget_context(context);                                                               \
        }                                                                                          \
        return result;                                                                             \
    }

HEDDLE_HOOK_DESTROY(cuCtxDestroy)
HEDDLE_HOOK_DESTROY(cuCtxDestroy_v2)

#define HEDDLE_HOOK_CURRENT(name)                                                                  \
    HEDDLE_HOOK(name, (void *context)) {                                                           \
        return changed(HEDDLE_REAL(name)(context));                                                \
    }

#define HEDDLE_HOOK_POP(name)                                                                      \
    HEDDLE_HOOK(name, (void **context)) {                                                          \
        return changed(HEDDLE_REAL(name)(context));                                                \
    }

HEDDLE_HOOK_CURRENT(cuCtxSetCurrent)
HEDDLE_HOOK_CURRENT(cuCtxPushCurrent)
HEDDLE_HOOK_CURRENT(cuCtxPushCurrent_v2)
HEDDLE_HOOK_CURRENT(cuCtxDetach)
HEDDLE_HOOK_POP(cuCtxPopCurrent)
HEDDLE_HOOK_POP(cuCtxPopCurrent_v2)

HEDDLE_HOOK(cuCtxAttach, (void **context, unsigned flags)) {
    return changed(HEDDLE_REAL(cuCtxAttach)(context, flags));
}

/* The priority that the verdict asks for, else the program's own. */
static bool priority_of_verdict(int *priority) {
    const int32_t device = heddle_device_current();
    int least = 0;
    int greatest = 0;
    int32_t asked = 0;

    if (device == HEDDLE_DEVICE_NONE) {
        return false;
    }
    asked = (int32_t)heddle_load_relaxed32(
        (const uint32_t *)&heddle_verdict()->devices[device].stream_priority);
    if (asked == 0 || !heddle_resolve_has(HEDDLE_SYM_cuCtxGetStreamPriorityRange) ||
        HEDDLE_DRIVER(get_range, cuCtxGetStreamPriorityRange)(&least, &greatest) !=
            HEDDLE_CUDA_SUCCESS) {
        return false;
    }
    *priority = asked > 0 ? greatest : least;
    return true;
}

HEDDLE_HOOK(cuStreamCreateWithPriority, (void **stream, unsigned flags, int priority)) {
    (void)priority_of_verdict(&priority);
    return HEDDLE_REAL(cuStreamCreateWithPriority)(stream, flags, priority);
}

HEDDLE_HOOK(cuStreamCreate, (void **stream, unsigned flags)) {
    int priority = 0;

    if (heddle_resolve_has(HEDDLE_SYM_cuStreamCreateWithPriority) &&
        priority_of_verdict(&priority)) {
        return HEDDLE_REAL(cuStreamCreateWithPriority)(stream, flags, priority);
    }
    return HEDDLE_REAL(cuStreamCreate)(stream, flags);
}

/* Before the driver is called: afterwards another thread may get the same handle anew. */
#define HEDDLE_HOOK_STREAM_DESTROY(name)                                                           \
    HEDDLE_HOOK(name, (void *stream)) {                                                            \
        heddle_capture_forget(stream);                                                             \
        if ((uintptr_t)stream > HEDDLE_STREAM_PER_THREAD) {                                        \
            heddle_stream_forget((uint64_t)(uintptr_t)stream);                                     \
        }                                                                                          \
        return HEDDLE_REAL(name)(stream);                                                          \
    }

HEDDLE_HOOK_STREAM_DESTROY(cuStreamDestroy)
HEDDLE_HOOK_STREAM_DESTROY(cuStreamDestroy_v2)
