/* Exported names: their parts, and since when they exist. */
#ifndef SOFTGPU_SINCE_H
#define SOFTGPU_SINCE_H

#include <stddef.h>

/* First driver version with this export: 11020 for 11.2. */
unsigned sg_since(const char *name);

/* "cuMemcpyHtoDAsync_v2_ptsz": the base is "cuMemcpyHtoDAsync", the version 2. */
size_t sg_base_length(const char *name);
unsigned sg_version_of(const char *name);
int sg_is_per_thread(const char *name);

#endif /* SOFTGPU_SINCE_H */
