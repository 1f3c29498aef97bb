/* A new node: its GPUs from the model table, its settings from the environment. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"
#include "state.h"

static void fill_uuid(uint8_t uuid[16], uint64_t salt, uint32_t i) {
    uint64_t x = salt ^ (0x9e3779b97f4a7c15u * (i + 1));
    for (int b = 0; b < 16; b++) {
        x ^= x >> 30;
        x *= 0xbf58476d1ce4e5b9u;
        x ^= x >> 27;
        uuid[b] = (uint8_t)x;
    }
    uuid[6] = (uint8_t)((uuid[6] & 0x0f) | 0x40);
    uuid[8] = (uint8_t)((uuid[8] & 0x3f) | 0x80);
}

static void add_device(struct softgpu_state *st, const struct softgpu_model *m, uint64_t salt) {
    uint32_t i = st->header.device_count++;
    struct softgpu_device *d = &st->devices[i];
    snprintf(d->model, sizeof(d->model), "%s", m->name);
    snprintf(d->product, sizeof(d->product), "%s", m->product);
    fill_uuid(d->uuid, salt, i);
    d->pci_bus = 0x10 + i * 8;
    d->minor = i;
    d->memory_bytes = m->memory_bytes;
    d->reserved_bytes = m->reserved_bytes;
    d->unit = st->header.unit_count++;
    double rate[SOFTGPU_QUEUES] = {m->h2d_bytes_per_ns, m->d2h_bytes_per_ns,
                                   m->dram_bytes_per_ns / 2, 0};
    sg_unit_init(&st->units[d->unit], i, m->sm_count, m->memory_bytes - m->reserved_bytes, rate);
}

/* One item of the list: "H100" or "2xH100". */
static int add_devices(struct softgpu_state *st, const char *item, uint64_t salt) {
    unsigned long count = 1;
    char *end;
    unsigned long n = strtoul(item, &end, 10);
    if (end != item && (*end == 'x' || *end == 'X')) {
        count = n;
        item = end + 1;
    }
    const struct softgpu_model *m = softgpu_model_find(item);
    if (m == NULL || count == 0 || count > SOFTGPU_MAX_DEVICES - st->header.device_count) {
        return -EINVAL;
    }
    for (; count > 0; count--) {
        add_device(st, m, salt);
    }
    return 0;
}

static double positive(const char *name, double otherwise) {
    const char *s = getenv(name);
    double v = s == NULL ? 0 : strtod(s, NULL);
    return v > 0 && v < 1e6 ? v : otherwise;
}

static void fill_header(struct softgpu_header *h, uint64_t epoch_ns) {
    h->magic = SOFTGPU_MAGIC;
    h->version = SOFTGPU_VERSION;
    h->size = sizeof(struct softgpu_state);
    h->epoch_ns = epoch_ns;
    h->speed = positive("SOFTGPU_SPEED", 1);
    h->driver_version = 13030;
    h->op_free = SOFTGPU_NONE;
    const char *profile = getenv("SOFTGPU_PROFILE");
    if (profile != NULL && strcmp(profile, "null") == 0) {
        h->profile = SOFTGPU_PROFILE_NULL;
    } else {
        h->profile = SOFTGPU_PROFILE_REAL_LIKE;
        h->launch_ns = 2500;
        h->sync_ns = 8000;
    }
}

int sg_state_fill(struct softgpu_state *st, const char *gpus, uint64_t epoch_ns, uint64_t salt) {
    memset(&st->header, 0, sizeof(st->header));
    fill_header(&st->header, epoch_ns);
    if (gpus == NULL || *gpus == '\0') {
        gpus = "H100";
    }
    while (*gpus != '\0') {
        size_t len = strcspn(gpus, ",");
        char item[SOFTGPU_NAME_BYTES];
        if (len >= sizeof(item)) {
            return -EINVAL;
        }
        memcpy(item, gpus, len);
        item[len] = '\0';
        int rc = add_devices(st, item, salt);
        if (rc != 0) {
            return rc;
        }
        gpus += len + (gpus[len] == ',');
    }
    for (uint32_t t = 0; t < SOFTGPU_MAX_TALLIES; t++) {
        st->tallies[t].proc = SOFTGPU_NONE;
    }
    return 0;
}
