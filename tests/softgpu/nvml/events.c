/* Events: a GPU that falls off the bus, and changes of how it is divided. Nobody sends them: who waits looks again
 * and again whether what it has seen of a device is still so. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "session.h"

enum {
    XID = 0x8,
    MIG_CHANGE = 0x100,
    SUPPORTED = XID | MIG_CHANGE,
    XID_OFF_THE_BUS = 79,
    LOOK_NS = 2000000
};

struct watched {
    unsigned long long types; /* 0: not watched */
    uint64_t changes;         /* as last told */
    uint32_t lost;
};

/* Guarded by the session's lock. Freed ones are kept: a caller may still be waiting on one. */
struct nvml_event_set {
    struct nvml_event_set *next;
    bool freed;
    struct watched devices[SOFTGPU_MAX_DEVICES];
};

static struct nvml_event_set *sets;

static bool is_set(nvmlEventSet_t set) {
    const struct nvml_event_set *s = sets;
    while (s != NULL && s != set) {
        s = s->next;
    }
    return s != NULL && !s->freed;
}

nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types) {
    NVML_VIEW(view, device);
    if (types == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    *types = view.model->mig_capable ? SUPPORTED : XID;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set) {
    if (sg_nvml_enter() == NULL) {
        return NVML_ERROR_UNINITIALIZED;
    }
    struct nvml_event_set *s = sets;
    while (s != NULL && !s->freed) {
        s = s->next;
    }
    if (set != NULL && s == NULL) {
        s = calloc(1, sizeof(*s));
        if (s != NULL) {
            s->next = sets;
            sets = s;
        }
    } else if (set != NULL) {
        memset(s->devices, 0, sizeof(s->devices));
        s->freed = false;
    }
    if (set != NULL) {
        *set = s;
    }
    sg_nvml_leave();
    return set == NULL ? NVML_ERROR_INVALID_ARGUMENT
           : s == NULL ? NVML_ERROR_UNKNOWN
                       : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types,
                                      nvmlEventSet_t set) {
    struct nvml_call c;
    nvmlReturn_t err = sg_nvml_begin(&c, __func__, device, false);
    if (err != NVML_SUCCESS) {
        return err;
    }
    if (!is_set(set)) {
        return sg_nvml_end(&c, NVML_ERROR_INVALID_ARGUMENT);
    }
    if ((types & ~(unsigned long long)SUPPORTED) != 0) {
        return sg_nvml_end(&c, NVML_ERROR_NOT_SUPPORTED);
    }
    struct watched *w = &set->devices[c.target.index];
    if (w->types == 0) {
        w->changes = c.device->mig_changes;
    }
    w->types |= types;
    return sg_nvml_end(&c, NVML_SUCCESS);
}

/* With the state locked: the first device of which something is new. */
static bool next_event(const struct softgpu_state *st, struct nvml_event_set *set,
                       nvmlEventData_t *data) {
    for (unsigned i = 0; i < st->header.device_count; i++) {
        struct watched *w = &set->devices[i];
        const struct softgpu_device *d = &st->devices[i];
        *data = (nvmlEventData_t){.device = sg_nvml_handle(i),
                                  .gpuInstanceId = NVML_NO_INSTANCE,
                                  .computeInstanceId = NVML_NO_INSTANCE};
        bool fell = d->lost != 0 && w->lost == 0;
        w->lost = d->lost;
        if (fell && (w->types & XID) != 0) {
            data->eventType = XID;
            data->eventData = XID_OFF_THE_BUS;
            return true;
        }
        bool changed = d->mig_changes != w->changes;
        w->changes = d->mig_changes; /* however many there were, it is one event */
        if (changed && (w->types & MIG_CHANGE) != 0) {
            data->eventType = MIG_CHANGE;
            return true;
        }
    }
    return false;
}

/* One look; the first of a call may be struck by a fault. */
static nvmlReturn_t look(const char *entry, nvmlEventSet_t set, nvmlEventData_t *data) {
    const struct sg_node *node = sg_nvml_enter();
    if (node == NULL) {
        return NVML_ERROR_UNINITIALIZED;
    }
    nvmlReturn_t err = NVML_SUCCESS;
    if (entry != NULL) {
        err = sg_nvml_strike(node, entry, SOFTGPU_NONE, false);
    }
    if (err == NVML_SUCCESS && (data == NULL || !is_set(set))) {
        err = NVML_ERROR_INVALID_ARGUMENT;
    }
    if (err == NVML_SUCCESS) {
        sg_state_lock(node);
        err = next_event(node->st, set, data) ? NVML_SUCCESS : NVML_ERROR_TIMEOUT;
        sg_state_unlock(node);
    }
    sg_nvml_leave();
    return err;
}

static nvmlReturn_t wait_for(const char *entry, nvmlEventSet_t set, nvmlEventData_t *data,
                             unsigned timeout_ms) {
    uint64_t until = sg_monotonic_ns() + timeout_ms * 1000000ull;
    nvmlReturn_t err = look(entry, set, data);
    while (err == NVML_ERROR_TIMEOUT && sg_monotonic_ns() < until) {
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
        err = look(NULL, set, data);
    }
    return err;
}

/* The first version ends before the ids. */
nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeout_ms) {
    nvmlEventData_t whole;
    nvmlReturn_t err = wait_for(__func__, set, data == NULL ? NULL : &whole, timeout_ms);
    if (err == NVML_SUCCESS) {
        memcpy(data, &whole, offsetof(nvmlEventData_t, gpuInstanceId));
    }
    return err;
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeout_ms) {
    return wait_for(__func__, set, data, timeout_ms);
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
    if (sg_nvml_enter() == NULL) {
        return NVML_ERROR_UNINITIALIZED;
    }
    bool known = is_set(set);
    if (known) {
        set->freed = true;
    }
    sg_nvml_leave();
    return known ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}
