/* What copies and sets do to memory. */
#include <string.h>

#include "driver.h"

static bool plane_ok(const struct sg_plane *p, size_t width, size_t height, size_t depth) {
    size_t span = (depth - 1) * p->slice + (height - 1) * p->pitch + width;
    return sg_range_ok(p->base, span);
}

/* A host side that is pageable is known to the C library only; the driver cannot check it. */
static bool side_ok(const struct sg_plane *p, size_t width, size_t height, size_t depth) {
    return sg_block_find((uintptr_t)p->base) == NULL || plane_ok(p, width, height, depth);
}

CUresult sg_run_copy(const struct sg_work *w) {
    const struct sg_plane *to = &w->copy.to;
    const struct sg_plane *from = &w->copy.from;
    if (w->copy.width == 0 || w->copy.height == 0 || w->copy.depth == 0) {
        return CUDA_SUCCESS;
    }
    if (!side_ok(to, w->copy.width, w->copy.height, w->copy.depth) ||
        (w->copy.staged == NULL && !side_ok(from, w->copy.width, w->copy.height, w->copy.depth))) {
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    for (size_t z = 0; z < w->copy.depth; z++) {
        for (size_t y = 0; y < w->copy.height; y++) {
            memmove(to->base + z * to->slice + y * to->pitch,
                    from->base + z * from->slice + y * from->pitch, w->copy.width);
        }
    }
    return CUDA_SUCCESS;
}

static void set_row(unsigned char *row, uint32_t value, uint32_t size, size_t bytes) {
    if (size == 1) {
        memset(row, (int)value, bytes);
        return;
    }
    for (size_t i = 0; i < bytes; i += size) {
        memcpy(row + i, &value, size); /* little endian, as the devices are */
    }
}

CUresult sg_run_set(const struct sg_work *w) {
    if (w->set.width == 0 || w->set.height == 0) {
        return CUDA_SUCCESS;
    }
    if (!plane_ok(&w->set.to, w->set.width, w->set.height, 1)) {
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    for (size_t y = 0; y < w->set.height; y++) {
        set_row(w->set.to.base + y * w->set.to.pitch, w->set.value, w->set.size, w->set.width);
    }
    return CUDA_SUCCESS;
}
