/* Virtual memory management: physical allocations, reserved ranges, mappings, access. A physical
 * allocation is a memfd, so that two mappings of it see the same bytes. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "driver.h"

static const size_t SG_VMM_GRANULARITY = (size_t)2 << 20;

struct physical {
    struct physical *next;
    uint64_t handle;
    CUmemAllocationProp prop;
    size_t size;
    uint32_t unit;
    int fd;
    int references; /* the handle itself and every mapping */
    bool counted;   /* against the device's memory */
};

static struct physical *physicals;

static struct physical *find(uint64_t handle) {
    for (struct physical *p = physicals; p != NULL; p = p->next) {
        if (p->handle == handle) {
            return p;
        }
    }
    return NULL;
}

static void drop(struct physical *p) {
    if (--p->references > 0) {
        return;
    }
    for (struct physical **link = &physicals; *link != NULL; link = &(*link)->next) {
        if (*link == p) {
            *link = p->next;
            break;
        }
    }
    if (p->counted) {
        sg_discharge(p->unit, p->size);
    }
    close(p->fd);
    free(p);
    sg_count(SOFTGPU_COUNT_FREE, 1);
}

static CUresult check_prop(const CUmemAllocationProp *prop) {
    if (prop == NULL || prop->type != 1) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (prop->requestedHandleTypes != 0) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    switch (prop->location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        return sg_device_ok(prop->location.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

SG_API(cuMemGetAllocationGranularity,
       (size_t * granularity, const CUmemAllocationProp *prop, int option)) {
    SG_ENTER();
    if (granularity == NULL || option < 0 || option > 1) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult rc = check_prop(prop);
    if (rc == CUDA_SUCCESS) {
        *granularity = SG_VMM_GRANULARITY;
    }
    return rc;
}

static CUresult create(struct physical *p) {
    p->counted = p->prop.location.type == CU_MEM_LOCATION_TYPE_DEVICE;
    if (p->counted) {
        p->unit = sg_unit_index(p->prop.location.id);
        CUresult rc = sg_charge(p->unit, p->size);
        if (rc != CUDA_SUCCESS) {
            return rc;
        }
    }
    p->fd = memfd_create("softgpu", MFD_CLOEXEC);
    if (p->fd < 0 || ftruncate(p->fd, (off_t)p->size) != 0) {
        if (p->fd >= 0) {
            close(p->fd);
        }
        if (p->counted) {
            sg_discharge(p->unit, p->size);
        }
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    p->references = 1;
    p->handle = ++sg.next_id;
    p->next = physicals;
    physicals = p;
    sg_count(SOFTGPU_COUNT_ALLOC, 1);
    return CUDA_SUCCESS;
}

SG_API(cuMemCreate, (CUmemGenericAllocationHandle * out, size_t size,
                     const CUmemAllocationProp *prop, unsigned long long flags)) {
    SG_ENTER();
    if (out == NULL || size == 0 || size % SG_VMM_GRANULARITY != 0 || flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult rc = check_prop(prop);
    struct physical *p = rc == CUDA_SUCCESS ? calloc(1, sizeof(*p)) : NULL;
    if (p == NULL) {
        return rc != CUDA_SUCCESS ? rc : CUDA_ERROR_OUT_OF_MEMORY;
    }
    p->prop = *prop;
    p->size = size;
    sg_lock();
    rc = create(p);
    if (rc == CUDA_SUCCESS) {
        *out = p->handle;
    }
    sg_unlock();
    if (rc != CUDA_SUCCESS) {
        free(p);
    }
    return rc;
}

SG_API(cuMemRelease, (CUmemGenericAllocationHandle handle)) {
    SG_ENTER();
    sg_lock();
    struct physical *p = find(handle);
    CUresult rc = p == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    if (p != NULL) {
        drop(p);
    }
    sg_unlock();
    return rc;
}

SG_API(cuMemAddressReserve, (CUdeviceptr * out, size_t size, size_t alignment, CUdeviceptr wish,
                             unsigned long long flags)) {
    SG_ENTER();
    (void)wish; /* a hint, which a driver may pass over */
    if (out == NULL || size == 0 || size % SG_VMM_GRANULARITY != 0 || flags != 0 ||
        (alignment & (alignment - 1)) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    alignment = alignment < SG_VMM_GRANULARITY ? SG_VMM_GRANULARITY : alignment;
    sg_lock();
    unsigned char *p = sg_va_take(size + alignment);
    CUresult rc = CUDA_ERROR_OUT_OF_MEMORY;
    if (p != NULL) {
        uintptr_t base = ((uintptr_t)p + alignment - 1) / alignment * alignment;
        size_t before = base - (uintptr_t)p;
        if (before > 0) {
            sg_va_give(p, before);
        }
        if (alignment > before) {
            sg_va_give((void *)(base + size), alignment - before);
        }
        struct sg_block b = {.base = base, .size = size, .span = size, .type = SG_MEM_RESERVED};
        if (sg_block_add(&b) != NULL) {
            *out = (CUdeviceptr)base;
            rc = CUDA_SUCCESS;
        }
    }
    sg_unlock();
    return rc;
}

SG_API(cuMemAddressFree, (CUdeviceptr p, size_t size)) {
    SG_ENTER();
    sg_lock();
    struct sg_block *b = sg_block_find((uintptr_t)p);
    CUresult rc = CUDA_ERROR_INVALID_VALUE;
    if (b != NULL && b->type == SG_MEM_RESERVED && b->base == (uintptr_t)p && b->size == size) {
        sg_va_give((void *)b->base, size);
        sg_block_remove(b);
        rc = CUDA_SUCCESS;
    }
    sg_unlock();
    return rc;
}

/* Cuts [at, at + size) out of a reserved block; what is left of it stays reserved. */
static bool carve(uintptr_t at, size_t size) {
    struct sg_block *b = sg_block_find(at);
    if (b == NULL || b->type != SG_MEM_RESERVED || at + size > b->base + b->size) {
        return false;
    }
    struct sg_block front = *b;
    struct sg_block back = *b;
    front.size = front.span = at - b->base;
    back.base = at + size;
    back.size = back.span = b->base + b->size - (at + size);
    sg_block_remove(b);
    return (front.size == 0 || sg_block_add(&front) != NULL) &&
           (back.size == 0 || sg_block_add(&back) != NULL);
}

SG_API(cuMemMap, (CUdeviceptr at, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags)) {
    SG_ENTER();
    if (size == 0 || size % SG_VMM_GRANULARITY != 0 || at % SG_VMM_GRANULARITY != 0 || flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sg_lock();
    struct physical *p = find(handle);
    CUresult rc = CUDA_ERROR_INVALID_VALUE;
    if (p != NULL && offset <= p->size && size <= p->size - offset && carve((uintptr_t)at, size)) {
        struct sg_block b = {.base = (uintptr_t)at,
                             .size = size,
                             .span = size,
                             .type = SG_MEM_MAPPED,
                             .unit = p->unit,
                             .handle = handle,
                             .ctx = NULL};
        void *m = mmap((void *)(uintptr_t)at, size, PROT_NONE, MAP_SHARED | MAP_FIXED, p->fd,
                       (off_t)offset);
        if (m != MAP_FAILED && sg_block_add(&b) != NULL) {
            p->references++;
            rc = CUDA_SUCCESS;
        } else {
            rc = CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    sg_unlock();
    return rc;
}

/* Reserved neighbours become one again. */
static void rejoin(uintptr_t at, size_t size) {
    struct sg_block joined = {.base = at, .size = size, .type = SG_MEM_RESERVED};
    struct sg_block *before = sg_block_find(at - 1);
    if (before != NULL && before->type == SG_MEM_RESERVED) {
        joined.base = before->base;
        joined.size += before->size;
        sg_block_remove(before);
    }
    struct sg_block *after = sg_block_find(at + size);
    if (after != NULL && after->type == SG_MEM_RESERVED) {
        joined.size += after->size;
        sg_block_remove(after);
    }
    joined.span = joined.size;
    (void)sg_block_add(&joined);
}

SG_API(cuMemUnmap, (CUdeviceptr at, size_t size)) {
    SG_ENTER();
    sg_lock();
    CUresult rc = CUDA_ERROR_INVALID_VALUE;
    uintptr_t end = (uintptr_t)at + size;
    for (uintptr_t p = (uintptr_t)at; p < end;) {
        struct sg_block *b = sg_block_find(p);
        if (b == NULL || b->type != SG_MEM_MAPPED || b->base != p || b->base + b->size > end) {
            rc = CUDA_ERROR_INVALID_VALUE;
            break;
        }
        struct physical *ph = find(b->handle);
        size_t step = b->size;
        (void)mmap((void *)p, step, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
        sg_block_remove(b);
        rejoin(p, step);
        if (ph != NULL) {
            drop(ph);
        }
        p += step;
        rc = CUDA_SUCCESS;
    }
    sg_unlock();
    return rc;
}

SG_API(cuMemSetAccess, (CUdeviceptr at, size_t size, const CUmemAccessDesc *desc, size_t count)) {
    SG_ENTER();
    if (desc == NULL || count == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    int prot = PROT_NONE;
    for (size_t i = 0; i < count; i++) {
        if (desc[i].flags != 0 && desc[i].flags != 1 && desc[i].flags != 3) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        prot |= desc[i].flags == 3 ? PROT_READ | PROT_WRITE : desc[i].flags == 1 ? PROT_READ : 0;
    }
    sg_lock();
    CUresult rc = CUDA_ERROR_INVALID_VALUE;
    uintptr_t end = (uintptr_t)at + size;
    for (uintptr_t p = (uintptr_t)at; p < end;) {
        struct sg_block *b = sg_block_find(p);
        if (b == NULL || b->type != SG_MEM_MAPPED || b->base != p || b->base + b->size > end) {
            rc = CUDA_ERROR_INVALID_VALUE;
            break;
        }
        b->access = prot != PROT_NONE;
        b->flags = (unsigned)prot;
        rc = mprotect((void *)p, b->size, prot) == 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
        p += b->size;
    }
    sg_unlock();
    return rc;
}

SG_API(cuMemGetAccess, (unsigned long long *flags, const CUmemLocation *location, CUdeviceptr p)) {
    SG_ENTER();
    if (flags == NULL || location == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sg_lock();
    const struct sg_block *b = sg_block_find((uintptr_t)p);
    CUresult rc = CUDA_ERROR_INVALID_VALUE;
    if (b != NULL && b->type == SG_MEM_MAPPED) {
        *flags = !b->access ? 0 : (b->flags & PROT_WRITE) ? 3 : 1;
        rc = CUDA_SUCCESS;
    }
    sg_unlock();
    return rc;
}

SG_API(cuMemRetainAllocationHandle, (CUmemGenericAllocationHandle * out, void *address)) {
    SG_ENTER();
    if (out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sg_lock();
    const struct sg_block *b = sg_block_find((uintptr_t)address);
    struct physical *p = b != NULL && b->type == SG_MEM_MAPPED ? find(b->handle) : NULL;
    if (p != NULL) {
        p->references++;
        *out = p->handle;
    }
    sg_unlock();
    return p == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

SG_API(cuMemGetAllocationPropertiesFromHandle,
       (CUmemAllocationProp * out, CUmemGenericAllocationHandle handle)) {
    SG_ENTER();
    if (out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sg_lock();
    const struct physical *p = find(handle);
    if (p != NULL) {
        *out = p->prop;
    }
    sg_unlock();
    return p == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

SG_API(cuMemExportToShareableHandle,
       (void *out, CUmemGenericAllocationHandle handle, int type, unsigned long long flags)) {
    SG_ENTER();
    (void)type;
    (void)flags;
    sg_lock();
    bool known = find(handle) != NULL;
    sg_unlock();
    return out == NULL || !known ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
}
