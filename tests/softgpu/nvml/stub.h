/* What a name without a definition answers. */
#ifndef SOFTGPU_NVML_STUB_H
#define SOFTGPU_NVML_STUB_H

#include "nvml.h"

/* Counts the call in the state file, and answers that the operation is not supported. */
nvmlReturn_t sg_nvml_stub(const char *name);

#endif
