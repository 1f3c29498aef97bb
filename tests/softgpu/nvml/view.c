/* Copying one moment of a device out of the shared state. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "session.h"

static void format_uuid(char out[48], const uint8_t b[16]) {
    char *to = out;
    to += sprintf(to, "GPU-");
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
        if (p->state != SOFTGPU_SLOT_USED || !here) {
            continue;
        }
        view->processes[view->process_count++] =
            (struct nvml_process){.pid = p->pid,
                                  .bytes = p->used_bytes[unit],
                                  .sm_ns = p->sm_ns[unit],
                                  .generation = p->generation << 16 | i,
                                  .started_ns = (int64_t)p->started_ns,
                                  .mps = (p->flags & SOFTGPU_PROC_MPS) != 0};
    }
}

static uint64_t wall_us(void) {
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (uint64_t)ts.tv_sec * 1000000u + (uint64_t)ts.tv_nsec / 1000u;
}

static nvmlReturn_t copy_view(const struct sg_node *node, unsigned index, struct nvml_view *view) {
    struct softgpu_state *st = node->st;
    const struct softgpu_device *d = &st->devices[index];
    const struct softgpu_unit *u = &st->units[d->unit];

    sg_reap(node, SOFTGPU_NONE, true);
    sg_engine_kick(st, d->unit, sg_state_now(st));

    *view = (struct nvml_view){.model = softgpu_model_find(d->model),
                               .index = index,
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
    format_uuid(view->uuid, d->uuid);
    format_serial(view->serial, d->uuid);
    if (view->model == NULL) {
        return NVML_ERROR_UNKNOWN; /* a state file of another build */
    }
    if (d->lost) {
        return NVML_ERROR_GPU_IS_LOST;
    }
    measure(u, view);
    list_processes(st, d->unit, view);
    return NVML_SUCCESS;
}

nvmlReturn_t sg_nvml_look(nvmlDevice_t device, struct nvml_view *view) {
    const struct sg_node *node = sg_nvml_enter();
    if (node == NULL) {
        return NVML_ERROR_UNINITIALIZED;
    }
    unsigned index;
    nvmlReturn_t err = NVML_ERROR_INVALID_ARGUMENT;
    if (sg_nvml_index(node, device, &index)) {
        sg_state_lock(node);
        err = copy_view(node, index, view);
        sg_state_unlock(node);
    }
    sg_nvml_leave();
    return err;
}
