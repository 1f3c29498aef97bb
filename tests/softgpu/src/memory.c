/* Allocations: where they are, whose they are, and what they count against. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "driver.h"
#include "mig.h"

/* Allocations are counted in these; the smallest thing a real driver gives out. */
static const size_t SG_ALLOC_UNIT = 512;

static struct {
    struct sg_block **blocks; /* sorted by base */
    size_t count;
    size_t room;
} table;

/* Index of the first block that begins above the address. */
static size_t above(uintptr_t address) {
    size_t lo = 0;
    size_t hi = table.count;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (table.blocks[mid]->base <= address) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

struct sg_block *sg_block_find(uintptr_t address) {
    size_t i = above(address);
    if (i == 0) {
        return NULL;
    }
    struct sg_block *b = table.blocks[i - 1];
    return address - b->base < b->size ? b : NULL;
}

struct sg_block *sg_block_add(const struct sg_block *src) {
    if (table.count == table.room) {
        size_t room = table.room ? table.room * 2 : 256;
        struct sg_block **p = realloc(table.blocks, room * sizeof(*p));
        if (p == NULL) {
            return NULL;
        }
        table.blocks = p;
        table.room = room;
    }
    struct sg_block *b = malloc(sizeof(*b));
    if (b == NULL) {
        return NULL;
    }
    *b = *src;
    b->id = ++sg.next_id;
    size_t i = above(b->base);
    memmove(&table.blocks[i + 1], &table.blocks[i], (table.count - i) * sizeof(*table.blocks));
    table.blocks[i] = b;
    table.count++;
    return b;
}

void sg_block_remove(struct sg_block *b) {
    size_t i = above(b->base) - 1;
    table.count--;
    memmove(&table.blocks[i], &table.blocks[i + 1], (table.count - i) * sizeof(*table.blocks));
    free(b);
}

bool sg_range_ok(const void *p, size_t size) {
    uintptr_t at = (uintptr_t)p;
    while (size > 0) {
        const struct sg_block *b = sg_block_find(at);
        if (b == NULL || b->freed || b->type == SG_MEM_RESERVED ||
            (b->type == SG_MEM_MAPPED && !b->access)) {
            return false;
        }
        size_t here = b->size - (at - b->base);
        if (here >= size) {
            return true;
        }
        at += here;
        size -= here;
    }
    return true;
}

CUresult sg_charge(uint32_t unit, uint64_t bytes) {
    struct softgpu_state *st = sg.node.st;
    CUresult rc = CUDA_ERROR_OUT_OF_MEMORY;
    for (int round = 0; round < 2 && rc != CUDA_SUCCESS; round++) {
        sg_state_lock(&sg.node);
        struct softgpu_unit *u = &st->units[unit];
        if (round == 1) {
            sg_reap(&sg.node, sg.proc, true); /* before saying no: the dead need none */
        }
        if (bytes <= sg_unit_free_bytes(st, unit)) {
            st->procs[sg.proc].used_bytes[unit] += bytes;
            u->used_bytes += bytes;
            st->devices[u->device].used_bytes += bytes;
            rc = CUDA_SUCCESS;
        }
        sg_state_unlock(&sg.node);
    }
    return rc;
}

void sg_discharge(uint32_t unit, uint64_t bytes) {
    struct softgpu_state *st = sg.node.st;
    sg_state_lock(&sg.node);
    st->procs[sg.proc].used_bytes[unit] -= bytes;
    st->units[unit].used_bytes -= bytes;
    st->devices[st->units[unit].device].used_bytes -= bytes;
    sg_state_unlock(&sg.node);
}

static bool counts(enum sg_mem_type type) {
    return type == SG_MEM_DEVICE || type == SG_MEM_MANAGED || type == SG_MEM_ASYNC;
}

CUresult sg_alloc(struct sg_ctx *ctx, size_t size, enum sg_mem_type type, unsigned flags,
                  CUdeviceptr *out) {
    if (size == 0 || size > (size_t)1 << 46) {
        return size == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
    }
    size_t span = (size + SG_ALLOC_UNIT - 1) / SG_ALLOC_UNIT * SG_ALLOC_UNIT;
    CUresult rc = counts(type) ? sg_charge(ctx->unit, span) : CUDA_SUCCESS;
    if (rc != CUDA_SUCCESS) {
        return rc;
    }
    void *p = sg_va_take(span);
    struct sg_block b = {.base = (uintptr_t)p,
                         .size = size,
                         .span = span,
                         .type = type,
                         .ctx = ctx,
                         .unit = ctx->unit,
                         .flags = flags,
                         .access = true};
    if (p != NULL &&
        (mmap(p, span, PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED ||
         sg_block_add(&b) == NULL)) {
        sg_va_give(p, span);
        p = NULL;
    }
    if (p == NULL) {
        if (counts(type)) {
            sg_discharge(ctx->unit, span);
        }
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    sg_count(SOFTGPU_COUNT_ALLOC, 1);
    *out = (CUdeviceptr)(uintptr_t)p;
    return CUDA_SUCCESS;
}

CUresult sg_free(CUdeviceptr p) {
    struct sg_block *b = sg_block_find((uintptr_t)p);
    if (b == NULL || b->base != (uintptr_t)p || b->type == SG_MEM_REGISTERED ||
        b->type == SG_MEM_RESERVED || b->type == SG_MEM_MAPPED) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (counts(b->type)) {
        sg_discharge(b->unit, b->span);
    }
    sg_va_give((void *)b->base, b->span);
    sg_block_remove(b);
    sg_count(SOFTGPU_COUNT_FREE, 1);
    return CUDA_SUCCESS;
}

void sg_free_ctx(struct sg_ctx *ctx) {
    for (size_t i = table.count; i-- > 0;) {
        struct sg_block *b = table.blocks[i];
        if (b->ctx != ctx) {
            continue;
        }
        if (b->type == SG_MEM_REGISTERED) {
            sg_block_remove(b);
        } else if (b->type != SG_MEM_RESERVED && b->type != SG_MEM_MAPPED) {
            (void)sg_free((CUdeviceptr)b->base);
        }
    }
}

bool sg_is_pinned(const void *p) {
    return sg_block_find((uintptr_t)p) != NULL;
}

void sg_memory_forget(void) {
    table.count = 0;
}
