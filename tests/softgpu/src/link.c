/* Linking PTX into one module. There is nothing to compile: the texts are put behind each other,
 * and the result loads like any other PTX. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "driver.h"

enum { INPUT_PTX = 1 };

struct sg_link {
    char *text;
    size_t size;
};

static CUresult create(struct sg_link **out) {
    if (out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = calloc(1, sizeof(**out));
    return *out == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

SG_API(cuLinkCreate_v2, (unsigned count, const int *options, void **values, struct sg_link **out)) {
    SG_ENTER_CTX(ctx);
    (void)ctx;
    (void)count;
    (void)options;
    (void)values;
    return create(out);
}

SG_API(cuLinkAddData_v2, (struct sg_link * l, int type, const void *data, size_t size,
                          const char *name, unsigned count, const int *options, void **values)) {
    SG_ENTER_CTX(ctx);
    (void)ctx;
    (void)name;
    (void)count;
    (void)options;
    (void)values;
    if (l == NULL || data == NULL || size == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (type != INPUT_PTX) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    size = strnlen(data, size);
    char *text = realloc(l->text, l->size + size + 2);
    if (text == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memcpy(text + l->size, data, size);
    l->text = text;
    l->size += size;
    l->text[l->size++] = '\n';
    l->text[l->size] = '\0';
    return CUDA_SUCCESS;
}

SG_API(cuLinkComplete, (struct sg_link * l, void **image, size_t *size)) {
    SG_ENTER_CTX(ctx);
    (void)ctx;
    if (l == NULL || image == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (l->text == NULL) {
        return CUDA_ERROR_INVALID_IMAGE;
    }
    *image = l->text;
    if (size != NULL) {
        *size = l->size + 1;
    }
    return CUDA_SUCCESS;
}

SG_API(cuLinkDestroy, (struct sg_link * l)) {
    SG_ENTER();
    if (l == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    free(l->text);
    free(l);
    return CUDA_SUCCESS;
}
