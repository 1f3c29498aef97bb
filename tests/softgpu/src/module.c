/* Modules: from an image to functions and globals. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver.h"

static bool is_elf(const unsigned char *p) {
    return memcmp(p, "\177ELF", 4) == 0;
}

static uint32_t word32(const unsigned char *p) {
    uint32_t v;
    memcpy(&v, p, sizeof(v));
    return v;
}

/* A fat binary, or the wrapper that the compiler puts around it. */
static bool is_fatbin(const unsigned char *p) {
    uint32_t magic = word32(p);
    return magic == 0xba55ed50u || magic == 0x466243b1u;
}

CUresult sg_module_parse(struct sg_module *m, const void *image) {
    const unsigned char *p = image;
    if (is_elf(p) || is_fatbin(p)) {
        m->opaque = true; /* machine code: any name may be in it, its kernels are not known */
        return CUDA_SUCCESS;
    }
    if (!sg_ptx_parse(m, image)) {
        return CUDA_ERROR_INVALID_IMAGE;
    }
    return CUDA_SUCCESS;
}

void sg_module_close(struct sg_module *m) {
    for (uint32_t i = 0; i < m->function_count; i++) {
        m->functions[i]->magic = SG_DEAD;
        if (m->functions[i]->twin != NULL) {
            m->functions[i]->twin->magic = SG_DEAD;
        }
    }
    for (uint32_t i = 0; i < m->global_count; i++) {
        if (m->globals[i].address != 0) {
            (void)sg_free(m->globals[i].address);
        }
    }
    if (m->as_module != NULL) {
        m->as_module->magic = SG_DEAD;
    }
    m->magic = SG_DEAD;
}

static CUresult load(struct sg_ctx *ctx, CUmodule *out, const void *image) {
    if (out == NULL || image == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sg_module *m = sg_object(sizeof(*m), SG_MODULE);
    if (m == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    m->ctx = ctx;
    CUresult rc = sg_module_parse(m, image);
    for (uint32_t i = 0; rc == CUDA_SUCCESS && i < m->global_count; i++) {
        sg_lock();
        rc = sg_alloc(ctx, m->globals[i].size, SG_MEM_DEVICE, 0, &m->globals[i].address);
        sg_unlock();
    }
    if (rc == CUDA_SUCCESS) {
        *out = m;
    } else {
        sg_lock();
        sg_module_close(m);
        sg_unlock();
    }
    return rc;
}

SG_API(cuModuleLoadData, (CUmodule * out, const void *image)) {
    SG_ENTER_CTX(ctx);
    return load(ctx, out, image);
}

SG_API(cuModuleLoadDataEx,
       (CUmodule * out, const void *image, unsigned options, const int *option, void **values)) {
    SG_ENTER_CTX(ctx);
    (void)options; /* they steer a compiler that is not here */
    (void)option;
    (void)values;
    return load(ctx, out, image);
}

SG_API(cuModuleLoadFatBinary, (CUmodule * out, const void *image)) {
    SG_ENTER_CTX(ctx);
    return load(ctx, out, image);
}

static char *read_file(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat sb;
    if (fd < 0 || fstat(fd, &sb) != 0 || sb.st_size > 1 << 30) {
        if (fd >= 0) {
            close(fd);
        }
        return NULL;
    }
    size_t size = (size_t)sb.st_size;
    char *text = calloc(1, size + 8);
    size_t have = 0;
    while (text != NULL && have < size) {
        ssize_t n = read(fd, text + have, size - have);
        if (n <= 0) {
            break;
        }
        have += (size_t)n;
    }
    close(fd);
    return text;
}

SG_API(cuModuleLoad, (CUmodule * out, const char *path)) {
    SG_ENTER_CTX(ctx);
    if (path == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    char *image = read_file(path);
    if (image == NULL) {
        return CUDA_ERROR_FILE_NOT_FOUND;
    }
    CUresult rc = load(ctx, out, image);
    free(image);
    return rc;
}

SG_API(cuModuleUnload, (CUmodule m)) {
    SG_ENTER_CTX(ctx);
    if (m == NULL || m->magic != SG_MODULE) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    CUresult rc = CUDA_SUCCESS;
    if (__atomic_load_n(&sg.pending, __ATOMIC_ACQUIRE) != 0) {
        rc = sg_wait_ctx(ctx);
    }
    sg_lock();
    sg_module_close(m);
    sg_unlock();
    return rc;
}

/* Finds a name; an opaque image has every name. */
static struct sg_function *find(struct sg_module *m, const char *name) {
    struct sg_function *f = sg_module_function(m, name);
    return f == NULL && m->opaque ? sg_module_add(m, name, strlen(name)) : f;
}

SG_API(cuModuleGetFunction, (CUfunction * out, CUmodule m, const char *name)) {
    SG_ENTER_CTX(ctx);
    (void)ctx;
    if (out == NULL || name == NULL || *name == '\0') {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (m == NULL || m->magic != SG_MODULE) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    sg_lock();
    struct sg_function *f;
    if (m->owner != NULL) { /* a library's module: the function of its kernel */
        struct sg_function *k = find(m->owner, name);
        sg_unlock();
        return k == NULL ? CUDA_ERROR_NOT_FOUND : cuKernelGetFunction(out, k);
    }
    f = find(m, name);
    sg_unlock();
    if (f == NULL) {
        return CUDA_ERROR_NOT_FOUND;
    }
    *out = f;
    return CUDA_SUCCESS;
}

static CUresult get_global(struct sg_module *m, CUdeviceptr *p, size_t *bytes, const char *name) {
    for (uint32_t i = 0; i < m->global_count; i++) {
        if (strcmp(m->globals[i].name, name) == 0) {
            if (p != NULL) {
                *p = m->globals[i].address;
            }
            if (bytes != NULL) {
                *bytes = m->globals[i].size;
            }
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_NOT_FOUND;
}

SG_API(cuModuleGetGlobal_v2, (CUdeviceptr * p, size_t *bytes, CUmodule m, const char *name)) {
    SG_ENTER_CTX(ctx);
    (void)ctx;
    if (name == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (m == NULL || m->magic != SG_MODULE) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    return get_global(m, p, bytes, name);
}

SG_API(cuModuleGetFunctionCount, (unsigned *count, CUmodule m)) {
    SG_ENTER_CTX(ctx);
    (void)ctx;
    if (count == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (m == NULL || m->magic != SG_MODULE) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    *count = m->function_count;
    return CUDA_SUCCESS;
}

SG_API(cuModuleEnumerateFunctions, (CUfunction * out, unsigned count, CUmodule m)) {
    SG_ENTER_CTX(ctx);
    (void)ctx;
    if (out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (m == NULL || m->magic != SG_MODULE) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    for (uint32_t i = 0; i < count && i < m->function_count; i++) {
        out[i] = m->functions[i];
    }
    return CUDA_SUCCESS;
}

SG_API(cuModuleGetLoadingMode, (int *mode)) {
    SG_ENTER();
    if (mode == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *mode = 1; /* eager */
    return CUDA_SUCCESS;
}
