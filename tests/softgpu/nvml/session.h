/* The open node and the handles into it, for the files that look into it. */
#ifndef SOFTGPU_NVML_SESSION_H
#define SOFTGPU_NVML_SESSION_H

#include "internal.h"
#include "mig.h"
#include "state.h"

/* The node, held open until sg_nvml_leave, or NULL before nvmlInit. Between the two no other call of this process
 * is inside. */
struct sg_node *sg_nvml_enter(void);
void sg_nvml_leave(void);

/* What an injected fault answers to this call, between enter and leave; NVML_SUCCESS if nothing. */
nvmlReturn_t sg_nvml_strike(const struct sg_node *node, const char *entry, unsigned device,
                            bool late);

/* ---- handles (handles.c), between enter and leave. A handle is known by its address, so a stray pointer is told
 * from one; it is of one making of an instance, so a stale one is too. */

nvmlDevice_t sg_nvml_handle(unsigned index);

/* What a device handle stands for. */
struct nvml_target {
    unsigned index;
    bool is_mig;
    unsigned instance, compute; /* ids, or NVML_NO_INSTANCE */
};
/* NVML_ERROR_INVALID_ARGUMENT for what is no handle, or one of an instance that is gone. */
nvmlReturn_t sg_nvml_target(const struct sg_node *node, nvmlDevice_t device,
                            struct nvml_target *target);

nvmlDevice_t sg_nvml_mig_handle(const struct sg_node *node, unsigned index, unsigned instance,
                                unsigned compute);
nvmlGpuInstance_t sg_nvml_instance_handle(const struct sg_node *node, unsigned index, unsigned id);
nvmlComputeInstance_t sg_nvml_compute_handle(const struct sg_node *node, unsigned index,
                                             unsigned instance, unsigned id);

/* What the handle of an instance was made for; false for what is none. */
bool sg_nvml_instance_of(nvmlGpuInstance_t h, struct nvml_target *target, uint64_t *serial);
bool sg_nvml_compute_of(nvmlComputeInstance_t h, struct nvml_target *target, uint64_t *serial);

/* The i-th MIG device of a GPU, by id of GPU and compute instance; false past the last. */
bool sg_nvml_mig_at(const struct sg_node *node, unsigned index, unsigned i,
                    struct nvml_target *target);

/* nvmlDeviceGetHandleByUUID for "MIG-...". */
nvmlReturn_t sg_nvml_find_mig(const char *entry, const char *uuid, nvmlDevice_t *device);

void sg_nvml_format_uuid(char out[48], const char *prefix, const uint8_t b[16]);

/* ---- calls about instances (call.c): from a successful begin to end the state is locked */

struct nvml_call {
    const char *entry;
    const struct sg_node *node;
    struct softgpu_device *device;
    const struct softgpu_model *model;
    struct nvml_target target;
    struct softgpu_mig_instance *instance;     /* of the two below */
    const struct softgpu_mig_profile *profile; /* the instance's */
    struct softgpu_mig_compute *compute;       /* of the last */
};

/* `device` must be a GPU; with MIG on, if `on`. */
nvmlReturn_t sg_nvml_begin(struct nvml_call *c, const char *entry, nvmlDevice_t device, bool on);
nvmlReturn_t sg_nvml_begin_instance(struct nvml_call *c, const char *entry, nvmlGpuInstance_t h);
nvmlReturn_t sg_nvml_begin_compute(struct nvml_call *c, const char *entry, nvmlComputeInstance_t h);

/* Ends the call with that answer, or what a late fault makes of it. */
nvmlReturn_t sg_nvml_end(struct nvml_call *c, nvmlReturn_t answer);

/* May the caller change (or list) instances? */
nvmlReturn_t sg_nvml_may_configure(const struct nvml_call *c);
nvmlReturn_t sg_nvml_may_list(const struct nvml_call *c);

/* The return code of a negative errno of mig.h. */
nvmlReturn_t sg_nvml_code(int error);

#endif
