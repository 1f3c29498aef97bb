/*
 * Every entry that allocates or frees device memory is counted. Nothing is refused here, and what
 * the driver answers is returned untouched; an address that was not counted goes to the driver all
 * the same.
 */
#include <stddef.h>

#include "capture.h"
#include "device.h"
#include "driver.h"
#include "graph_memory.h"
#include "ledger.h"
#include "size.h"
#include "symbols.h"
#include "thread.h"

/* The driver may allocate through its own exports: only the outermost call is the program's. */
static void enter(void) {
    heddle_thread.depth++;
}

static heddle_result leave(heddle_result result) {
    heddle_thread.depth--;
    return result;
}

static heddle_result counted(heddle_result result, uint64_t handle, uint64_t bytes) {
    heddle_thread.depth--;
    if (result == HEDDLE_CUDA_SUCCESS && heddle_thread.depth == 0) {
        const int32_t device = heddle_device_current();

        if (device != HEDDLE_DEVICE_NONE) {
            heddle_ledger_add(handle, bytes, (uint32_t)device, heddle_device_context());
        }
        heddle_graph_memory_refresh();
    }
    return result;
}

static uint64_t value(const heddle_ptr *pointer, heddle_result result) {
    return result == HEDDLE_CUDA_SUCCESS && pointer != NULL ? *pointer : 0;
}

static uint64_t address(void *const *handle, heddle_result result) {
    return result == HEDDLE_CUDA_SUCCESS && handle != NULL ? (uint64_t)(uintptr_t)*handle : 0;
}

HEDDLE_HOOK(cuMemAlloc, (heddle_ptr_v1 * pointer, unsigned bytes)) {
    enter();
    const heddle_result result = HEDDLE_REAL(cuMemAlloc)(pointer, bytes);
    return counted(result, result == HEDDLE_CUDA_SUCCESS ? *pointer : 0, bytes);
}

HEDDLE_HOOK(cuMemAlloc_v2, (heddle_ptr * pointer, size_t bytes)) {
    enter();
    const heddle_result result = HEDDLE_REAL(cuMemAlloc_v2)(pointer, bytes);
    return counted(result, value(pointer, result), bytes);
}

HEDDLE_HOOK(cuMemAllocPitch, (heddle_ptr_v1 * pointer, unsigned *pitch, unsigned width,
                              unsigned height, unsigned element)) {
    enter();
    const heddle_result result =
        HEDDLE_REAL(cuMemAllocPitch)(pointer, pitch, width, height, element);
    return counted(result, result == HEDDLE_CUDA_SUCCESS ? *pointer : 0,
                   result == HEDDLE_CUDA_SUCCESS ? (uint64_t)*pitch * height : 0);
}

HEDDLE_HOOK(cuMemAllocPitch_v2,
            (heddle_ptr * pointer, size_t *pitch, size_t width, size_t height, unsigned element)) {
    enter();
    const heddle_result result =
        HEDDLE_REAL(cuMemAllocPitch_v2)(pointer, pitch, width, height, element);
    return counted(result, value(pointer, result),
                   result == HEDDLE_CUDA_SUCCESS ? (uint64_t)*pitch * height : 0);
}

HEDDLE_HOOK(cuMemAllocManaged, (heddle_ptr * pointer, size_t bytes, unsigned flags)) {
    enter();
    const heddle_result result = HEDDLE_REAL(cuMemAllocManaged)(pointer, bytes, flags);
    return counted(result, value(pointer, result), bytes);
}

/* On a capturing stream this makes a graph node; the memory comes with the graph's launch. */
static heddle_result allocated_async(heddle_result result, const heddle_ptr *pointer,
                                     uint64_t bytes, bool captured) {
    if (captured) {
        heddle_graph_memory_expect();
        return leave(result);
    }
    return counted(result, value(pointer, result), bytes);
}

#define HEDDLE_HOOK_ALLOC_ASYNC(name, per_thread)                                                  \
    HEDDLE_HOOK(name, (heddle_ptr * pointer, size_t bytes, void *stream)) {                        \
        const bool captured = heddle_capture_covers(stream, per_thread);                           \
        enter();                                                                                   \
        return allocated_async(HEDDLE_REAL(name)(pointer, bytes, stream), pointer, bytes,          \
                               captured);                                                          \
    }

#define HEDDLE_HOOK_ALLOC_POOL(name, per_thread)                                                   \
    HEDDLE_HOOK(name, (heddle_ptr * pointer, size_t bytes, void *pool, void *stream)) {            \
        const bool captured = heddle_capture_covers(stream, per_thread);                           \
        enter();                                                                                   \
        return allocated_async(HEDDLE_REAL(name)(pointer, bytes, pool, stream), pointer, bytes,    \
                               captured);                                                          \
    }

HEDDLE_HOOK_ALLOC_ASYNC(cuMemAllocAsync, false)
HEDDLE_HOOK_ALLOC_ASYNC(cuMemAllocAsync_ptsz, true)
HEDDLE_HOOK_ALLOC_POOL(cuMemAllocFromPoolAsync, false)
HEDDLE_HOOK_ALLOC_POOL(cuMemAllocFromPoolAsync_ptsz, true)

#define HEDDLE_HOOK_ARRAY(name, type, size)                                                        \
    HEDDLE_HOOK(name, (void **array, const type *descriptor)) {                                    \
        enter();                                                                                   \
        const heddle_result result = HEDDLE_REAL(name)(array, descriptor);                         \
        return counted(result, address(array, result),                                             \
                       result == HEDDLE_CUDA_SUCCESS ? size(descriptor) : 0);                      \
    }

