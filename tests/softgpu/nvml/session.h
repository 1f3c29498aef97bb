/* The open node, for the files that look into it. */
#ifndef SOFTGPU_NVML_SESSION_H
#define SOFTGPU_NVML_SESSION_H

#include "internal.h"
#include "state.h"

/* The node, held open until sg_nvml_leave, or NULL before nvmlInit. */
struct sg_node *sg_nvml_enter(void);
void sg_nvml_leave(void);

/* The index behind a handle; false for what is none. */
bool sg_nvml_index(const struct sg_node *node, nvmlDevice_t device, unsigned *index);

#endif
