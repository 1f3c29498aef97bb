/* MIG: which instances a device has and could have, and who uses them. No NVML here; the caller holds the
 * state's lock, unless it says otherwise. Results are 0 or a negative errno:
 *   EINVAL  no such profile, placement or instance      ENOSYS  the mode is off, or the board has no MIG
 *   EBUSY   somebody or something uses it                ENOSPC  no room for it
 */
#ifndef SOFTGPU_MIG_H
#define SOFTGPU_MIG_H

#include "model.h"
#include "state.h"

/* ---- rules (mig_rules.c): of the model alone, no state */

/* One GPU instance where it is or could be. */
struct sg_mig_place {
    const struct softgpu_mig_profile *profile;
    uint32_t start;
};

const struct softgpu_mig_profile *sg_mig_profile(const struct softgpu_model *m, uint32_t id);

/* May these exist side by side on one device? */
bool sg_mig_legal(const struct softgpu_model *m, const struct sg_mig_place *places, uint32_t count);

/* How many more instances of the profile fit beside these. */
uint32_t sg_mig_room(const struct softgpu_model *m, const struct softgpu_mig_profile *p,
                     const struct sg_mig_place *places, uint32_t count);

/* Calls `visit` with every set of instances that may exist side by side, the empty one too, in order of
 * start; `maximal`: nothing can be added. */
typedef void sg_mig_visit(void *arg, const struct sg_mig_place *places, uint32_t count,
                          bool maximal);
void sg_mig_enumerate(const struct softgpu_model *m, sg_mig_visit *visit, void *arg);

/* A compute instance profile of a GPU instance profile. Its id is NVML's number for it. */
struct sg_mig_compute_profile {
    uint32_t id;
    uint32_t slices;
    uint32_t instances;
    uint32_t sm_count;
    uint32_t starts[SOFTGPU_MIG_STARTS]; /* as many as instances */
};

/* False where the profile has none of that id. */
bool sg_mig_compute_profile(const struct softgpu_model *m, const struct softgpu_mig_profile *p,
                            uint32_t id, struct sg_mig_compute_profile *out);

/* ---- state (mig.c) */

/* Bracket a change: a reader without the lock sees that it has seen half of one, and the folder of capabilities
 * follows. */
void sg_mig_begin(const struct sg_node *node, uint32_t device);
void sg_mig_end(const struct sg_node *node, uint32_t device);

/* Where the caller leaves the placement to the driver. */
static const uint32_t SG_MIG_ANYWHERE = 0xffffffffu;

const struct softgpu_model *sg_mig_model(const struct softgpu_state *st, uint32_t device);

/* The device's instances as places; answers how many. */
uint32_t sg_mig_places(const struct softgpu_state *st, uint32_t device,
                       struct sg_mig_place places[SOFTGPU_MIG_INSTANCES]);

int sg_mig_create(const struct sg_node *node, uint32_t device, uint32_t profile, uint32_t start,
                  uint32_t *id);
int sg_mig_destroy(const struct sg_node *node, uint32_t device, uint32_t id);

/* May the compute instance be there, beside those that are? */
bool sg_mig_compute_fits(const struct softgpu_mig_instance *g,
                         const struct sg_mig_compute_profile *p, uint32_t start);
int sg_mig_create_compute(const struct sg_node *node, uint32_t device, uint32_t id,
                          uint32_t profile, uint32_t start, uint32_t *compute);
int sg_mig_destroy_compute(const struct sg_node *node, uint32_t device, uint32_t id,
                           uint32_t compute);

/* A holder of the lock died half-way through a change: what was not complete is undone. */
void sg_mig_repair(struct softgpu_state *st);

/* Takes all instances of the device away. */
void sg_mig_forget(struct softgpu_state *st, uint32_t device);

/* ---- mode (mig_mode.c) */

/* What came of asking for another mode. */
enum sg_mig_activation {
    SG_MIG_ACTIVE, /* the mode is what was asked for */
    SG_MIG_IN_USE, /* pending: somebody uses the device */
    SG_MIG_RESET   /* pending: the device has to be reset */
};
int sg_mig_set_mode(const struct sg_node *node, uint32_t device, uint32_t mode,
                    enum sg_mig_activation *activation);

/* The device is reset: its instances are gone, a pending mode becomes the mode. */
int sg_mig_reset(const struct sg_node *node, uint32_t device);

/* The node boots again: all devices are reset, and a mode that is not kept on the device is off. */
int sg_mig_reboot(const struct sg_node *node);

/* ---- users (mig_use.c) */

/* The living processes that use the compute instance, or with NONE the GPU instance, or with twice NONE
 * anything of the device. Writes the pids of the first `room`; answers how many there are. */
uint32_t sg_mig_users(const struct sg_node *node, uint32_t device, uint32_t id, uint32_t compute,
                      uint32_t *pids, uint32_t room);

bool sg_mig_in_use(const struct sg_node *node, uint32_t device, uint32_t id, uint32_t compute);

/* Bytes that allocations on the unit may still take: compute instances share their GPU instance's. */
uint64_t sg_unit_free_bytes(const struct softgpu_state *st, uint32_t unit);

/* ---- capabilities (mig_caps.c): a folder beside the state file that plays what the kernel driver shows of
 * them: proc/driver/nvidia-caps/mig-minors, proc/driver/nvidia/capabilities, dev/nvidia-caps. */

/* The minor of config (instance NONE), of a GPU instance (compute NONE) or a compute instance. */
uint32_t sg_mig_minor(uint32_t gpu_minor, uint32_t id, uint32_t compute);

/* The folder's path; false where the state file is gone. */
bool sg_mig_caps_path(const struct sg_node *node, char *out, size_t size);

/* Marks the folder as out of date, before a change; and makes it as the state is. */
void sg_mig_caps_spoil(const struct sg_node *node);
void sg_mig_caps_sync(const struct sg_node *node);

#endif /* SOFTGPU_MIG_H */
