/*
 * The few types of the CUDA driver API that the hooks look into, in our own words. A handle is an
 * address that is never followed; a structure names only the members that are read.
 */
#ifndef HEDDLE_DRIVER_H
#define HEDDLE_DRIVER_H

#include <stddef.h>
#include <stdint.h>

typedef int heddle_result;             /* CUresult */
typedef int heddle_device;             /* CUdevice, an ordinal */
typedef unsigned long long heddle_ptr; /* CUdeviceptr since CUDA 3.2 */
typedef unsigned int heddle_ptr_v1;    /* CUdeviceptr before */

enum heddle_driver_result {
    HEDDLE_CUDA_SUCCESS = 0,
    HEDDLE_CUDA_STUB_LIBRARY = 34,
    HEDDLE_CUDA_NOT_READY = 600,
    HEDDLE_CUDA_FATAL_FIRST = 700, /* from here on errors after which a context is lost */
    HEDDLE_CUDA_FATAL_LAST = 719,
    HEDDLE_CUDA_NOT_SUPPORTED = 801,
};

/* Stream handles with a meaning of their own. */
enum heddle_driver_stream {
    HEDDLE_STREAM_LEGACY = 1,
    HEDDLE_STREAM_PER_THREAD = 2,
    HEDDLE_STREAM_NON_BLOCKING = 1, /* flag */
};

enum heddle_driver_misc {
    HEDDLE_EVENT_DISABLE_TIMING = 2,
    HEDDLE_CAPTURE_NONE = 0,
    HEDDLE_CAPTURE_MODE_RELAXED = 2,
    HEDDLE_GRAPH_NODE_KERNEL = 0,
    HEDDLE_GRAPH_NODE_MEM_ALLOC = 10,
    HEDDLE_GRAPH_MEM_RESERVED = 2, /* CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT */
    HEDDLE_LOCATION_DEVICE = 1,
    HEDDLE_FUNCTION_MAX_THREADS = 0,
    HEDDLE_FUNCTION_SHARED = 1,
    HEDDLE_FUNCTION_REGISTERS = 4,
};

struct heddle_uuid {
    uint8_t bytes[16];
};

/* CUlaunchConfig */
struct heddle_launch_config {
    unsigned grid[3];
    unsigned block[3];
    unsigned shared_bytes;
    void *stream;
    void *attributes;
    unsigned attribute_count;
};

/* CUDA_LAUNCH_PARAMS */
struct heddle_launch_params {
    void *function;
    unsigned grid[3];
    unsigned block[3];
    unsigned shared_bytes;
    void *stream;
    void **params;
};

/* CUDA_KERNEL_NODE_PARAMS since CUDA 12 */
struct heddle_kernel_node {
    void *function;
    unsigned grid[3];
    unsigned block[3];
    unsigned shared_bytes;
    void **params;
    void **extra;
    void *kernel;
    void *context;
};

/* CUDA_ARRAY_DESCRIPTOR before and since CUDA 3.2 */
struct heddle_array_v1 {
    unsigned width;
    unsigned height;
    unsigned format;
    unsigned channels;
};

struct heddle_array {
    size_t width;
    size_t height;
    unsigned format;
    unsigned channels;
};

/* CUDA_ARRAY3D_DESCRIPTOR before and since CUDA 3.2 */
struct heddle_array3d_v1 {
    unsigned width;
    unsigned height;
    unsigned depth;
    unsigned format;
    unsigned channels;
    unsigned flags;
};

struct heddle_array3d {
    size_t width;
    size_t height;
    size_t depth;
    unsigned format;
    unsigned channels;
    unsigned flags;
};

/* CUmemLocation and the head of CUmemAllocationProp */
struct heddle_location {
    int type;
    int id;
};

struct heddle_allocation_prop {
    int type;
    int handle_types;
    struct heddle_location location;
};

#endif /* HEDDLE_DRIVER_H */
