/* What the tests of MIG do again and again. */
#ifndef SOFTGPU_NVML_MIG_CLIENT_H
#define SOFTGPU_NVML_MIG_CLIENT_H

#include "mig.h"
#include "session.h"

/* Profile ids of boards with seven slices. */
enum { P7G = 0, P4G = 5, P3G = 9, P2G = 14, P1G_DOUBLE = 15, P1G = 19, P1G_ME = 20 };

nvmlDevice_t gpu(unsigned index);
/* The node, for what only a test looks at; closed by the caller. */
struct sg_node peek(void);
/* The activation. */
nvmlReturn_t set_mode(nvmlDevice_t d, unsigned mode);
void check_mode(nvmlDevice_t d, unsigned want, unsigned want_pending);
nvmlReturn_t create_at(nvmlDevice_t d, unsigned profile, unsigned start, unsigned size,
                       nvmlGpuInstance_t *gi);
/* An instance that must come to be, with the id that it must have. */
nvmlGpuInstance_t must_create(nvmlDevice_t d, unsigned profile, unsigned start, unsigned size,
                              unsigned id);
unsigned room_for(nvmlDevice_t d, unsigned profile);
nvmlComputeInstance_t whole_compute(nvmlGpuInstance_t gi, unsigned profile);
nvmlDevice_t mig_device_of(nvmlComputeInstance_t ci);
/* What the compute instance's clients run on. */
unsigned unit_of(unsigned device, unsigned gi, unsigned ci);
/* Is that file in the folder of capabilities? */
bool has_cap(const char *name);

#endif
