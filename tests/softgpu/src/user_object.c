/* User objects: something of the caller with a count of references and a function for the end. A
 * graph holds references, its clones and executables get as many, and each gives them back when it
 * is destroyed. An executable that is destroyed while its last launch still runs gives them back at
 * once here; a launch has its own copy of the parameters. */
#include <limits.h>
#include <stdlib.h>

#include "driver.h"
#include "user_object.h"

static const uint32_t SG_USER = 0x55534552;

enum { USER_NO_DESTRUCTOR_SYNC = 1, RETAIN_MOVE = 1 };

typedef struct sg_user {
    uint32_t magic;
    unsigned refs;
    void *ptr;
    CUhostFn destroy;
} * CUuserObject;

struct sg_held {
    const void *owner;
    struct sg_user *object;
    unsigned count;
    struct sg_held *next;
};

static struct sg_held *held; /* of all owners; under sg_lock */

static bool is_user(const struct sg_user *o) {
    return o != NULL && o->magic == SG_USER;
}

/* Without the lock. */
static void release(struct sg_user *o, unsigned count) {
    sg_lock();
    o->refs = count < o->refs ? o->refs - count : 0;
    bool last = o->refs == 0 && o->magic == SG_USER;
    if (last) {
        o->magic = SG_DEAD;
    }
    sg_unlock();
    if (last) {
        o->destroy(o->ptr);
    }
}

static bool hold(const void *owner, struct sg_user *o, unsigned count) {
    struct sg_held *h = malloc(sizeof(*h));
    if (h != NULL) {
        *h = (struct sg_held){.owner = owner, .object = o, .count = count, .next = held};
        held = h;
    }
    return h != NULL;
}

bool sg_user_copy(const void *from, const void *to) {
    for (struct sg_held *h = held; h != NULL; h = h->next) {
        if (h->owner == from) {
            if (!hold(to, h->object, h->count)) {
                return false;
            }
            h->object->refs += h->count;
        }
    }
    return true;
}

struct sg_held *sg_user_leave(const void *owner) {
    struct sg_held *left = NULL;
    for (struct sg_held **at = &held; *at != NULL;) {
        struct sg_held *h = *at;
        if (h->owner == owner) {
            *at = h->next;
            h->next = left;
            left = h;
        } else {
            at = &h->next;
        }
    }
    return left;
}

void sg_user_drop(struct sg_held *list) {
    while (list != NULL) {
        struct sg_held *next = list->next;
        release(list->object, list->count);
        free(list);
        list = next;
    }
}

SG_API(cuUserObjectCreate,
       (CUuserObject * out, void *ptr, CUhostFn destroy, unsigned refs, unsigned flags)) {
    SG_ENTER();
    if (out == NULL || destroy == NULL || refs == 0 || refs > INT_MAX ||
        flags != USER_NO_DESTRUCTOR_SYNC) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sg_user *o = sg_object(sizeof(*o), SG_USER);
    if (o == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    o->refs = refs;
    o->ptr = ptr;
    o->destroy = destroy;
    *out = o;
    return CUDA_SUCCESS;
}

SG_API(cuUserObjectRetain, (CUuserObject o, unsigned count)) {
    SG_ENTER();
    if (!is_user(o) || count == 0 || count > INT_MAX) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sg_lock();
    o->refs += count;
    sg_unlock();
    return CUDA_SUCCESS;
}

SG_API(cuUserObjectRelease, (CUuserObject o, unsigned count)) {
    SG_ENTER();
    if (!is_user(o) || count == 0 || count > INT_MAX) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    release(o, count);
    return CUDA_SUCCESS;
}

SG_API(cuGraphRetainUserObject, (CUgraph g, CUuserObject o, unsigned count, unsigned flags)) {
    SG_ENTER();
    if (g == NULL || g->magic != SG_GRAPH || !is_user(o) || count == 0 || count > INT_MAX ||
        (flags & ~(unsigned)RETAIN_MOVE) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sg_lock();
    bool ok = hold(g, o, count);
    if (ok && !(flags & RETAIN_MOVE)) {
        o->refs += count; /* moved references were the caller's */
    }
    sg_unlock();
    return ok ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

SG_API(cuGraphReleaseUserObject, (CUgraph g, CUuserObject o, unsigned count)) {
    SG_ENTER();
    if (g == NULL || g->magic != SG_GRAPH || !is_user(o) || count == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    unsigned left = count;
    sg_lock();
    for (struct sg_held *h = held; h != NULL && left > 0; h = h->next) {
        if (h->owner == g && h->object == o) {
            unsigned part = left < h->count ? left : h->count;
            h->count -= part;
            left -= part;
        }
    }
    sg_unlock();
    if (left == count) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    release(o, count - left);
    return CUDA_SUCCESS;
}
