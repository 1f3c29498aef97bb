/*
 * A driver for the player's own tests: it runs nothing but the player's kernels, at once and
 * inside the launch, and can be told to do wrong:
 *
 *     PLAY_TEST_FAULT=lose:N     the N-th launch does nothing
 *     PLAY_TEST_FAULT=double:N   it happens twice
 *     PLAY_TEST_FAULT=swap:N     it and the next one change places
 *     PLAY_TEST_FAULT=fail:N     it is refused
 *     PLAY_TEST_FAULT=hang:N     it never returns
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../src/driver.h"

#define EXPORT __attribute__((visibility("default")))

enum {
    RESULT_OK = 0,
    RESULT_INVALID = 1,
    RESULT_LAUNCH_FAILED = 719,
    CAPTURE_MAX = 4096,
};

/* One launch of a kernel of the player: what is left of it here. */
struct fold {
    uint64_t *state;
    uint64_t tag;
};

struct CUstream_st {
    bool capturing;
    size_t count;
    struct fold captured[CAPTURE_MAX];
};

struct CUgraph_st {
    size_t count;
    struct fold folds[CAPTURE_MAX];
};

static uint64_t launches;
static struct fold swapped; /* waits for the next one */

static void apply(struct fold fold) {
    *fold.state = *fold.state * 6364136223846793005U + fold.tag;
}

static bool faulty(const char *what) {
    const char *fault = getenv("PLAY_TEST_FAULT");
    const size_t length = strlen(what);

    return fault != NULL && strncmp(fault, what, length) == 0 &&
           strtoull(fault + length, NULL, 10) == launches;
}

static void run(struct fold fold) {
    launches++;
    while (faulty("hang:")) {
        pause();
    }
    if (faulty("lose:")) {
        return;
    }
    if (faulty("swap:")) {
        swapped = fold;
        return;
    }
    if (faulty("double:")) {
        apply(fold);
    }
    apply(fold);
    if (swapped.state != NULL) {
        apply(swapped);
        swapped.state = NULL;
    }
}

EXPORT CUresult cuInit(unsigned flags);
EXPORT CUresult cuInit(unsigned flags) {
    (void)flags;
    return RESULT_OK;
}

EXPORT CUresult cuDeviceGetCount(int *count);
EXPORT CUresult cuDeviceGetCount(int *count) {
    *count = 1;
    return RESULT_OK;
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal);
EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    *device = ordinal;
    return RESULT_OK;
}

EXPORT CUresult cuDeviceGetName(char *name, int size, CUdevice device);
EXPORT CUresult cuDeviceGetName(char *name, int size, CUdevice device) {
    (void)device;
    snprintf(name, (size_t)size, "test \"driver\"");
    return RESULT_OK;
}

EXPORT CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device);
EXPORT CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
    (void)device;
    *value = 100;
    return attribute == PLAY_ATTRIBUTE_MULTIPROCESSOR_COUNT ? RESULT_OK : RESULT_INVALID;
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    (void)device;
    *context = (CUcontext)&launches;
    return RESULT_OK;
}

EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    (void)device;
    return RESULT_OK;
}

EXPORT CUresult cuCtxSetCurrent(CUcontext context);
EXPORT CUresult cuCtxSetCurrent(CUcontext context) {
    (void)context;
    return RESULT_OK;
}

EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image);
EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    *module = (CUmodule)(void *)strdup(image);
    return RESULT_OK;
}

EXPORT CUresult cuModuleUnload(CUmodule module);
EXPORT CUresult cuModuleUnload(CUmodule module) {
    free(module);
    return RESULT_OK;
}

EXPORT CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
EXPORT CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    *function = (CUfunction)(void *)strstr((const char *)module, name);
    return *function != NULL ? RESULT_OK : RESULT_INVALID;
}

EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function,
                                                            int block_size, size_t shared);
EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function,
                                                            int block_size, size_t shared) {
    (void)function;
    (void)shared;
    *blocks = 2048 / block_size;
    return RESULT_OK;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t size);
EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t size) {
    *pointer = (CUdeviceptr)(uintptr_t)malloc(size);
    return RESULT_OK;
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr pointer);
EXPORT CUresult cuMemFree_v2(CUdeviceptr pointer) {
    free((void *)(uintptr_t)pointer);
    return RESULT_OK;
}

EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t size);
EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t size) {
    memcpy((void *)(uintptr_t)to, from, size);
    return RESULT_OK;
}

EXPORT CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t size);
EXPORT CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t size) {
    memcpy(to, (const void *)(uintptr_t)from, size);
    return RESULT_OK;
}

EXPORT CUresult cuStreamCreate(CUstream *stream, unsigned flags);
EXPORT CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
    (void)flags;
    *stream = calloc(1, sizeof **stream);
    return RESULT_OK;
}

EXPORT CUresult cuStreamDestroy_v2(CUstream stream);
EXPORT CUresult cuStreamDestroy_v2(CUstream stream) {
    free(stream);
    return RESULT_OK;
}

EXPORT CUresult cuStreamSynchronize(CUstream stream);
EXPORT CUresult cuStreamSynchronize(CUstream stream) {
    (void)stream;
    return RESULT_OK;
}

EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                               unsigned grid_z, unsigned block_x, unsigned block_y,
                               unsigned block_z, unsigned shared, CUstream stream,
                               void **parameters, void **extra);
EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                               unsigned grid_z, unsigned block_x, unsigned block_y,
                               unsigned block_z, unsigned shared, CUstream stream,
                               void **parameters, void **extra) {
    (void)function;
    if (grid_x == 0 || grid_y != 1 || grid_z != 1 || block_x == 0 || block_y != 1 || block_z != 1 ||
        shared != 0 || extra != NULL) {
        return RESULT_INVALID;
    }
    const struct fold fold = {
        .state = (uint64_t *)(uintptr_t) * (const CUdeviceptr *)parameters[0],
        .tag = *(const uint64_t *)parameters[3],
    };
    if (stream->capturing) {
        if (stream->count == CAPTURE_MAX) {
            return RESULT_INVALID;
        }
        stream->captured[stream->count++] = fold;
        return RESULT_OK;
    }
    run(fold);
    return faulty("fail:") ? RESULT_LAUNCH_FAILED : RESULT_OK;
}

EXPORT CUresult cuStreamBeginCapture_v2(CUstream stream, int mode);
EXPORT CUresult cuStreamBeginCapture_v2(CUstream stream, int mode) {
    stream->capturing = true;
    return mode >= 0 && mode <= 2 ? RESULT_OK : RESULT_INVALID;
}

EXPORT CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph);
EXPORT CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
    *graph = calloc(1, sizeof **graph);
    (*graph)->count = stream->count;
    memcpy((*graph)->folds, stream->captured, sizeof stream->captured);
    stream->capturing = false;
    return RESULT_OK;
}

EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph,
                                            unsigned long long flags);
EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph,
                                            unsigned long long flags) {
    struct CUgraph_st *copy = malloc(sizeof *copy);

    memcpy(copy, graph, sizeof *copy);
    *exec = (CUgraphExec)(void *)copy;
    return flags == 0 ? RESULT_OK : RESULT_INVALID;
}

EXPORT CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream);
EXPORT CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
    const struct CUgraph_st *graph = (const struct CUgraph_st *)(void *)exec;

    (void)stream;
    for (size_t i = 0; i < graph->count; i++) {
        run(graph->folds[i]);
    }
    return RESULT_OK;
}

EXPORT CUresult cuGraphExecDestroy(CUgraphExec exec);
EXPORT CUresult cuGraphExecDestroy(CUgraphExec exec) {
    free(exec);
    return RESULT_OK;
}

EXPORT CUresult cuGraphDestroy(CUgraph graph);
EXPORT CUresult cuGraphDestroy(CUgraph graph) {
    free(graph);
    return RESULT_OK;
}

EXPORT CUresult cuGetErrorName(CUresult result, const char **name);
EXPORT CUresult cuGetErrorName(CUresult result, const char **name) {
    *name =
        result == RESULT_LAUNCH_FAILED ? "CUDA_ERROR_LAUNCH_FAILED" : "CUDA_ERROR_INVALID_VALUE";
    return RESULT_OK;
}
