/* Where kernels and graphs come from and go to: so that a handle always stands for the same name. */
#include <stddef.h>

#include "driver.h"
#include "kernel.h"
#include "stream.h"
#include "symbols.h"

HEDDLE_HOOK(cuModuleUnload, (void *module)) {
    heddle_stream_forget_launches();
    heddle_kernel_forget(NULL);
    return HEDDLE_REAL(cuModuleUnload)(module);
}

HEDDLE_HOOK(cuLibraryUnload, (void *library)) {
    heddle_stream_forget_launches();
    heddle_kernel_forget(library);
    return HEDDLE_REAL(cuLibraryUnload)(library);
}

HEDDLE_HOOK(cuLibraryGetKernel, (void **kernel, void *library, const char *name)) {
    const heddle_result result = HEDDLE_REAL(cuLibraryGetKernel)(kernel, library, name);

    if (result == HEDDLE_CUDA_SUCCESS) {
        heddle_kernel_from(*kernel, library);
    }
    return result;
}

HEDDLE_HOOK(cuLibraryEnumerateKernels, (void **kernels, unsigned count, void *library)) {
    const heddle_result result = HEDDLE_REAL(cuLibraryEnumerateKernels)(kernels, count, library);

    for (unsigned i = 0; result == HEDDLE_CUDA_SUCCESS && i < count && kernels[i] != NULL; i++) {
        heddle_kernel_from(kernels[i], library);
    }
    return result;
}

static heddle_result instantiated(void *const *exec, void *graph, heddle_result result) {
    if (result == HEDDLE_CUDA_SUCCESS) {
        heddle_kernel_graph(*exec, graph);
    }
    return result;
}

#define HEDDLE_HOOK_INSTANTIATE(name)                                                              \
    HEDDLE_HOOK(name, (void **exec, void *graph, void **node, char *log, size_t bytes)) {          \
        return instantiated(exec, graph, HEDDLE_REAL(name)(exec, graph, node, log, bytes));        \
    }

#define HEDDLE_HOOK_INSTANTIATE_PARAMS(name)                                                       \
    HEDDLE_HOOK(name, (void **exec, void *graph, void *params)) {                                  \
        return instantiated(exec, graph, HEDDLE_REAL(name)(exec, graph, params));                  \
    }

HEDDLE_HOOK_INSTANTIATE(cuGraphInstantiate)
HEDDLE_HOOK_INSTANTIATE(cuGraphInstantiate_v2)
HEDDLE_HOOK_INSTANTIATE_PARAMS(cuGraphInstantiateWithParams)
HEDDLE_HOOK_INSTANTIATE_PARAMS(cuGraphInstantiateWithParams_ptsz)

HEDDLE_HOOK(cuGraphInstantiateWithFlags, (void **exec, void *graph, unsigned long long flags)) {
    return instantiated(exec, graph, HEDDLE_REAL(cuGraphInstantiateWithFlags)(exec, graph, flags));
}

HEDDLE_HOOK(cuGraphExecDestroy, (void *exec)) {
    heddle_kernel_forget_graph(exec);
    return HEDDLE_REAL(cuGraphExecDestroy)(exec);
}
