/* Arrays: rows of elements that only copies can reach. Here they are pitched memory. */
#include <string.h>

#include "driver.h"

/* Bytes of one channel by CUarray_format; 0: not supported. */
static size_t channel_bytes(int format) {
    switch (format) {
    case 0x01: /* unsigned, signed char */
    case 0x08:
        return 1;
    case 0x02: /* short, half */
    case 0x09:
    case 0x10:
        return 2;
    case 0x03: /* int, float */
    case 0x0a:
    case 0x20:
        return 4;
    default:
        return 0;
    }
}

static CUresult create(struct sg_ctx *ctx, CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *d) {
    size_t element = channel_bytes(d->Format) * d->NumChannels;
    if (out == NULL || element == 0 || d->Width == 0 || d->Width > 1 << 20 || d->Height > 1 << 20 ||
        d->Depth > 1 << 20 || (d->Flags & ~0x3fu) != 0 ||
        (d->NumChannels != 1 && d->NumChannels != 2 && d->NumChannels != 4)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sg_array *a = sg_object(sizeof(*a), SG_ARRAY);
    if (a == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    a->desc = *d;
    a->element = element;
    a->pitch = (d->Width * element + 511) / 512 * 512;
    size_t rows = (d->Height == 0 ? 1 : d->Height) * (d->Depth == 0 ? 1 : d->Depth);
    sg_lock();
    CUresult rc = sg_alloc(ctx, a->pitch * rows, SG_MEM_DEVICE, 0, &a->base);
    sg_unlock();
    if (rc == CUDA_SUCCESS) {
        *out = a;
    } else {
        a->magic = SG_DEAD;
    }
    return rc;
}

SG_API(cuArrayCreate_v2, (CUarray * out, const CUDA_ARRAY_DESCRIPTOR *d)) {
    SG_ENTER_CTX(ctx);
    if (d == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUDA_ARRAY3D_DESCRIPTOR full = {
        .Width = d->Width, .Height = d->Height, .Format = d->Format, .NumChannels = d->NumChannels};
    return create(ctx, out, &full);
}

SG_API(cuArray3DCreate_v2, (CUarray * out, const CUDA_ARRAY3D_DESCRIPTOR *d)) {
    SG_ENTER_CTX(ctx);
    return d == NULL ? CUDA_ERROR_INVALID_VALUE : create(ctx, out, d);
}

SG_API(cuArrayDestroy, (CUarray a)) {
    SG_ENTER_CTX(ctx);
    if (a == NULL || a->magic != SG_ARRAY) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    CUresult rc = sg_wait_ctx(ctx);
    sg_lock();
    (void)sg_free(a->base);
    a->magic = SG_DEAD;
    sg_unlock();
    return rc;
}

SG_API(cuArrayGetDescriptor_v2, (CUDA_ARRAY_DESCRIPTOR * out, CUarray a)) {
    SG_ENTER_CTX(ctx);
    (void)ctx;
    if (out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (a == NULL || a->magic != SG_ARRAY) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    *out =
        (CUDA_ARRAY_DESCRIPTOR){a->desc.Width, a->desc.Height, a->desc.Format, a->desc.NumChannels};
    return CUDA_SUCCESS;
}

SG_API(cuArray3DGetDescriptor_v2, (CUDA_ARRAY3D_DESCRIPTOR * out, CUarray a)) {
    SG_ENTER_CTX(ctx);
    (void)ctx;
    if (out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (a == NULL || a->magic != SG_ARRAY) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    *out = a->desc;
    return CUDA_SUCCESS;
}
