/* Who holds the SMs of a unit: time slicing between groups, and assignment within one. */
#ifndef SOFTGPU_SM_H
#define SOFTGPU_SM_H

#include "softgpu.h"

/* Kernels at the head of their streams. Hardware holds 128 grids at once; ready ones beyond this
 * bound wait without being looked at. */
enum { SG_READY_MAX = 512 };

struct sg_ready {
    uint32_t count;
    struct softgpu_op *ops[SG_READY_MAX]; /* by stream priority, then arrival */
    uint32_t groups[SG_READY_MAX];
};

void sg_ready_collect(struct softgpu_state *st, const struct softgpu_unit *u, struct sg_ready *set);

/* Does another group than the current one have work while the current one has too? */
int sg_group_contended(const struct sg_ready *set, const struct softgpu_unit *u);

/* Ends quanta, begins and ends switches. */
void sg_group_choose(struct softgpu_unit *u, const struct sg_ready *set, int64_t t);

/* Gives free SMs out and sets every kernel's rate and the end of its wave. */
void sg_sm_assign(struct softgpu_state *st, const struct softgpu_unit *u, struct sg_ready *set,
                  int64_t t);

#endif /* SOFTGPU_SM_H */