HEDDLE_HOOK_ARRAY(cuArrayCreate, struct heddle_array_v1, heddle_size_array_v1)
HEDDLE_HOOK_ARRAY(cuArrayCreate_v2, struct heddle_array, heddle_size_array)
HEDDLE_HOOK_ARRAY(cuArray3DCreate, struct heddle_array3d_v1, heddle_size_array3d_v1)
HEDDLE_HOOK_ARRAY(cuArray3DCreate_v2, struct heddle_array3d, heddle_size_array3d)

HEDDLE_HOOK(cuMipmappedArrayCreate,
            (void **array, const struct heddle_array3d *descriptor, unsigned levels)) {
    enter();
    const heddle_result result = HEDDLE_REAL(cuMipmappedArrayCreate)(array, descriptor, levels);
    return counted(result, address(array, result),
                   result == HEDDLE_CUDA_SUCCESS ? heddle_size_mipmapped(descriptor, levels) : 0);
}

/* Physical memory belongs to a device and outlives contexts; on the host it is none of ours. */
HEDDLE_HOOK(cuMemCreate, (heddle_ptr * handle, size_t bytes,
                          const struct heddle_allocation_prop *prop, unsigned long long flags)) {
    enter();
    const heddle_result result = leave(HEDDLE_REAL(cuMemCreate)(handle, bytes, prop, flags));

    if (result == HEDDLE_CUDA_SUCCESS && heddle_thread.depth == 0 &&
        prop->location.type == HEDDLE_LOCATION_DEVICE) {
        const int32_t device = heddle_device_open(prop->location.id);

        if (device != HEDDLE_DEVICE_NONE) {
            heddle_ledger_add(*handle, bytes, (uint32_t)device, NULL);
        }
    }
    return result;
}

HEDDLE_HOOK(cuMemRetainAllocationHandle, (heddle_ptr * handle, void *mapped)) {
    const heddle_result result = HEDDLE_REAL(cuMemRetainAllocationHandle)(handle, mapped);

    if (result == HEDDLE_CUDA_SUCCESS && handle != NULL) {
        heddle_ledger_retain(*handle);
    }
    return result;
}

static struct heddle_allocation take(uint64_t handle) {
    const struct heddle_allocation nothing = {0};

    return heddle_thread.depth++ == 0 ? heddle_ledger_take(handle) : nothing;
}

static heddle_result freed(const struct heddle_allocation *taken, heddle_result result) {
    heddle_thread.depth--;
    if (result != HEDDLE_CUDA_SUCCESS && taken->handle != 0) {
        heddle_ledger_put_back(taken);
    }
    return result;
}

#define HEDDLE_HOOK_FREE(name, type)                                                               \
    HEDDLE_HOOK(name, (type handle)) {                                                             \
        const struct heddle_allocation taken = take((uint64_t)(uintptr_t)handle);                  \
        return freed(&taken, HEDDLE_REAL(name)(handle));                                           \
    }

#define HEDDLE_HOOK_FREE_ASYNC(name)                                                               \
    HEDDLE_HOOK(name, (heddle_ptr pointer, void *stream)) {                                        \
        const struct heddle_allocation taken = take(pointer);                                      \
        return freed(&taken, HEDDLE_REAL(name)(pointer, stream));                                  \
    }

HEDDLE_HOOK_FREE(cuMemFree, heddle_ptr_v1)
HEDDLE_HOOK_FREE(cuMemFree_v2, heddle_ptr)
HEDDLE_HOOK_FREE(cuMemRelease, heddle_ptr)
HEDDLE_HOOK_FREE(cuArrayDestroy, void *)
HEDDLE_HOOK_FREE(cuMipmappedArrayDestroy, void *)
HEDDLE_HOOK_FREE_ASYNC(cuMemFreeAsync)
HEDDLE_HOOK_FREE_ASYNC(cuMemFreeAsync_ptsz)

HEDDLE_HOOK(cuGraphAddMemAllocNode,
            (void **node, void *graph, void *const *dependencies, size_t count, void *params)) {
    heddle_graph_memory_expect();
    return HEDDLE_REAL(cuGraphAddMemAllocNode)(node, graph, dependencies, count, params);
}

/* The parameters of a node begin with its type. */
static void expect_if_allocation(const int *params) {
    if (params != NULL && *params == HEDDLE_GRAPH_NODE_MEM_ALLOC) {
        heddle_graph_memory_expect();
    }
}

HEDDLE_HOOK(cuGraphAddNode,
            (void **node, void *graph, void *const *dependencies, size_t count, int *params)) {
    expect_if_allocation(params);
    return HEDDLE_REAL(cuGraphAddNode)(node, graph, dependencies, count, params);
}

#define HEDDLE_HOOK_ADD_NODE(name)                                                                 \
    HEDDLE_HOOK(name, (void **node, void *graph, void *const *dependencies, const void *edges,     \
                       size_t count, int *params)) {                                               \
        expect_if_allocation(params);                                                              \
        return HEDDLE_REAL(name)(node, graph, dependencies, edges, count, params);                 \
    }

HEDDLE_HOOK_ADD_NODE(cuGraphAddNode_v2)
HEDDLE_HOOK_ADD_NODE(cuGraphAddNode_v3)

HEDDLE_HOOK(cuDeviceGraphMemTrim, (heddle_device device)) {
    const heddle_result result = HEDDLE_REAL(cuDeviceGraphMemTrim)(device);

    heddle_graph_memory_refresh();
    return result;
}
