/* MIG by hand, and as another program would do it: what it makes is foreign to whoever is under test. */
#define _GNU_SOURCE
#include "mig.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

enum { PIDS = 8 };

/* "0", "0/2" or "0/2/1": a GPU, a GPU instance, a compute instance. */
struct target {
    uint32_t device, instance, compute;
};

static int complain(const char *what, const char *about) {
    fprintf(stderr, "softgpu mig: %s: %s\n", about, what);
    return 1;
}

static bool parse_target(const char *text, struct target *t) {
    unsigned part[3] = {0, SOFTGPU_NONE, SOFTGPU_NONE};
    int end[3] = {0};
    int n = sscanf(text, "%u%n/%u%n/%u%n", &part[0], &end[0], &part[1], &end[1], &part[2], &end[2]);
    if (n < 1 || text[end[n - 1]] != '\0') {
        return false;
    }
    *t = (struct target){.device = part[0], .instance = part[1], .compute = part[2]};
    return true;
}

/* Says why a change was refused, with the processes that stand in the way. */
static int explain(const struct sg_node *node, const struct target *t, const char *about, int rc) {
    uint32_t pids[PIDS];
    char text[160] = "";
    switch (rc) {
    case 0:
        return 0;
    case -EBUSY:
        break;
    case -ENOSPC:
        return complain("something is in the way, or engines or slices are used up", about);
    case -ENOSYS:
        return complain("MIG is off", about);
    default:
        return complain("no such profile, placement or instance", about);
    }
    uint32_t count = sg_mig_users(node, t->device, t->instance, t->compute, pids, PIDS);
    for (uint32_t i = 0; i < count && i < PIDS; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof(text) - used, " %u", pids[i]);
    }
    char what[256];
    snprintf(what, sizeof(what), "in use%s%s", count > 0 ? " by" : ": it has instances", text);
    return complain(what, about);
}

/* "9", "3g.40gb", and with ":4" the start. */
static bool parse_profile(const struct softgpu_model *m, const char *text, uint32_t *id,
                          uint32_t *start) {
    char name[64];
    size_t len = strcspn(text, ":");
    if (m == NULL || len == 0 || len >= sizeof(name)) {
        return false;
    }
    memcpy(name, text, len);
    name[len] = '\0';
    char *end = name;
    *start = SG_MIG_ANYWHERE;
    if (text[len] == ':') {
        *start = (uint32_t)strtoul(text + len + 1, &end, 10);
        if (end == text + len + 1 || *end != '\0') {
            return false;
        }
    }
    *id = (uint32_t)strtoul(name, &end, 10);
    for (uint32_t i = 0; *end != '\0' && i < m->mig_profile_count; i++) {
        if (strcmp(m->mig_profiles[i].name, name) == 0) {
            *id = m->mig_profiles[i].id;
            return true;
        }
    }
    return *end == '\0';
}

/* The compute instance profile that is all of the GPU instance. */
static uint32_t whole_of(const struct softgpu_model *m, const struct softgpu_mig_profile *p) {
    struct sg_mig_compute_profile c;
    for (uint32_t id = 0; id < 8; id++) {
        if (sg_mig_compute_profile(m, p, id, &c) && c.slices == p->slices) {
            return id;
        }
    }
    return 0;
}

static int create(const struct sg_node *node, struct target *t, int argc, char **argv) {
    const struct softgpu_model *m = sg_mig_model(node->st, t->device);
    bool bare = argc == 2 && strcmp(argv[1], "--bare") == 0;
    uint32_t profile;
    uint32_t start;
    uint32_t id = t->instance;
    uint32_t compute = 0;
    int rc = 0;
    if (argc < 1 || argc > 2 || (argc == 2 && !bare) ||
        !parse_profile(m, argv[0], &profile, &start)) {
        return complain("want PROFILE[:START] [--bare]", "create");
    }
    if (id == SOFTGPU_NONE) {
        rc = sg_mig_create(node, t->device, profile, start, &id);
        if (rc == 0 && bare) {
            printf("%u/%u\n", t->device, id);
            return 0;
        }
        start = SG_MIG_ANYWHERE;
        profile = rc == 0 ? whole_of(m, sg_mig_profile(m, profile)) : profile;
    }
    if (rc == 0) {
        rc = sg_mig_create_compute(node, t->device, id, profile, start, &compute);
    }
    if (rc == 0) {
        printf("%u/%u/%u\n", t->device, id, compute);
    }
    return explain(node, t, argv[0], rc);
}

