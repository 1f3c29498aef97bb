/* Copying one moment of a device out of the shared state. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "session.h"

void sg_nvml_format_uuid(char out[48], const char *prefix, const uint8_t b[16]) {
    char *to = out;
    to += sprintf(to, "%s", prefix);
    for (int i = 0; i < 16; i++) {
        bool dash = i == 4 || i == 6 || i == 8 || i == 10;
        to += sprintf(to, dash ? "-%02x" : "%02x", b[i]);
    }
}

/* Serial numbers have thirteen digits; ours come from the UUID. */
static void format_serial(char out[24], const uint8_t b[16]) {
    uint64_t n = 0;
    for (int i = 0; i < 8; i++) {
        n = n << 8 | b[i];
    }
    snprintf(out, 24, "%013llu", (unsigned long long)(n % 10000000000000u));
}

static double between(double a, double b, double fraction) {
    return a + (b - a) * fraction;
}

static unsigned percent_of(double part, double whole) {
    double percent = whole > 0 ? 100.0 * part / whole + 0.5 : 0;
    return percent < 0 ? 0 : percent > 100.0 ? 100 : (unsigned)percent;
}

/* How busy the unit was in the window that ends now: the marks around the window's start give the
 * integrals there. `u` is exact up to now. */
static void measure(const struct softgpu_unit *u, struct nvml_view *view) {
    int64_t start = u->now_ns > NVML_WINDOW_NS ? u->now_ns - NVML_WINDOW_NS : 0;
    struct softgpu_mark after = {.at_ns = u->now_ns,
                                 .busy_ns = u->busy_ns,
                                 .memory_ns = u->memory_ns,
                                 .h2d_ns = u->copy_ns[SOFTGPU_QUEUE_H2D],
                                 .d2h_ns = u->copy_ns[SOFTGPU_QUEUE_D2H]};
    struct softgpu_mark before = after;
    for (uint32_t k = 1; k <= SOFTGPU_MARKS && before.at_ns > start; k++) {
        after = before;
        before = u->marks[(u->mark_next + SOFTGPU_MARKS - k) % SOFTGPU_MARKS];
    }
    double span = (double)(after.at_ns - before.at_ns);
    double fraction = span > 0 ? (double)(start - before.at_ns) / span : 0;
    fraction = fraction < 0 ? 0 : fraction;
    double window = (double)(u->now_ns - start);
    double busy = between((double)before.busy_ns, (double)after.busy_ns, fraction);
    double memory = between((double)before.memory_ns, (double)after.memory_ns, fraction);
    double h2d = between((double)before.h2d_ns, (double)after.h2d_ns, fraction);
    double d2h = between((double)before.d2h_ns, (double)after.d2h_ns, fraction);

    view->busy_percent = percent_of((double)u->busy_ns - busy, window);
    view->memory_percent = percent_of((double)u->memory_ns - memory, window);
    if (window > 0) {
        double kib_per_s = 1e9 / 1024; /* of one byte per nanosecond */
        view->rx_kib_per_s = (unsigned)(((double)u->copy_ns[SOFTGPU_QUEUE_H2D] - h2d) / window *
                                        u->bytes_per_ns[SOFTGPU_QUEUE_H2D] * kib_per_s);
        view->tx_kib_per_s = (unsigned)(((double)u->copy_ns[SOFTGPU_QUEUE_D2H] - d2h) / window *
                                        u->bytes_per_ns[SOFTGPU_QUEUE_D2H] * kib_per_s);
    }
}

/* A process is on the device once it has a context or memory there. */
static void list_processes(const struct softgpu_state *st, uint32_t unit, struct nvml_view *view) {
    for (uint32_t i = 0; i < st->header.proc_high; i++) {
        const struct softgpu_proc *p = &st->procs[i];
        bool here = p->contexts[unit] > 0 || p->used_bytes[unit] > 0;
        if (p->state != SOFTGPU_SLOT_USED || !here || view->process_count == SOFTGPU_MAX_PROCS) {
            continue;
        }
        view->processes[view->process_count++] =
            (struct nvml_process){.pid = p->pid,
                                  .bytes = p->used_bytes[unit],
                                  .sm_ns = p->sm_ns[unit],
                                  .generation = p->generation << 16 | i,
                                  .started_ns = (int64_t)p->started_ns,
                                  .instance = st->units[unit].instance,
                                  .compute = st->units[unit].compute,
                                  .mps = (p->flags & SOFTGPU_PROC_MPS) != 0};
    }
}

/* The GPU's own, and those on its instances. */
static void list_all_processes(const struct softgpu_state *st, unsigned index,
                               struct nvml_view *view) {
    for (uint32_t u = 0; u < st->header.unit_count; u++) {
        if (st->units[u].state == SOFTGPU_SLOT_USED && st->units[u].device == index) {
            list_processes(st, u, view);
        }
    }
}

static uint64_t wall_us(void) {
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (uint64_t)ts.tv_sec * 1000000u + (uint64_t)ts.tv_nsec / 1000u;
}

