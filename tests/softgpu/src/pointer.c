/* What a pointer is. */
#include <string.h>

#include "driver.h"

enum {
    ATTR_CONTEXT = 1,
    ATTR_MEMORY_TYPE = 2,
    ATTR_DEVICE_POINTER = 3,
    ATTR_HOST_POINTER = 4,
    ATTR_SYNC_MEMOPS = 6,
    ATTR_BUFFER_ID = 7,
    ATTR_IS_MANAGED = 8,
    ATTR_DEVICE_ORDINAL = 9,
    ATTR_LEGACY_IPC = 10,
    ATTR_RANGE_START = 11,
    ATTR_RANGE_SIZE = 12,
    ATTR_MAPPED = 13,
    ATTR_HANDLE_TYPES = 14,
    ATTR_GPUDIRECT = 15,
    ATTR_ACCESS_FLAGS = 16,
    ATTR_POOL = 17,
    ATTR_MAPPING_SIZE = 18,
    ATTR_MAPPING_BASE = 19,
    ATTR_BLOCK_ID = 20
};

static bool on_host(const struct sg_block *b) {
    return b->type == SG_MEM_HOST || b->type == SG_MEM_REGISTERED;
}

static int ordinal_of(const struct sg_block *b) {
    if (b->ctx != NULL) {
        return b->ctx->device;
    }
    for (int d = 0; d < sg.device_count; d++) {
        if (sg_unit_index(d) == b->unit) {
            return d;
        }
    }
    return 0;
}

/* Writes the attribute of a known pointer. Sizes differ by attribute, so each stores its own. */
static CUresult store(void *out, int attribute, const struct sg_block *b, CUdeviceptr p) {
    uint64_t wide;
    uint32_t narrow;
    switch (attribute) {
    case ATTR_CONTEXT:
        memcpy(out, &b->ctx, sizeof(b->ctx));
        return CUDA_SUCCESS;
    case ATTR_MEMORY_TYPE:
        narrow = on_host(b) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        break;
    case ATTR_HOST_POINTER:
        if (!on_host(b) && b->type != SG_MEM_MANAGED) {
            wide = 0;
            memcpy(out, &wide, sizeof(wide));
            return CUDA_ERROR_INVALID_VALUE;
        }
        wide = p;
        memcpy(out, &wide, sizeof(wide));
        return CUDA_SUCCESS;
    case ATTR_DEVICE_POINTER:
    case ATTR_RANGE_START:
    case ATTR_MAPPING_BASE:
        wide = attribute == ATTR_DEVICE_POINTER ? p : b->base;
        memcpy(out, &wide, sizeof(wide));
        return CUDA_SUCCESS;
    case ATTR_BUFFER_ID:
    case ATTR_BLOCK_ID:
        memcpy(out, &b->id, sizeof(b->id));
        return CUDA_SUCCESS;
    case ATTR_RANGE_SIZE:
    case ATTR_MAPPING_SIZE:
        wide = b->size;
        memcpy(out, &wide, sizeof(wide));
        return CUDA_SUCCESS;
    case ATTR_HANDLE_TYPES:
        wide = 0;
        memcpy(out, &wide, sizeof(wide));
        return CUDA_SUCCESS;
    case ATTR_POOL:
        memcpy(out, &b->pool, sizeof(b->pool));
        return CUDA_SUCCESS;
    case ATTR_DEVICE_ORDINAL:
        narrow = (uint32_t)ordinal_of(b);
        break;
    case ATTR_ACCESS_FLAGS:
        narrow = 3;
        break;
    case ATTR_IS_MANAGED: /* these are a byte */
        *(unsigned char *)out = b->type == SG_MEM_MANAGED;
        return CUDA_SUCCESS;
    case ATTR_MAPPED:
        *(unsigned char *)out = b->type != SG_MEM_RESERVED;
        return CUDA_SUCCESS;
    case ATTR_SYNC_MEMOPS:
    case ATTR_LEGACY_IPC:
    case ATTR_GPUDIRECT:
        *(unsigned char *)out = 0;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    memcpy(out, &narrow, sizeof(narrow));
    return CUDA_SUCCESS;
}

SG_API(cuPointerGetAttribute, (void *out, int attribute, CUdeviceptr p)) {
    SG_ENTER();
    if (out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sg_lock();
    const struct sg_block *b = sg_block_find((uintptr_t)p);
    CUresult rc = b == NULL ? CUDA_ERROR_INVALID_VALUE : store(out, attribute, b, p);
    sg_unlock();
    return rc;
}

static void store_unknown(void *out, int attribute) {
    int minus_two = -2; /* "no device" */
    switch (attribute) {
    case ATTR_IS_MANAGED:
    case ATTR_MAPPED:
    case ATTR_SYNC_MEMOPS:
    case ATTR_LEGACY_IPC:
    case ATTR_GPUDIRECT:
        *(unsigned char *)out = 0;
        break;
    case ATTR_DEVICE_ORDINAL:
        memcpy(out, &minus_two, sizeof(minus_two));
        break;
    case ATTR_MEMORY_TYPE:
    case ATTR_ACCESS_FLAGS:
        memset(out, 0, 4);
        break;
    default:
        memset(out, 0, 8);
        break;
    }
}

/* Unlike the single form this one succeeds for a pointer that nobody knows. */
SG_API(cuPointerGetAttributes, (unsigned count, int *attributes, void **out, CUdeviceptr p)) {
    SG_ENTER();
    if (attributes == NULL || out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sg_lock();
    const struct sg_block *b = sg_block_find((uintptr_t)p);
    CUresult rc = CUDA_SUCCESS;
    for (unsigned i = 0; i < count && rc == CUDA_SUCCESS; i++) {
        if (out[i] == NULL || attributes[i] < ATTR_CONTEXT || attributes[i] > ATTR_BLOCK_ID) {
            rc = CUDA_ERROR_INVALID_VALUE;
        } else if (b == NULL || store(out[i], attributes[i], b, p) != CUDA_SUCCESS) {
            store_unknown(out[i], attributes[i]);
        }
    }
    sg_unlock();
    return rc;
}

SG_API(cuPointerSetAttribute, (const void *value, int attribute, CUdeviceptr p)) {
    SG_ENTER();
    sg_lock();
    bool known = sg_block_find((uintptr_t)p) != NULL;
    sg_unlock();
    return value == NULL || attribute != ATTR_SYNC_MEMOPS || !known ? CUDA_ERROR_INVALID_VALUE
                                                                    : CUDA_SUCCESS;
}
