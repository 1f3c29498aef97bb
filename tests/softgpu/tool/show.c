/* softgpu show: what a node looks like now. Like every program that enters it moves the device
 * model to now and forgets the dead, so it also settles a node at rest. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "state.h"
#include "tool.h"

/* Text that any process may have chosen, as a JSON string. */
static void json_text(const char *s) {
    putchar('"');
    for (; *s != '\0'; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\') {
            printf("\\%c", c);
        } else if (c < 0x20 || c >= 0x7f) {
            printf("\\u%04x", c); /* bytes, not characters: names are for people */
        } else {
            putchar(c);
        }
    }
    putchar('"');
}

static void print_uuid(const uint8_t uuid[16]) {
    printf("GPU-");
    for (int i = 0; i < 16; i++) {
        bool dash = i == 4 || i == 6 || i == 8 || i == 10;
        printf(dash ? "-%02x" : "%02x", uuid[i]);
    }
}

/* A process's launches: those already added up, and those still in its threads' tallies. */
static uint64_t launches(const struct softgpu_state *st, uint32_t proc) {
    uint64_t n = __atomic_load_n(&st->procs[proc].calls[SOFTGPU_COUNT_LAUNCH], __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < SOFTGPU_MAX_TALLIES; i++) {
        if (__atomic_load_n(&st->tallies[i].proc, __ATOMIC_ACQUIRE) == proc) {
            n += __atomic_load_n(&st->tallies[i].launches, __ATOMIC_RELAXED);
        }
    }
    return n;
}

static bool is_on(const struct softgpu_proc *p, uint32_t unit) {
    return p->state == SOFTGPU_SLOT_USED && (p->contexts[unit] > 0 || p->used_bytes[unit] > 0);
}

static void json_processes(const struct softgpu_state *st, uint32_t unit) {
    const char *comma = "";
    for (uint32_t i = 0; i < st->header.proc_high; i++) {
        const struct softgpu_proc *p = &st->procs[i];
        if (!is_on(p, unit)) {
            continue;
        }
        printf("%s{\"pid\":%" PRIu32 ",\"name\":", comma, p->pid);
        json_text(p->name);
        printf(",\"used_bytes\":%" PRIu64 ",\"contexts\":%" PRIu32 ",\"launches\":%" PRIu64
               ",\"mps\":%s}",
               p->used_bytes[unit], p->contexts[unit], launches(st, i),
               p->flags & SOFTGPU_PROC_MPS ? "true" : "false");
        comma = ",";
    }
}

static void show_json(const struct softgpu_state *st) {
    printf("{\"profile\":\"%s\",\"speed\":%g,\"gpus\":[",
           st->header.profile == SOFTGPU_PROFILE_NULL ? "null" : "real-like", st->header.speed);
    for (uint32_t i = 0; i < st->header.device_count; i++) {
        const struct softgpu_device *d = &st->devices[i];
        const struct softgpu_unit *u = &st->units[d->unit];
        printf("%s{\"model\":\"%s\",\"uuid\":\"", i == 0 ? "" : ",", d->model);
        print_uuid(d->uuid);
        printf("\",\"memory_bytes\":%" PRIu64 ",\"reserved_bytes\":%" PRIu64
               ",\"used_bytes\":%" PRIu64 ",\"busy_ns\":%" PRIu64 ",\"kernels\":%" PRIu64
               ",\"switches\":%" PRIu64 ",\"lost\":%s,\"mps\":%s,\"processes\":[",
               d->memory_bytes, d->reserved_bytes, d->used_bytes, u->busy_ns, u->kernels,
               u->switches, d->lost ? "true" : "false", d->mps ? "true" : "false");
        json_processes(st, d->unit);
        printf("]}");
    }
    printf("],\"stubs\":{");
    const char *comma = "";
    for (uint32_t i = 0; i < SOFTGPU_MAX_STUBS; i++) {
        const struct softgpu_stub *s = &st->stubs[i];
        if (s->calls > 0) {
            printf("%s\"%s\":%" PRIu64, comma, s->name, s->calls);
            comma = ",";
        }
    }
    printf("}}\n");
}

static void show_text(const struct softgpu_state *st) {
    for (uint32_t i = 0; i < st->header.device_count; i++) {
        const struct softgpu_device *d = &st->devices[i];
        printf("%" PRIu32 "  %s  ", i, d->product);
        print_uuid(d->uuid);
        printf("  %" PRIu64 " of %" PRIu64 " MiB%s\n", d->used_bytes >> 20, d->memory_bytes >> 20,
               d->lost ? "  lost" : "");
        for (uint32_t p = 0; p < st->header.proc_high; p++) {
            const struct softgpu_proc *proc = &st->procs[p];
            if (is_on(proc, d->unit)) {
                printf("   pid %" PRIu32 "  %s  %" PRIu64 " MiB  %" PRIu64 " launches\n", proc->pid,
                       proc->name, proc->used_bytes[d->unit] >> 20, launches(st, p));
            }
        }
    }
    for (uint32_t i = 0; i < SOFTGPU_MAX_STUBS; i++) {
        const struct softgpu_stub *s = &st->stubs[i];
        if (s->calls > 0) {
            printf("not implemented: %s, called %" PRIu64 " times\n", s->name, s->calls);
        }
    }
}

int tool_show(int argc, char **argv) {
    bool json = argc == 2 && strcmp(argv[1], "--json") == 0;
    if (argc > 1 && !json) {
        fprintf(stderr, "softgpu show: unknown argument %s\n", argv[1]);
        return 2;
    }
    struct sg_node node;
    int rc = sg_state_open(&node, NULL, NULL);
    if (rc != 0) {
        char buf[64];
        fprintf(stderr, "softgpu show: open %s: %s\n", sg_state_path(NULL, buf, sizeof(buf)),
                strerror(-rc));
        return 1;
    }
    sg_state_lock(&node);
    sg_reap(&node, SOFTGPU_NONE, true);
    sg_engine_advance_all(node.st, sg_state_now(node.st));
    if (json) {
        show_json(node.st);
    } else {
        show_text(node.st);
    }
    sg_state_unlock(&node);
    sg_state_close(&node);
    return 0;
}
