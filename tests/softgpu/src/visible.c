/* Which devices a process sees: CUDA_VISIBLE_DEVICES, and what MIG makes of it.
 *
 * With MIG on, a GPU is not a device; its MIG devices are. A process sees one of them and then nothing else. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "driver.h"
#include "mig.h"

/* What an item of the list names. */
struct named {
    uint32_t device;
    uint32_t instance; /* SOFTGPU_NONE: the GPU */
    uint32_t compute;
};

static void format_uuid(char out[48], const char *prefix, const uint8_t *u) {
    snprintf(out, 48, "%s%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             prefix, u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11],
             u[12], u[13], u[14], u[15]);
}

/* The beginning of a UUID is enough. */
static bool is_uuid(const char *item, size_t len, const char *prefix, const uint8_t *uuid) {
    char text[48];
    format_uuid(text, prefix, uuid);
    return len >= 5 && strncasecmp(item, text, len) == 0;
}

static const struct softgpu_mig_compute *compute_at(uint32_t d, uint32_t i, uint32_t c) {
    const struct softgpu_mig_instance *g = &sg.node.st->devices[d].mig[i];
    bool there = i < SOFTGPU_MIG_IDS && c < SOFTGPU_MIG_INSTANCES &&
                 g->state == SOFTGPU_SLOT_USED && g->compute[c].state == SOFTGPU_SLOT_USED;
    return there ? &g->compute[c] : NULL;
}

/* The first MIG device (of that UUID, if it is given) of the GPUs from `first` to before `end`. */
static bool find_mig(uint32_t first, uint32_t end, const char *item, size_t len,
                     struct named *out) {
    for (uint32_t d = first; d < end; d++) {
        for (uint32_t i = 0; i < SOFTGPU_MIG_IDS; i++) {
            for (uint32_t c = 0; c < SOFTGPU_MIG_INSTANCES; c++) {
                const struct softgpu_mig_compute *compute = compute_at(d, i, c);
                if (compute != NULL &&
                    (item == NULL || is_uuid(item, len, "MIG-", compute->uuid))) {
                    *out = (struct named){.device = d, .instance = i, .compute = c};
                    return true;
                }
            }
        }
    }
    return false;
}

/* The older form: MIG-GPU-<uuid>/<GPU instance>/<compute instance>. */
static bool find_by_ids(const char *item, size_t len, struct named *out) {
    const struct softgpu_state *st = sg.node.st;
    const char *slash = memchr(item, '/', len);
    unsigned i;
    unsigned c;
    if (slash == NULL || sscanf(slash, "/%u/%u", &i, &c) != 2) {
        return false;
    }
    for (uint32_t d = 0; d < st->header.device_count; d++) {
        if (is_uuid(item + 4, (size_t)(slash - item) - 4, "GPU-", st->devices[d].uuid) &&
            i < SOFTGPU_MIG_IDS && compute_at(d, i, c) != NULL) {
            *out = (struct named){.device = d, .instance = i, .compute = c};
            return true;
        }
    }
    return false;
}

/* A GPU, or where it is divided its first MIG device. */
static bool whole_or_first(uint32_t d, struct named *out) {
    if (sg.node.st->devices[d].mig_mode == SOFTGPU_MIG_ENABLED) {
        return find_mig(d, d + 1, NULL, 0, out);
    }
    *out = (struct named){.device = d, .instance = SOFTGPU_NONE, .compute = SOFTGPU_NONE};
    return true;
}

static bool find_item(const char *item, size_t len, struct named *out) {
    const struct softgpu_state *st = sg.node.st;
    char *end;
    long index = strtol(item, &end, 10);
    if (end == item + len && len > 0) {
        return index >= 0 && index < (long)st->header.device_count &&
               whole_or_first((uint32_t)index, out);
    }
    if (len >= 8 && strncasecmp(item, "MIG-GPU-", 8) == 0) {
        return find_by_ids(item, len, out);
    }
    if (len >= 4 && strncasecmp(item, "MIG-", 4) == 0) {
        return find_mig(0, st->header.device_count, item, len, out);
    }
    for (uint32_t d = 0; d < st->header.device_count; d++) {
        if (is_uuid(item, len, "GPU-", st->devices[d].uuid)) {
            return whole_or_first(d, out);
        }
    }
    return false;
}

/* False when nothing more is taken: a MIG device is seen alone. */
static bool see(const struct named *n) {
    bool mig = n->instance != SOFTGPU_NONE;
    if (mig && sg.device_count > 0) {
        return true; /* passed over beside GPUs */
    }
    const struct softgpu_device *d = &sg.node.st->devices[n->device];
    sg.visible[sg.device_count] = (int)n->device;
    sg.units[sg.device_count++] = mig ? d->mig[n->instance].compute[n->compute].unit : d->unit;
    return !mig && sg.device_count < SOFTGPU_MAX_DEVICES;
}

/* Without a list: the GPUs that are not divided, or if there is none the first MIG device. */
static void see_all(void) {
    const struct softgpu_state *st = sg.node.st;
    struct named n;
    for (uint32_t d = 0; d < st->header.device_count; d++) {
        if (st->devices[d].mig_mode != SOFTGPU_MIG_ENABLED && whole_or_first(d, &n)) {
            see(&n);
        }
    }
    if (sg.device_count == 0 && find_mig(0, st->header.device_count, NULL, 0, &n)) {
        see(&n);
    }
}

/* The list ends at the first item that names no device, as with the real driver. */
void sg_find_visible(void) {
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    sg.device_count = 0;
    if (list == NULL) {
        see_all();
        return;
    }
    for (bool more = true; more && *list != '\0';) {
        struct named n;
        list += strspn(list, " ");
        size_t len = strcspn(list, ", ");
        if (!find_item(list, len, &n)) {
            return;
        }
        more = see(&n);
        list += len + strspn(list + len, " ");
        list += *list == ',';
    }
}

void sg_hold_visible(struct softgpu_proc *p) {
    const struct softgpu_unit *u = &sg.node.st->units[sg.units[0]];
    if (u->instance != SOFTGPU_NONE) {
        p->mig_device = u->device;
        p->mig_instance = u->instance;
        p->mig_compute = u->compute;
        return;
    }
    for (int i = 0; i < sg.device_count; i++) {
        p->opened |= 1u << sg.visible[i];
    }
}
