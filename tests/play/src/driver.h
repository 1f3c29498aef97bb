/*
 * The CUDA driver API as far as the player uses it: own declarations of public entry points, opened
 * by name as the CUDA runtime does, so that whatever stands in front of the driver is met too.
 */
#ifndef PLAY_DRIVER_H
#define PLAY_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#include "error.h"

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;

enum play_driver_constants {
    PLAY_CUDA_SUCCESS = 0,
    PLAY_STREAM_NON_BLOCKING = 1,
    PLAY_CAPTURE_THREAD_LOCAL = 1,
    PLAY_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
};

/* field, exported name, parameters */
#define PLAY_DRIVER_FUNCTIONS(X)                                                                   \
    X(init, cuInit, (unsigned flags))                                                              \
    X(device_count, cuDeviceGetCount, (int *count))                                                \
    X(device_get, cuDeviceGet, (CUdevice * device, int ordinal))                                   \
    X(device_name, cuDeviceGetName, (char *name, int size, CUdevice device))                       \
    X(device_attribute, cuDeviceGetAttribute, (int *value, int attribute, CUdevice device))        \
    X(primary_retain, cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device))            \
    X(primary_release, cuDevicePrimaryCtxRelease_v2, (CUdevice device))                            \
    X(set_current, cuCtxSetCurrent, (CUcontext context))                                           \
    X(module_load, cuModuleLoadData, (CUmodule * module, const void *image))                       \
    X(module_unload, cuModuleUnload, (CUmodule module))                                            \
    X(module_function, cuModuleGetFunction,                                                        \
      (CUfunction * function, CUmodule module, const char *name))                                  \
    X(occupancy, cuOccupancyMaxActiveBlocksPerMultiprocessor,                                      \
      (int *blocks, CUfunction function, int block_size, size_t dynamic_shared))                   \
    X(memory_alloc, cuMemAlloc_v2, (CUdeviceptr * pointer, size_t size))                           \
    X(memory_free, cuMemFree_v2, (CUdeviceptr pointer))                                            \
    X(copy_to_device, cuMemcpyHtoD_v2, (CUdeviceptr to, const void *from, size_t size))            \
    X(copy_to_host, cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t size))                    \
    X(stream_create, cuStreamCreate, (CUstream * stream, unsigned flags))                          \
    X(stream_destroy, cuStreamDestroy_v2, (CUstream stream))                                       \
    X(stream_wait, cuStreamSynchronize, (CUstream stream))                                         \
    X(launch, cuLaunchKernel,                                                                      \
      (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,   \
       unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void **parameters,    \
       void **extra))                                                                              \
    X(capture_begin, cuStreamBeginCapture_v2, (CUstream stream, int mode))                         \
    X(capture_end, cuStreamEndCapture, (CUstream stream, CUgraph * graph))                         \
    X(graph_instantiate, cuGraphInstantiateWithFlags,                                              \
      (CUgraphExec * exec, CUgraph graph, unsigned long long flags))                               \
    X(graph_launch, cuGraphLaunch, (CUgraphExec exec, CUstream stream))                            \
    X(graph_exec_destroy, cuGraphExecDestroy, (CUgraphExec exec))                                  \
    X(graph_destroy, cuGraphDestroy, (CUgraph graph))                                              \
    X(error_name, cuGetErrorName, (CUresult result, const char **name))

#define PLAY_DRIVER_FIELD(field, symbol, parameters) CUresult(*field) parameters;

struct play_driver {
    void *library;
    PLAY_DRIVER_FUNCTIONS(PLAY_DRIVER_FIELD)
};

/* Opens libcuda.so.1 and initialises it. */
bool play_driver_open(struct play_driver *driver, struct play_error *err);

/* True for success; else fills err with what, and the driver's name of the result. */
bool play_driver_ok(const struct play_driver *driver, CUresult result, const char *what,
                    struct play_error *err);

#endif /* PLAY_DRIVER_H */
