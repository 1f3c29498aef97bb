/* What all calls about instances have in common: from the handle to the locked state, and back. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "session.h"

nvmlReturn_t sg_nvml_code(int error) {
    switch (error) {
    case 0:
        return NVML_SUCCESS;
    case -EINVAL:
        return NVML_ERROR_INVALID_ARGUMENT;
    case -ENOSYS:
        return NVML_ERROR_NOT_SUPPORTED;
    case -EBUSY:
        return NVML_ERROR_IN_USE;
    case -ENOSPC:
        return NVML_ERROR_INSUFFICIENT_RESOURCES;
    default:
        return NVML_ERROR_UNKNOWN;
    }
}

/* The target is known; the session is entered, and left again if this fails. */
static nvmlReturn_t begin(struct nvml_call *c, nvmlReturn_t err) {
    if (err == NVML_SUCCESS) {
        err = sg_nvml_strike(c->node, c->entry, c->target.index, false);
    }
    if (err == NVML_SUCCESS) {
        sg_state_lock(c->node);
        if (c->node->st->header.caps_stale) {
            sg_mig_caps_sync(c->node);
        }
        c->device = &c->node->st->devices[c->target.index];
        c->model = softgpu_model_find(c->device->model);
        if (c->device->lost) {
            err = NVML_ERROR_GPU_IS_LOST;
        } else if (c->model == NULL) {
            err = NVML_ERROR_UNKNOWN;
        }
        if (err == NVML_SUCCESS) {
            return err;
        }
        sg_state_unlock(c->node);
    }
    sg_nvml_leave();
    return err;
}

/* The call fails after all. */
static nvmlReturn_t give_up(struct nvml_call *c, nvmlReturn_t err) {
    sg_state_unlock(c->node);
    sg_nvml_leave();
    return err;
}

nvmlReturn_t sg_nvml_begin(struct nvml_call *c, const char *entry, nvmlDevice_t device, bool on) {
    *c = (struct nvml_call){.entry = entry, .node = sg_nvml_enter()};
    if (c->node == NULL) {
        return NVML_ERROR_UNINITIALIZED;
    }
    sg_state_lock(c->node);
    nvmlReturn_t err = sg_nvml_target(c->node, device, &c->target);
    sg_state_unlock(c->node);
    if (err == NVML_SUCCESS && c->target.is_mig) {
        err = NVML_ERROR_INVALID_ARGUMENT;
    }
    err = begin(c, err);
    if (err == NVML_SUCCESS && on && c->device->mig_mode != SOFTGPU_MIG_ENABLED) {
        return give_up(c, NVML_ERROR_NOT_SUPPORTED);
    }
    return err;
}

/* With the state locked: is the instance that the handle was made for still there? */
static nvmlReturn_t look_up(struct nvml_call *c, uint64_t serial) {
    struct softgpu_mig_instance *g = &c->device->mig[c->target.instance];
    bool there = g->state == SOFTGPU_SLOT_USED;
    c->instance = g;
    c->profile = there ? sg_mig_profile(c->model, g->profile) : NULL;
    if (c->target.compute == NVML_NO_INSTANCE) {
        there = there && g->serial == serial;
    } else {
        c->compute = &g->compute[c->target.compute];
        there = there && c->compute->state == SOFTGPU_SLOT_USED && c->compute->serial == serial;
    }
    return there ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

static nvmlReturn_t begin_known(struct nvml_call *c, bool known, uint64_t serial) {
    nvmlReturn_t err = begin(c, known ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT);
    if (err == NVML_SUCCESS) {
        err = look_up(c, serial);
        if (err != NVML_SUCCESS) {
            return give_up(c, err);
        }
    }
    return err;
}

nvmlReturn_t sg_nvml_begin_instance(struct nvml_call *c, const char *entry, nvmlGpuInstance_t h) {
    uint64_t serial = 0;
    *c = (struct nvml_call){.entry = entry, .node = sg_nvml_enter()};
    if (c->node == NULL) {
        return NVML_ERROR_UNINITIALIZED;
    }
    bool known = sg_nvml_instance_of(h, &c->target, &serial);
    return begin_known(c, known, serial);
}

nvmlReturn_t sg_nvml_begin_compute(struct nvml_call *c, const char *entry,
                                   nvmlComputeInstance_t h) {
    uint64_t serial = 0;
    *c = (struct nvml_call){.entry = entry, .node = sg_nvml_enter()};
    if (c->node == NULL) {
        return NVML_ERROR_UNINITIALIZED;
    }
    bool known = sg_nvml_compute_of(h, &c->target, &serial);
    return begin_known(c, known, serial);
}

nvmlReturn_t sg_nvml_end(struct nvml_call *c, nvmlReturn_t answer) {
    sg_state_unlock(c->node);
    if (answer == NVML_SUCCESS) {
        answer = sg_nvml_strike(c->node, c->entry, c->target.index, true);
    }
    sg_nvml_leave();
    return answer;
}

/* Whoever may open the capability's node may do what it stands for; root may. */
static nvmlReturn_t may(const struct nvml_call *c, unsigned minor) {
    char path[4096];
    char name[4096 + 64];
    if (geteuid() == 0) {
        return NVML_SUCCESS;
    }
    if (!sg_mig_caps_path(c->node, path, sizeof path)) {
        return NVML_ERROR_NO_PERMISSION;
    }
    snprintf(name, sizeof name, "%s/dev/nvidia-caps/nvidia-cap%u", path, minor);
    return faccessat(AT_FDCWD, name, R_OK, AT_EACCESS) == 0 ? NVML_SUCCESS
                                                            : NVML_ERROR_NO_PERMISSION;
}

nvmlReturn_t sg_nvml_may_configure(const struct nvml_call *c) {
    return may(c, 1);
}

nvmlReturn_t sg_nvml_may_list(const struct nvml_call *c) {
    return may(c, 2);
}