/* What is different of a MIG device. */
static void copy_mig(const struct softgpu_state *st, const struct nvml_target *t,
                     struct nvml_view *view) {
    const struct softgpu_mig_instance *g = &st->devices[t->index].mig[t->instance];
    const struct softgpu_mig_compute *c = &g->compute[t->compute];
    view->is_mig = true;
    view->instance = t->instance;
    view->compute = t->compute;
    view->profile = sg_mig_profile(view->model, g->profile);
    view->compute_slices = c->size;
    view->sm_count = c->sm_count;
    view->memory_bytes = g->memory_bytes;
    view->reserved_bytes = 0;
    view->used_bytes = g->memory_bytes - sg_unit_free_bytes(st, c->unit);
    view->compute_mode = 0;
    sg_nvml_format_uuid(view->uuid, "MIG-", c->uuid);
    char part[16] = "";
    if (c->size != view->profile->slices) {
        snprintf(part, sizeof part, "%uc.", c->size);
    }
    snprintf(view->name, sizeof view->name, "%s MIG %s%s", view->model->product, part,
             view->profile->name);
}

static nvmlReturn_t copy_view(const struct sg_node *node, const struct nvml_target *t,
                              struct nvml_view *view) {
    struct softgpu_state *st = node->st;
    const struct softgpu_device *d = &st->devices[t->index];
    uint32_t unit = t->is_mig ? d->mig[t->instance].compute[t->compute].unit : d->unit;
    const struct softgpu_unit *u = &st->units[unit];

    sg_reap(node, SOFTGPU_NONE, true);
    if (st->header.caps_stale) {
        sg_mig_caps_sync(node);
    }
    sg_engine_kick(st, unit, sg_state_now(st));

    *view = (struct nvml_view){.model = softgpu_model_find(d->model),
                               .index = t->index,
                               .instance = NVML_NO_INSTANCE,
                               .compute = NVML_NO_INSTANCE,
                               .minor = d->minor,
                               .pci_domain = d->pci_domain,
                               .pci_bus = d->pci_bus,
                               .pci_device = d->pci_device,
                               .memory_bytes = d->memory_bytes,
                               .reserved_bytes = d->reserved_bytes,
                               .used_bytes = d->used_bytes,
                               .compute_mode = d->compute_mode,
                               .mig_mode = d->mig_mode,
                               .mig_pending = d->mig_pending,
                               .now_ns = u->now_ns,
                               .wall_us = wall_us(),
                               .busy_ns = u->busy_ns};
    sg_nvml_format_uuid(view->uuid, "GPU-", d->uuid);
    format_serial(view->serial, d->uuid);
    if (view->model == NULL) {
        return NVML_ERROR_UNKNOWN; /* a state file of another build */
    }
    if (d->lost) {
        return NVML_ERROR_GPU_IS_LOST;
    }
    snprintf(view->name, sizeof view->name, "%s", view->model->product);
    measure(u, view);
    if (t->is_mig) {
        copy_mig(st, t, view);
        list_processes(st, unit, view);
    } else {
        list_all_processes(st, t->index, view);
    }
    return NVML_SUCCESS;
}

static nvmlReturn_t look_locked(const struct sg_node *node, nvmlDevice_t device, bool mig,
                                struct nvml_view *view) {
    struct nvml_target t;
    nvmlReturn_t err = sg_nvml_target(node, device, &t);
    if (err == NVML_SUCCESS && t.is_mig && !mig) {
        err = NVML_ERROR_NOT_SUPPORTED;
    }
    if (err != NVML_SUCCESS) {
        return err;
    }
    err = copy_view(node, &t, view);
    struct nvml_target other;
    for (unsigned i = 0; t.is_mig && sg_nvml_mig_at(node, t.index, i, &other); i++) {
        if (other.instance == t.instance && other.compute == t.compute) {
            view->mig_index = i;
        }
    }
    return err;
}

/* Which GPU a call is about, for faults; a wrong handle is about none. */
static unsigned device_of(const struct sg_node *node, nvmlDevice_t device) {
    struct nvml_target t = {.index = SOFTGPU_NONE};
    sg_state_lock(node);
    (void)sg_nvml_target(node, device, &t);
    sg_state_unlock(node);
    return t.index;
}

nvmlReturn_t sg_nvml_look(const char *entry, nvmlDevice_t device, bool mig,
                          struct nvml_view *view) {
    const struct sg_node *node = sg_nvml_enter();
    if (node == NULL) {
        return NVML_ERROR_UNINITIALIZED;
    }
    nvmlReturn_t err = NVML_SUCCESS;
    if (entry != NULL && __atomic_load_n(&node->st->header.faults_armed, __ATOMIC_RELAXED) != 0) {
        err = sg_nvml_strike(node, entry, device_of(node, device), false);
    }
    if (err == NVML_SUCCESS) {
        sg_state_lock(node);
        err = look_locked(node, device, mig, view);
        sg_state_unlock(node);
    }
    sg_nvml_leave();
    return err;
}
