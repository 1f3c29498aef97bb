/* Objects of the caller that graphs keep alive. */
#ifndef SOFTGPU_USER_OBJECT_H
#define SOFTGPU_USER_OBJECT_H

#include <stdbool.h>

struct sg_held;

/* Gives `to` the references that `from` holds; both are graphs or executables. Under sg_lock. */
bool sg_user_copy(const void *from, const void *to);

/* Takes away what a graph or an executable holds: under sg_lock. */
struct sg_held *sg_user_leave(const void *owner);

/* Releases it: without the lock, since the last reference runs the caller's code. */
void sg_user_drop(struct sg_held *list);

#endif /* SOFTGPU_USER_OBJECT_H */
