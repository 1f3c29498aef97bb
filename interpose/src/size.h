/* How much device memory an array takes, as far as its description tells. */
#ifndef HEDDLE_SIZE_H
#define HEDDLE_SIZE_H

#include "driver.h"

uint64_t heddle_size_array_v1(const struct heddle_array_v1 *array);
uint64_t heddle_size_array(const struct heddle_array *array);
uint64_t heddle_size_array3d_v1(const struct heddle_array3d_v1 *array);
uint64_t heddle_size_array3d(const struct heddle_array3d *array);
uint64_t heddle_size_mipmapped(const struct heddle_array3d *array, unsigned levels);

#endif /* HEDDLE_SIZE_H */
