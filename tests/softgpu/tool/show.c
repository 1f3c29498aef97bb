/* Prints a node, for people or as JSON. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "state.h"
#include "tool.h"

static const char *const counter_names[SOFTGPU_COUNTERS] = {
    "launches", "opaque",        "graphs", "copies", "copy_bytes",     "memsets",    "syncs",
    "queries",  "event_records", "allocs", "frees",  "host_functions", "stub_calls", "faults",
};

/* Counters of one process with its threads' tallies, or with NONE of those that are gone. */
static void counters_of(const struct softgpu_state *st, uint32_t proc, uint64_t *out) {
    const uint64_t *calls = proc == SOFTGPU_NONE ? st->header.calls : st->procs[proc].calls;
    memcpy(out, calls, sizeof(uint64_t) * SOFTGPU_COUNTERS);
    for (uint32_t t = 0; proc != SOFTGPU_NONE && t < SOFTGPU_MAX_TALLIES; t++) {
        if (st->tallies[t].proc == proc) {
            out[SOFTGPU_COUNT_LAUNCH] += st->tallies[t].launches;
            out[SOFTGPU_COUNT_OPAQUE] += st->tallies[t].opaque;
        }
    }
}

static void json_counters(const uint64_t *c) {
    printf("{");
    for (int i = 0; counter_names[i] != NULL; i++) {
        printf("%s\"%s\":%llu", i ? "," : "", counter_names[i], (unsigned long long)c[i]);
    }
    printf("}");
}

/* Names come from program files: whatever is not plain is left out. */
static void json_string(const char *s) {
    putchar('"');
    for (; *s != '\0'; s++) {
        if (*s >= ' ' && *s < 127 && *s != '"' && *s != '\\') {
            putchar(*s);
        }
    }
    putchar('"');
}

static void json_devices(const struct sg_node *node) {
    const struct softgpu_state *st = node->st;
    printf("\"devices\":[");
    for (uint32_t d = 0; d < st->header.device_count; d++) {
        const struct softgpu_device *dev = &st->devices[d];
        const struct softgpu_unit *u = &st->units[dev->unit];
        printf("%s{\"model\":\"%s\",\"product\":\"%s\",\"memory_bytes\":%llu,\"used_bytes\":%llu,"
               "\"sm_count\":%u,\"kernels\":%llu,\"busy_ns\":%llu,\"switches\":%llu,\"mps\":%s,"
               "\"mig\":",
               d ? "," : "", dev->model, dev->product, (unsigned long long)u->memory_bytes,
               (unsigned long long)u->used_bytes, u->sm_count, (unsigned long long)u->kernels,
               (unsigned long long)u->busy_ns, (unsigned long long)u->switches,
               dev->mps ? "true" : "false");
        tool_json_mig(node, d);
        printf("}");
    }
    printf("]");
}

static void json_processes(const struct softgpu_state *st) {
    printf("\"processes\":[");
    const char *comma = "";
    for (uint32_t p = 0; p < st->header.proc_high; p++) {
        const struct softgpu_proc *proc = &st->procs[p];
        if (proc->state != SOFTGPU_SLOT_USED) {
            continue;
        }
        uint64_t c[SOFTGPU_COUNTERS];
        counters_of(st, p, c);
        uint64_t used = 0;
        uint32_t contexts = 0;
        for (uint32_t u = 0; u < st->header.unit_count; u++) {
            used += proc->used_bytes[u];
            contexts += proc->contexts[u];
        }
        printf("%s{\"pid\":%u,\"name\":", comma, proc->pid);
        json_string(proc->name);
        printf(",\"mps\":%s,\"used_bytes\":%llu,\"contexts\":%u,\"calls\":",
               proc->flags & SOFTGPU_PROC_MPS ? "true" : "false", (unsigned long long)used,
               contexts);
        json_counters(c);
        printf("}");
        comma = ",";
    }
    printf("]");
}