/* A GPU instance goes with its compute instances, a GPU's all go; up to the first that does not. */
static int destroy(const struct sg_node *node, struct target *t, int argc, char **argv) {
    const struct softgpu_device *d = &node->st->devices[t->device];
    int rc = -EINVAL;
    if (argc != 0) {
        return complain("want no more than GPU[/GI[/CI]]", argv[0]);
    }
    for (uint32_t i = 0; i < SOFTGPU_MIG_IDS; i++) {
        if (d->mig[i].state != SOFTGPU_SLOT_USED ||
            (t->instance != SOFTGPU_NONE && t->instance != i)) {
            continue;
        }
        rc = t->compute == SOFTGPU_NONE ? 0 : -EINVAL;
        for (uint32_t c = 0; c < SOFTGPU_MIG_INSTANCES; c++) {
            bool there = d->mig[i].compute[c].state == SOFTGPU_SLOT_USED;
            if (there && (t->compute == SOFTGPU_NONE || t->compute == c)) {
                rc = sg_mig_destroy_compute(node, t->device, i, c);
            }
            if (there && rc == -EBUSY) {
                return explain(node, t, "destroy", rc);
            }
        }
        if (rc == 0 && t->compute == SOFTGPU_NONE) {
            rc = sg_mig_destroy(node, t->device, i);
        }
        if (rc != 0) {
            return explain(node, t, "destroy", rc);
        }
    }
    return rc == -EINVAL && t->instance == SOFTGPU_NONE ? 0 : explain(node, t, "destroy", rc);
}

static int mode(const struct sg_node *node, struct target *t, int argc, char **argv) {
    enum sg_mig_activation activation = SG_MIG_ACTIVE;
    if (argc != 1 || (strcmp(argv[0], "on") != 0 && strcmp(argv[0], "off") != 0)) {
        return complain("want on or off", "mode");
    }
    int rc = sg_mig_set_mode(node, t->device, strcmp(argv[0], "on") == 0, &activation);
    if (rc == 0 && activation == SG_MIG_RESET) {
        return complain("pending: the GPU has to be reset", "mode");
    }
    return explain(node, t, "mode", rc == 0 && activation == SG_MIG_IN_USE ? -EBUSY : rc);
}

/* Is a process with the target open, as a monitor is, until its input ends. */
static int hold(const struct sg_node *node, struct target *t, int argc, char **argv) {
    if (argc != 0) {
        return complain("want no more than GPU[/GI[/CI]]", argv[0]);
    }
    const struct softgpu_mig_instance *g = &node->st->devices[t->device].mig[0];
    if (t->instance != SOFTGPU_NONE) {
        bool there = t->instance < SOFTGPU_MIG_IDS && g[t->instance].state == SOFTGPU_SLOT_USED;
        if (there && t->compute != SOFTGPU_NONE) {
            there = t->compute < SOFTGPU_MIG_INSTANCES &&
                    g[t->instance].compute[t->compute].state == SOFTGPU_SLOT_USED;
        }
        if (!there) {
            return explain(node, t, "hold", -EINVAL);
        }
    }
    uint32_t slot = sg_proc_claim(node);
    if (slot == SOFTGPU_NONE) {
        return complain("too many processes", "hold");
    }
    struct softgpu_proc *p = &node->st->procs[slot];
    if (t->instance == SOFTGPU_NONE) {
        p->opened = 1u << t->device;
    } else {
        p->mig_device = t->device;
        p->mig_instance = t->instance;
        p->mig_compute = t->compute;
    }
    sg_state_unlock(node);
    printf("held by %d\n", (int)getpid());
    fflush(stdout);
    char byte;
    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }
    sg_state_lock(node);
    sg_proc_release(node, slot);
    return 0;
}

