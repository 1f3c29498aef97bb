/* The mode, and what makes a device forget how it was divided. */
#include <errno.h>

#include "mig.h"

int sg_mig_set_mode(const struct sg_node *node, uint32_t device, uint32_t mode,
                    enum sg_mig_activation *activation) {
    struct softgpu_device *d = &node->st->devices[device];
    const struct softgpu_model *m = sg_mig_model(node->st, device);
    struct sg_mig_place places[SOFTGPU_MIG_INSTANCES];
    if (m == NULL || !m->mig_capable) {
        return -ENOSYS;
    }
    *activation = SG_MIG_ACTIVE;
    sg_mig_begin(node, device);
    d->mig_pending = mode;
    if (d->mig_mode != mode) {
        if (sg_mig_in_use(node, device, SOFTGPU_NONE, SOFTGPU_NONE) ||
            sg_mig_places(node->st, device, places) > 0) {
            *activation = SG_MIG_IN_USE;
        } else if (!m->mig_resetless) {
            *activation = SG_MIG_RESET;
        } else {
            d->mig_mode = mode;
        }
    }
    sg_mig_end(node, device);
    return 0;
}

int sg_mig_reset(const struct sg_node *node, uint32_t device) {
    struct softgpu_device *d = &node->st->devices[device];
    if (sg_mig_in_use(node, device, SOFTGPU_NONE, SOFTGPU_NONE)) {
        return -EBUSY;
    }
    sg_mig_begin(node, device);
    sg_mig_forget(node->st, device);
    d->mig_mode = d->mig_pending;
    sg_mig_end(node, device);
    return 0;
}

int sg_mig_reboot(const struct sg_node *node) {
    struct softgpu_state *st = node->st;
    sg_reap(node, SOFTGPU_NONE, true);
    for (uint32_t i = 0; i < st->header.proc_high; i++) {
        if (st->procs[i].state == SOFTGPU_SLOT_USED) {
            return -EBUSY;
        }
    }
    st->header.boots++;
    for (uint32_t d = 0; d < st->header.device_count; d++) {
        struct softgpu_device *dev = &st->devices[d];
        const struct softgpu_model *m = sg_mig_model(st, d);
        sg_mig_begin(node, d);
        sg_mig_forget(st, d);
        /* Where the mode needs a reset, the device itself keeps it; elsewhere the driver's memory does. */
        dev->mig_pending = m != NULL && m->mig_resetless ? SOFTGPU_MIG_DISABLED : dev->mig_pending;
        dev->mig_mode = dev->mig_pending;
        dev->compute_mode = 0;
        dev->lost = 0;
        sg_mig_end(node, d);
    }
    return 0;
}
