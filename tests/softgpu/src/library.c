/* Libraries and kernels: modules that belong to no context. */
#include <stdlib.h>
#include <string.h>

#include "driver.h"

static bool is_library(CUlibrary l) {
    return l != NULL && l->magic == SG_LIBRARY;
}

SG_API(cuLibraryLoadData, (CUlibrary * out, const void *image, const int *jit, void **jit_values,
                           unsigned jit_count, const int *options, void **values, unsigned count)) {
    SG_ENTER();
    (void)jit;
    (void)jit_values;
    (void)jit_count;
    (void)options;
    (void)values;
    (void)count;
    if (out == NULL || image == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sg_module *m = sg_object(sizeof(*m), SG_LIBRARY);
    if (m == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult rc = sg_module_parse(m, image);
    if (rc == CUDA_SUCCESS) {
        *out = m;
    }
    return rc;
}

SG_API(cuLibraryUnload, (CUlibrary l)) {
    SG_ENTER();
    if (!is_library(l)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    sg_lock();
    sg_module_close(l);
    sg_unlock();
    return CUDA_SUCCESS;
}

SG_API(cuLibraryGetKernel, (CUkernel * out, CUlibrary l, const char *name)) {
    SG_ENTER();
    if (out == NULL || name == NULL || *name == '\0') {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!is_library(l)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    sg_lock();
    struct sg_function *k = sg_module_function(l, name);
    if (k == NULL && l->opaque) {
        k = sg_module_add(l, name, strlen(name));
    }
    sg_unlock();
    if (k == NULL) {
        return CUDA_ERROR_NOT_FOUND;
    }
    *out = k;
    return CUDA_SUCCESS;
}

SG_API(cuLibraryGetKernelCount, (unsigned *count, CUlibrary l)) {
    SG_ENTER();
    if (count == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!is_library(l)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    *count = l->function_count;
    return CUDA_SUCCESS;
}

SG_API(cuLibraryEnumerateKernels, (CUkernel * out, unsigned count, CUlibrary l)) {
    SG_ENTER();
    if (out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!is_library(l)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    for (uint32_t i = 0; i < count && i < l->function_count; i++) {
        out[i] = l->functions[i];
    }
    return CUDA_SUCCESS;
}

SG_API(cuLibraryGetModule, (CUmodule * out, CUlibrary l)) {
    SG_ENTER_CTX(ctx);
    if (out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!is_library(l)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    sg_lock();
    if (l->as_module == NULL) {
        l->as_module = sg_object(sizeof(*l->as_module), SG_MODULE);
        if (l->as_module != NULL) {
            l->as_module->owner = l;
            l->as_module->ctx = ctx;
        }
    }
    *out = l->as_module;
    sg_unlock();
    return *out == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

/* A library's variable gets its memory in the first context that asks for it. */
SG_API(cuLibraryGetGlobal, (CUdeviceptr * p, size_t *bytes, CUlibrary l, const char *name)) {
    SG_ENTER_CTX(ctx);
    if (name == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!is_library(l)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    CUresult rc = CUDA_ERROR_NOT_FOUND;
    sg_lock();
    for (uint32_t i = 0; i < l->global_count; i++) {
        struct sg_global *g = &l->globals[i];
        if (strcmp(g->name, name) != 0) {
            continue;
        }
        rc = g->address != 0 ? CUDA_SUCCESS : sg_alloc(ctx, g->size, SG_MEM_DEVICE, 0, &g->address);
        if (rc == CUDA_SUCCESS && p != NULL) {
            *p = g->address;
        }
        if (rc == CUDA_SUCCESS && bytes != NULL) {
            *bytes = g->size;
        }
        break;
    }
    sg_unlock();
    return rc;
}

static bool is_kernel(CUkernel k) {
    return k != NULL && k->magic == SG_KERNEL;
}

SG_API(cuKernelGetFunction, (CUfunction * out, CUkernel k)) {
    SG_ENTER_CTX(ctx);
    (void)ctx;
    if (out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!is_kernel(k)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    sg_lock();
    if (k->twin == NULL) {
        struct sg_function *f = sg_object(sizeof(*f), SG_FUNCTION);
        if (f != NULL) {
            f->spec = k->spec;
            f->module = k->module;
            f->twin = k;
            k->twin = f;
        }
    }
    *out = k->twin;
    sg_unlock();
    return *out == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

SG_API(cuKernelGetLibrary, (CUlibrary * out, CUkernel k)) {
    SG_ENTER();
    if (out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!is_kernel(k)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    *out = k->module;
    return CUDA_SUCCESS;
}

SG_API(cuKernelGetName, (const char **name, CUkernel k)) {
    SG_ENTER();
    if (name == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!is_kernel(k)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    *name = k->spec->name;
    return CUDA_SUCCESS;
}

SG_API(cuKernelGetParamCount, (CUkernel k, size_t *count)) {
    SG_ENTER();
    if (count == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!is_kernel(k)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    *count = k->spec->param_count;
    return CUDA_SUCCESS;
}

SG_API(cuKernelGetParamInfo, (CUkernel k, size_t index, size_t *offset, size_t *size)) {
    SG_ENTER();
    if (!is_kernel(k)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (offset == NULL || index >= k->spec->param_count) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *offset = k->spec->param_offset[index];
    if (size != NULL) {
        *size = k->spec->param_size[index];
    }
    return CUDA_SUCCESS;
}