static void json_rest(const struct softgpu_state *st) {
    uint64_t gone[SOFTGPU_COUNTERS];
    counters_of(st, SOFTGPU_NONE, gone);
    printf("\"gone\":");
    json_counters(gone);
    printf(",\"repairs\":%llu,\"reaped\":%llu,\"stubs\":{", (unsigned long long)st->header.repairs,
           (unsigned long long)st->header.reaped);
    for (int i = 0; i < SOFTGPU_MAX_STUBS && st->stubs[i].name[0] != '\0'; i++) {
        printf("%s\"%s\":%llu", i ? "," : "", st->stubs[i].name,
               (unsigned long long)st->stubs[i].calls);
    }
    printf("}");
}

static void show_json(const struct sg_node *node) {
    const struct softgpu_state *st = node->st;
    printf("{\"profile\":\"%s\",\"speed\":%g,",
           st->header.profile == SOFTGPU_PROFILE_NULL ? "null" : "real-like", st->header.speed);
    json_devices(node);
    printf(",");
    json_processes(st);
    printf(",");
    json_rest(st);
    printf("}\n");
}

static void text_counters(const uint64_t *c) {
    for (int i = 0; counter_names[i] != NULL; i++) {
        if (c[i] != 0) {
            printf("  %s %llu", counter_names[i], (unsigned long long)c[i]);
        }
    }
    printf("\n");
}

static void show_text(const struct sg_node *node) {
    const struct softgpu_state *st = node->st;
    for (uint32_t d = 0; d < st->header.device_count; d++) {
        const struct softgpu_device *dev = &st->devices[d];
        const struct softgpu_unit *u = &st->units[dev->unit];
        printf("%u  %s  %llu of %llu MiB used  %u SMs  %llu kernels  busy %.3f s%s\n", d,
               dev->product, (unsigned long long)(u->used_bytes >> 20),
               (unsigned long long)(u->memory_bytes >> 20), u->sm_count,
               (unsigned long long)u->kernels, (double)u->busy_ns / 1e9, dev->mps ? "  MPS" : "");
        tool_draw_mig(node, d);
    }
    for (uint32_t p = 0; p < st->header.proc_high; p++) {
        const struct softgpu_proc *proc = &st->procs[p];
        if (proc->state != SOFTGPU_SLOT_USED) {
            continue;
        }
        uint64_t c[SOFTGPU_COUNTERS];
        counters_of(st, p, c);
        printf("pid %u %s", proc->pid, proc->name);
        text_counters(c);
    }
    printf("gone");
    text_counters(st->header.calls);
    for (int i = 0; i < SOFTGPU_MAX_FAULTS; i++) {
        const struct softgpu_fault *f = &st->faults[i];
        if (f->armed || f->hits) {
            printf("fault %s -> %u: %llu of %llu calls%s\n", f->entry, f->result,
                   (unsigned long long)f->hits, (unsigned long long)f->calls,
                   f->armed ? ", armed" : "");
        }
    }
    for (int i = 0; i < SOFTGPU_MAX_STUBS && st->stubs[i].name[0] != '\0'; i++) {
        printf("not implemented, called %llu times: %s\n", (unsigned long long)st->stubs[i].calls,
               st->stubs[i].name);
    }
}

int tool_show(int argc, char **argv) {
    int json = argc == 2 && strcmp(argv[1], "--json") == 0;
    if (argc > 2 || (argc == 2 && !json)) {
        fprintf(stderr, "softgpu show: unknown argument %s\n", argv[argc - 1]);
        return 2;
    }
    struct sg_node node;
    if (tool_open(&node, "show", NULL) != 0) {
        return 1;
    }
    sg_state_lock(&node);
    sg_reap(&node, SOFTGPU_NONE, true);
    tool_settle_mig(&node);
    sg_engine_advance_all(node.st, sg_state_now(node.st));
    if (json) {
        show_json(&node);
    } else {
        show_text(&node);
    }
    sg_state_unlock(&node);
    sg_state_close(&node);
    return 0;
}
