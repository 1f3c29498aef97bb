/* Opening, locking and owning parts of the state file. For the driver, NVML and the tool. */
#ifndef SOFTGPU_STATE_H
#define SOFTGPU_STATE_H

#include <stdbool.h>

#include "engine.h"

struct sg_node {
    struct softgpu_state *st;
    struct softgpu_header *lock_page; /* the header again: the lock is used through this one */
    int fd;
};

/* Opens the state file (`path`, else SOFTGPU_STATE, else a per-user file in /dev/shm), and makes
 * it first if it is missing: its GPUs are `gpus`, else SOFTGPU_GPUS, else one H100. Returns 0 or a
 * negative errno. */
int sg_state_open(struct sg_node *node, const char *path, const char *gpus);
void sg_state_close(struct sg_node *node);

/* Under the lock: what is changed in `st` from now on is nobody else's. For a process that has given
 * back what it had, and some of whose threads may not know yet. */
void sg_state_part(const struct sg_node *node);

/* The path that sg_state_open uses. Returns `path` or a pointer into `buf`. */
const char *sg_state_path(const char *path, char *buf, size_t size);

/* Writes a complete node into zeroed memory; 0, or -EINVAL for an unknown model. */
int sg_state_fill(struct softgpu_state *st, const char *gpus, uint64_t epoch_ns, uint64_t salt);

/* The lock of everything guarded. If its last holder died, the state is repaired first. */
void sg_state_lock(const struct sg_node *node);
void sg_state_unlock(const struct sg_node *node);

/* The same, but gives up after that time; false: it is not taken. */
bool sg_state_lock_within(const struct sg_node *node, uint64_t ns);

/* Simulated time now. */
int64_t sg_state_now(const struct softgpu_state *st);
uint64_t sg_monotonic_ns(void);

/* Claims a process slot for the caller, under the lock. Index or SOFTGPU_NONE. */
uint32_t sg_proc_claim(const struct sg_node *node);

/* Gives back all that a process has; under the lock. */
void sg_proc_release(const struct sg_node *node, uint32_t proc);

/* Looks for dead processes, at most once per 2 ms unless `at_once`; under the lock. `self` is
 * never looked at. */
void sg_reap(const struct sg_node *node, uint32_t self, bool at_once);

/* Is the owner of the slot alive? Asks the kernel. */
bool sg_proc_alive(const struct sg_node *node, uint32_t proc);

/* The stub's entry in the state file is made or counted. */
void sg_stub_count(struct softgpu_state *st, const char *name);

#endif /* SOFTGPU_STATE_H */