static const struct {
    const char *name;
    int (*run)(const struct sg_node *node, struct target *t, int argc, char **argv);
} commands[] = {{"create", create}, {"destroy", destroy}, {"mode", mode}, {"hold", hold}};

static int run_on_target(const char *name, int argc, char **argv) {
    struct target t;
    for (size_t i = 0; argc > 0 && i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(commands[i].name, name) != 0) {
            continue;
        }
        struct sg_node node;
        if (!parse_target(argv[0], &t)) {
            return complain("want GPU[/GI[/CI]]", argv[0]) + 1;
        }
        if (tool_open(&node, "mig", NULL) != 0) {
            return 1;
        }
        int rc = 1;
        if (t.device >= node.st->header.device_count) {
            complain("no such GPU", argv[0]);
        } else {
            sg_state_lock(&node);
            rc = commands[i].run(&node, &t, argc - 1, argv + 1);
            sg_state_unlock(&node);
        }
        sg_state_close(&node);
        return rc;
    }
    fprintf(stderr, "softgpu mig: want create|destroy|mode|hold GPU[/GI[/CI]] ..., show, or "
                    "layouts MODEL\n");
    return 2;
}

struct printer {
    bool first;
};

static void print_layout(void *arg, const struct sg_mig_place *places, uint32_t count,
                         bool maximal) {
    struct printer *p = arg;
    printf("%s\n{\"maximal\":%s,\"instances\":[", p->first ? "" : ",", maximal ? "true" : "false");
    for (uint32_t i = 0; i < count; i++) {
        printf("%s{\"profile\":%u,\"start\":%u}", i ? "," : "", places[i].profile->id,
               places[i].start);
    }
    printf("]}");
    p->first = false;
}

/* Every set of instances that may exist side by side, as JSON. */
static int layouts(const char *model) {
    const struct softgpu_model *m = softgpu_model_find(model);
    if (m == NULL) {
        return complain("no such model", model);
    }
    struct printer p = {.first = true};
    printf("[");
    sg_mig_enumerate(m, print_layout, &p);
    printf("\n]\n");
    return 0;
}

int tool_mig(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "layouts") == 0) {
        return layouts(argv[2]);
    }
    if (argc >= 2 && strcmp(argv[1], "show") == 0) {
        return tool_mig_show(argc - 1, argv + 1);
    }
    return run_on_target(argc > 1 ? argv[1] : "", argc - 2, argv + 2);
}

int tool_reset(int argc, char **argv) {
    struct sg_node node;
    struct target t = {.instance = SOFTGPU_NONE, .compute = SOFTGPU_NONE};
    if (argc != 2 || !parse_target(argv[1], &t) || t.instance != SOFTGPU_NONE) {
        fprintf(stderr, "softgpu reset: want GPU\n");
        return 2;
    }
    if (tool_open(&node, "reset", NULL) != 0) {
        return 1;
    }
    int rc = 1;
    if (t.device >= node.st->header.device_count) {
        complain("no such GPU", argv[1]);
    } else {
        sg_state_lock(&node);
        rc = explain(&node, &t, "reset", sg_mig_reset(&node, t.device));
        sg_state_unlock(&node);
    }
    sg_state_close(&node);
    return rc;
}

int tool_reboot(int argc, char **argv) {
    struct sg_node node;
    if (argc != 1) {
        fprintf(stderr, "softgpu reboot: want no argument: %s\n", argv[1]);
        return 2;
    }
    if (tool_open(&node, "reboot", NULL) != 0) {
        return 1;
    }
    sg_state_lock(&node);
    int rc = sg_mig_reboot(&node);
    if (rc != 0) {
        fprintf(stderr, "softgpu reboot: processes of the node are still alive\n");
    }
    sg_state_unlock(&node);
    sg_state_close(&node);
    return rc == 0 ? 0 : 1;
}
