/* Device addresses: a range of host address space that is reserved once, given out in whole
 * granules. A free granule is inaccessible, so a stale pointer faults instead of lying. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "driver.h"

static const size_t SG_VA_BYTES = (size_t)1 << 43;
static const size_t SG_VA_SMALLEST = (size_t)1 << 36;
static const size_t SG_GRANULE = (size_t)1 << 16;

struct hole {
    uintptr_t base;
    size_t size;
};

static struct {
    struct hole *holes; /* sorted, never adjacent */
    size_t count;
    size_t room;
} va;

static bool insert(size_t at, uintptr_t base, size_t size) {
    if (va.count == va.room) {
        size_t room = va.room ? va.room * 2 : 64;
        struct hole *h = realloc(va.holes, room * sizeof(*h));
        if (h == NULL) {
            return false;
        }
        va.holes = h;
        va.room = room;
    }
    memmove(&va.holes[at + 1], &va.holes[at], (va.count - at) * sizeof(*va.holes));
    va.holes[at] = (struct hole){base, size};
    va.count++;
    return true;
}

static void erase(size_t at) {
    va.count--;
    memmove(&va.holes[at], &va.holes[at + 1], (va.count - at) * sizeof(*va.holes));
}

/* As much as the process may have: some run under a limit on address space. */
static bool reserve(void) {
    for (size_t size = SG_VA_BYTES; size >= SG_VA_SMALLEST; size /= 2) {
        void *p = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p != MAP_FAILED) {
            madvise(p, size, MADV_DONTDUMP);
            uintptr_t base = ((uintptr_t)p + SG_GRANULE - 1) / SG_GRANULE * SG_GRANULE;
            return insert(0, base, size - SG_GRANULE);
        }
    }
    return false;
}

static size_t rounded(size_t size) {
    return (size + SG_GRANULE - 1) / SG_GRANULE * SG_GRANULE;
}

void *sg_va_take(size_t size) {
    if (va.room == 0 && !reserve()) {
        return NULL;
    }
    size = rounded(size);
    for (size_t i = 0; i < va.count; i++) {
        if (va.holes[i].size >= size) {
            uintptr_t p = va.holes[i].base;
            va.holes[i].base += size;
            va.holes[i].size -= size;
            if (va.holes[i].size == 0) {
                erase(i);
            }
            return (void *)p;
        }
    }
    return NULL;
}

void sg_va_give(void *p, size_t size) {
    size = rounded(size);
    /* Should this fail, the old pages stay: wasteful, but nothing is handed out twice. */
    (void)mmap(p, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    uintptr_t base = (uintptr_t)p;
    size_t i = 0;
    while (i < va.count && va.holes[i].base < base) {
        i++;
    }
    bool left = i > 0 && va.holes[i - 1].base + va.holes[i - 1].size == base;
    bool right = i < va.count && base + size == va.holes[i].base;
    if (left && right) {
        va.holes[i - 1].size += size + va.holes[i].size;
        erase(i);
    } else if (left) {
        va.holes[i - 1].size += size;
    } else if (right) {
        va.holes[i].base = base;
        va.holes[i].size += size;
    } else {
        (void)insert(i, base, size); /* without memory the hole is lost, nothing else */
    }
}
