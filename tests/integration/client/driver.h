/* The few driver entries that the scripted client calls; declarations of our own. */
#ifndef CLIENT_DRIVER_H
#define CLIENT_DRIVER_H

#include <stddef.h>
#include <stdint.h>

typedef int cu_result;
typedef int cu_device;
typedef uint64_t cu_pointer;
typedef struct cu_context_object *cu_context;
typedef struct cu_module_object *cu_module;
typedef struct cu_function_object *cu_function;
typedef struct cu_stream_object *cu_stream;
typedef struct cu_event_object *cu_event;
typedef struct cu_graph_object *cu_graph;
typedef struct cu_graph_exec_object *cu_graph_exec;

enum { CU_OK = 0, CU_NOT_READY = 600 };

/* One row per entry: field, exported name, arguments. */
#define CLIENT_DRIVER_ENTRIES(X)                                                                   \
    X(init, "cuInit", (unsigned))                                                                  \
    X(device_count, "cuDeviceGetCount", (int *))                                                   \
    X(device_get, "cuDeviceGet", (cu_device *, int))                                               \
    X(device_uuid, "cuDeviceGetUuid_v2", (void *, cu_device))                                      \
    X(primary_retain, "cuDevicePrimaryCtxRetain", (cu_context *, cu_device))                       \
    X(primary_release, "cuDevicePrimaryCtxRelease_v2", (cu_device))                                \
    X(context_set, "cuCtxSetCurrent", (cu_context))                                                \
    X(context_sync, "cuCtxSynchronize", (void))                                                    \
    X(module_load, "cuModuleLoadData", (cu_module *, const void *))                                \
    X(module_function, "cuModuleGetFunction", (cu_function *, cu_module, const char *))            \
    X(launch, "cuLaunchKernel",                                                                    \
      (cu_function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,          \
       cu_stream, void **, void **))                                                               \
    X(stream_create, "cuStreamCreate", (cu_stream *, unsigned))                                    \
    X(stream_destroy, "cuStreamDestroy_v2", (cu_stream))                                           \
    X(stream_sync, "cuStreamSynchronize", (cu_stream))                                             \
    X(stream_query, "cuStreamQuery", (cu_stream))                                                  \
    X(stream_wait, "cuStreamWaitEvent", (cu_stream, cu_event, unsigned))                           \
    X(capture_begin, "cuStreamBeginCapture_v2", (cu_stream, int))                                  \
    X(capture_end, "cuStreamEndCapture", (cu_stream, cu_graph *))                                  \
    X(graph_nodes, "cuGraphGetNodes", (cu_graph, void **, size_t *))                               \
    X(graph_instantiate, "cuGraphInstantiateWithFlags",                                            \
      (cu_graph_exec *, cu_graph, unsigned long long))                                             \
    X(graph_launch, "cuGraphLaunch", (cu_graph_exec, cu_stream))                                   \
    X(event_create, "cuEventCreate", (cu_event *, unsigned))                                       \
    X(event_record, "cuEventRecord", (cu_event, cu_stream))                                        \
    X(event_sync, "cuEventSynchronize", (cu_event))                                                \
    X(event_elapsed, "cuEventElapsedTime", (float *, cu_event, cu_event))                          \
    X(wait_value, "cuStreamWaitValue64_v2", (cu_stream, cu_pointer, uint64_t, unsigned))           \
    X(alloc, "cuMemAlloc_v2", (cu_pointer *, size_t))                                              \
    X(free, "cuMemFree_v2", (cu_pointer))                                                          \
    X(info, "cuMemGetInfo_v2", (size_t *, size_t *))                                               \
    X(fill8, "cuMemsetD8_v2", (cu_pointer, unsigned char, size_t))                                 \
    X(to_host, "cuMemcpyDtoH_v2", (void *, cu_pointer, size_t))                                    \
    X(to_host_async, "cuMemcpyDtoHAsync_v2", (void *, cu_pointer, size_t, cu_stream))

struct client_driver {
#define CLIENT_DRIVER_FIELD(field, name, args) cu_result(*field) args;
    CLIENT_DRIVER_ENTRIES(CLIENT_DRIVER_FIELD)
#undef CLIENT_DRIVER_FIELD
};

/* Opens libcuda.so.1 the way frameworks do. Returns NULL, or what was missing. */
const char *client_driver_open(struct client_driver *out);

#endif
