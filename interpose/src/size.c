#include "size.h"

/* The formats of array elements that are not one byte wide; others are counted as one byte. */
static uint64_t format_bytes(unsigned format) {
    switch (format) {
    case 0x02: /* unsigned 16 */
    case 0x09: /* signed 16 */
    case 0x10: /* half */
        return 2;
    case 0x03: /* unsigned 32 */
    case 0x0a: /* signed 32 */
    case 0x20: /* float */
        return 4;
    default:
        return 1;
    }
}

static uint64_t at_least_one(uint64_t value) {
    return value == 0 ? 1 : value;
}

static uint64_t volume(uint64_t width, uint64_t height, uint64_t depth, unsigned format,
                       unsigned channels) {
    return width * at_least_one(height) * at_least_one(depth) * format_bytes(format) *
           at_least_one(channels);
}

uint64_t heddle_size_array_v1(const struct heddle_array_v1 *array) {
    return volume(array->width, array->height, 1, array->format, array->channels);
}

uint64_t heddle_size_array(const struct heddle_array *array) {
    return volume(array->width, array->height, 1, array->format, array->channels);
}

uint64_t heddle_size_array3d_v1(const struct heddle_array3d_v1 *array) {
    return volume(array->width, array->height, array->depth, array->format, array->channels);
}

uint64_t heddle_size_array3d(const struct heddle_array3d *array) {
    return volume(array->width, array->height, array->depth, array->format, array->channels);
}

uint64_t heddle_size_mipmapped(const struct heddle_array3d *array, unsigned levels) {
    uint64_t sum = 0;

    for (unsigned level = 0; level < levels && level < 32; level++) {
        sum += volume(at_least_one(array->width >> level), array->height >> level,
                      array->depth >> level, array->format, array->channels);
    }
    return sum;
}
