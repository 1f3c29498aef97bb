/*
 * The launches, in the slow path: the thread has no counter yet, or the gate word says something.
 * The fast path is in the trampolines.
 */
#include "driver.h"
#include "launch.h"
#include "symbols.h"

#define HEDDLE_HOOK_KERNEL(name, per_thread)                                                       \
    HEDDLE_HOOK(name, (void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,   \
                       unsigned bz, unsigned shared, void *stream, void **params, void **extra)) { \
        struct heddle_launch launch;                                                               \
        const struct heddle_shape shape = heddle_shape_of(f, gx, gy, gz, bx, by, bz, shared);      \
        heddle_result result = 0;                                                                  \
        heddle_launch_enter(&launch, &shape, stream, per_thread);                                  \
        result = HEDDLE_REAL(name)(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);      \
        heddle_launch_leave(&launch, result);                                                      \
        return result;                                                                             \
    }

HEDDLE_HOOK_KERNEL(cuLaunchKernel, false)
HEDDLE_HOOK_KERNEL(cuLaunchKernel_ptsz, true)

#define HEDDLE_HOOK_COOPERATIVE(name, per_thread)                                                  \
    HEDDLE_HOOK(name, (void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,   \
                       unsigned bz, unsigned shared, void *stream, void **params)) {               \
        struct heddle_launch launch;                                                               \
        const struct heddle_shape shape = heddle_shape_of(f, gx, gy, gz, bx, by, bz, shared);      \
        heddle_result result = 0;                                                                  \
        heddle_launch_enter(&launch, &shape, stream, per_thread);                                  \
        result = HEDDLE_REAL(name)(f, gx, gy, gz, bx, by, bz, shared, stream, params);             \
        heddle_launch_leave(&launch, result);                                                      \
        return result;                                                                             \
    }

HEDDLE_HOOK_COOPERATIVE(cuLaunchCooperativeKernel, false)
HEDDLE_HOOK_COOPERATIVE(cuLaunchCooperativeKernel_ptsz, true)

static void *stream_of(const struct heddle_launch_config *config) {
    return config != NULL ? config->stream : NULL;
}

static struct heddle_shape shape_of(const struct heddle_launch_config *config, const void *f) {
    if (config == NULL) {
        return (struct heddle_shape){0};
    }
    return heddle_shape_of(f, config->grid[0], config->grid[1], config->grid[2], config->block[0],
                           config->block[1], config->block[2], config->shared_bytes);
}

#define HEDDLE_HOOK_KERNEL_EX(name, per_thread)                                                    \
    HEDDLE_HOOK(                                                                                   \
        name, (const struct heddle_launch_config *config, void *f, void **params, void **extra)) { \
        struct heddle_launch launch;                                                               \
        const struct heddle_shape shape = shape_of(config, f);                                     \
        heddle_result result = 0;                                                                  \
        heddle_launch_enter(&launch, &shape, stream_of(config), per_thread);                       \
        result = HEDDLE_REAL(name)(config, f, params, extra);                                      \
        heddle_launch_leave(&launch, result);                                                      \
        return result;                                                                             \
    }

HEDDLE_HOOK_KERNEL_EX(cuLaunchKernelEx, false)
HEDDLE_HOOK_KERNEL_EX(cuLaunchKernelEx_ptsz, true)

/* A graph launch is one unit, whatever is in it. */
#define HEDDLE_HOOK_GRAPH(name, per_thread)                                                        \
    HEDDLE_HOOK(name, (void *graph, void *stream)) {                                               \
        struct heddle_launch launch;                                                               \
        const struct heddle_shape shape = {.function = (uint64_t)(uintptr_t)graph,                 \
                                           .shared = HEDDLE_SHAPE_GRAPH};                          \
        heddle_result result = 0;                                                                  \
        heddle_launch_enter(&launch, &shape, stream, per_thread);                                  \
        result = HEDDLE_REAL(name)(graph, stream);                                                 \
        heddle_launch_leave(&launch, result);                                                      \
        return result;                                                                             \
    }

HEDDLE_HOOK_GRAPH(cuGraphLaunch, false)
HEDDLE_HOOK_GRAPH(cuGraphLaunch_ptsz, true)

/* One launch over several devices: its turn is that of the first, whose device is current. */
HEDDLE_HOOK(cuLaunchCooperativeKernelMultiDevice,
            (struct heddle_launch_params * list, unsigned devices, unsigned flags)) {
    struct heddle_launch launch;
    const struct heddle_shape unknown = {0};
    heddle_result result = 0;

    heddle_launch_enter(&launch, &unknown, list != NULL && devices > 0 ? list[0].stream : NULL,
                        false);
    result = HEDDLE_REAL(cuLaunchCooperativeKernelMultiDevice)(list, devices, flags);
    heddle_launch_leave(&launch, result);
    return result;
}

/* The launches of before CUDA 4, with their arguments set one by one in advance. */
HEDDLE_HOOK(cuLaunch, (void *f)) {
    struct heddle_launch launch;
    const struct heddle_shape unknown = {0};
    heddle_result result = 0;

    heddle_launch_enter(&launch, &unknown, NULL, false);
    result = HEDDLE_REAL(cuLaunch)(f);
    heddle_launch_leave(&launch, result);
    return result;
}

HEDDLE_HOOK(cuLaunchGrid, (void *f, int width, int height)) {
    struct heddle_launch launch;
    const struct heddle_shape unknown = {0};
    heddle_result result = 0;

    heddle_launch_enter(&launch, &unknown, NULL, false);
    result = HEDDLE_REAL(cuLaunchGrid)(f, width, height);
    heddle_launch_leave(&launch, result);
    return result;
}

HEDDLE_HOOK(cuLaunchGridAsync, (void *f, int width, int height, void *stream)) {
    struct heddle_launch launch;
    const struct heddle_shape unknown = {0};
    heddle_result result = 0;

    heddle_launch_enter(&launch, &unknown, stream, false);
    result = HEDDLE_REAL(cuLaunchGridAsync)(f, width, height, stream);
    heddle_launch_leave(&launch, result);
    return result;
}
