/* Drawing how GPUs are divided. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "mig.h"
#include "tool.h"

enum { PIDS = 16, CELL = 12 };

static void format_uuid(char out[48], const uint8_t b[16]) {
    char *to = out + sprintf(out, "MIG-");
    for (int i = 0; i < 16; i++) {
        bool dash = i == 4 || i == 6 || i == 8 || i == 10;
        to += sprintf(to, dash ? "-%02x" : "%02x", b[i]);
    }
}

static const char *name_of(const struct softgpu_model *m, uint32_t profile) {
    const struct softgpu_mig_profile *p = m == NULL ? NULL : sg_mig_profile(m, profile);
    return p == NULL ? "?" : p->name;
}

/* The instance that begins at this memory slice, or NONE. */
static uint32_t instance_at(const struct softgpu_device *d, uint32_t slice) {
    for (uint32_t i = 0; i < SOFTGPU_MIG_IDS; i++) {
        if (d->mig[i].state == SOFTGPU_SLOT_USED && d->mig[i].start == slice) {
            return i;
        }
    }
    return SOFTGPU_NONE;
}

/* One line of cells, a cell per memory slice: "|7 1g.10gb   |...........|1 3g.40gb   ...". */
static void draw_slices(const struct softgpu_device *d, const struct softgpu_model *m) {
    printf("   |");
    for (uint32_t slice = 0; slice < m->mig_memory_slices;) {
        uint32_t i = instance_at(d, slice);
        if (i == SOFTGPU_NONE) {
            printf("%.*s|", CELL - 1, "...........");
            slice++;
            continue;
        }
        char text[64];
        int width = (int)d->mig[i].size * CELL - 1;
        snprintf(text, sizeof(text), "%u %s", i, name_of(m, d->mig[i].profile));
        printf("%-*.*s|", width, width, text);
        slice += d->mig[i].size;
    }
    printf("\n");
}

static void draw_pids(const struct sg_node *node, uint32_t device, uint32_t i, uint32_t c) {
    uint32_t pids[PIDS];
    uint32_t count = sg_mig_users(node, device, i, c, pids, PIDS);
    for (uint32_t k = 0; k < count && k < PIDS; k++) {
        printf("%s%u", k == 0 ? "  pids " : ",", pids[k]);
    }
    printf("\n");
}

void tool_draw_mig(const struct sg_node *node, uint32_t device) {
    const struct softgpu_device *d = &node->st->devices[device];
    const struct softgpu_model *m = sg_mig_model(node->st, device);
    if (m == NULL || (d->mig_mode == SOFTGPU_MIG_DISABLED && d->mig_pending == d->mig_mode)) {
        return;
    }
    printf("   MIG %s%s\n", d->mig_mode ? "on" : "off",
           d->mig_pending == d->mig_mode ? ""
           : d->mig_pending              ? ", on after a reset"
                                         : ", off when nothing uses it");
    if (d->mig_mode == SOFTGPU_MIG_DISABLED) {
        return;
    }
    draw_slices(d, m);
    for (uint32_t i = 0; i < SOFTGPU_MIG_IDS; i++) {
        const struct softgpu_mig_instance *g = &d->mig[i];
        if (g->state != SOFTGPU_SLOT_USED) {
            continue;
        }
        printf("   %u/%u  %s  %u:%u  %llu MiB", device, i, name_of(m, g->profile), g->start,
               g->size, (unsigned long long)(g->memory_bytes >> 20));
        draw_pids(node, device, i, SOFTGPU_NONE);
        for (uint32_t c = 0; c < SOFTGPU_MIG_INSTANCES; c++) {
            const struct softgpu_mig_compute *compute = &g->compute[c];
            char uuid[48];
            if (compute->state == SOFTGPU_SLOT_USED) {
                format_uuid(uuid, compute->uuid);
                printf("     %u/%u/%u  %uc at %u  %u SMs  %s", device, i, c, compute->size,
                       compute->start, compute->sm_count, uuid);
                draw_pids(node, device, i, c);
            }
        }
    }
}

static void json_compute(const struct softgpu_mig_instance *g) {
    const char *comma = "";
    for (uint32_t c = 0; c < SOFTGPU_MIG_INSTANCES; c++) {
        const struct softgpu_mig_compute *compute = &g->compute[c];
        char uuid[48];
        if (compute->state == SOFTGPU_SLOT_USED) {
            format_uuid(uuid, compute->uuid);
            printf(
                "%s{\"id\":%u,\"profile\":%u,\"start\":%u,\"size\":%u,\"sms\":%u,\"uuid\":\"%s\"}",
                comma, c, compute->profile, compute->start, compute->size, compute->sm_count, uuid);
            comma = ",";
        }
    }
}

void tool_json_mig(const struct sg_node *node, uint32_t device) {
    const struct softgpu_device *d = &node->st->devices[device];
    const char *comma = "";
    printf("{\"mode\":%u,\"pending\":%u,\"instances\":[", d->mig_mode, d->mig_pending);
    for (uint32_t i = 0; i < SOFTGPU_MIG_IDS; i++) {
        const struct softgpu_mig_instance *g = &d->mig[i];
        if (g->state == SOFTGPU_SLOT_USED) {
            printf("%s{\"id\":%u,\"profile\":%u,\"name\":\"%s\",\"start\":%u,\"size\":%u,"
                   "\"memory_bytes\":%llu,\"compute\":[",
                   comma, i, g->profile, name_of(sg_mig_model(node->st, device), g->profile),
                   g->start, g->size, (unsigned long long)g->memory_bytes);
            json_compute(g);
            printf("]}");
            comma = ",";
        }
    }
    printf("]}");
}

/* What somebody who died in the middle of a change left to do. */
void tool_settle_mig(const struct sg_node *node) {
    if (node->st->header.caps_stale) {
        sg_mig_caps_sync(node);
    }
}

int tool_mig_show(int argc, char **argv) {
    bool json = argc == 2 && strcmp(argv[1], "--json") == 0;
    if (argc > 2 || (argc == 2 && !json)) {
        fprintf(stderr, "softgpu mig show: unknown argument %s\n", argv[argc - 1]);
        return 2;
    }
    struct sg_node node;
    if (tool_open(&node, "mig show", NULL) != 0) {
        return 1;
    }
    sg_state_lock(&node);
    tool_settle_mig(&node);
    printf("%s", json ? "[" : "");
    for (uint32_t d = 0; d < node.st->header.device_count; d++) {
        if (json) {
            printf("%s", d ? "," : "");
            tool_json_mig(&node, d);
        } else {
            printf("%u  %s\n", d, node.st->devices[d].product);
            tool_draw_mig(&node, d);
        }
    }
    printf("%s", json ? "]\n" : "");
    sg_state_unlock(&node);
    sg_state_close(&node);
    return 0;
}
