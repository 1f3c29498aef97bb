/* Making a node, and changing it while programs use it. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "state.h"
#include "tool.h"

/* Opens the node that SOFTGPU_STATE names; says why not. */
int tool_open(struct sg_node *node, const char *command, const char *gpus) {
    int rc = sg_state_open(node, NULL, gpus);
    if (rc == -EINVAL) {
        const char *wanted = gpus != NULL ? gpus : getenv("SOFTGPU_GPUS");
        fprintf(stderr,
                "softgpu %s: no such GPUs: \"%s\"; want a list such as H100 or 2xA30,B200\n",
                command, wanted == NULL ? "" : wanted);
    } else if (rc != 0) {
        char buf[64];
        fprintf(stderr, "softgpu %s: open %s: %s\n", command, sg_state_path(NULL, buf, sizeof(buf)),
                strerror(-rc));
    }
    return rc;
}

int tool_create(int argc, char **argv) {
    char buf[64];
    const char *path = sg_state_path(NULL, buf, sizeof(buf));
    if (argc > 2) {
        fprintf(stderr, "softgpu create: want at most one list of GPUs\n");
        return 2;
    }
    if (access(path, F_OK) == 0) {
        fprintf(stderr, "softgpu create: %s exists\n", path);
        return 1;
    }
    struct sg_node node;
    if (tool_open(&node, "create", argc == 2 ? argv[1] : NULL) != 0) {
        unlink(path);
        return 1;
    }
    printf("%s: %u devices\n", path, node.st->header.device_count);
    sg_state_close(&node);
    return 0;
}

int tool_set(int argc, char **argv) {
    if (argc != 4 || strcmp(argv[2], "mps") != 0 ||
        (strcmp(argv[3], "on") != 0 && strcmp(argv[3], "off") != 0)) {
        fprintf(stderr, "softgpu set: want DEVICE mps on|off\n");
        return 2;
    }
    struct sg_node node;
    if (tool_open(&node, "set", NULL) != 0) {
        return 1;
    }
    char *end;
    unsigned long device = strtoul(argv[1], &end, 10);
    int rc = 0;
    if (*end != '\0' || device >= node.st->header.device_count) {
        fprintf(stderr, "softgpu set: no device %s\n", argv[1]);
        rc = 1;
    } else {
        sg_state_lock(&node);
        node.st->devices[device].mps = strcmp(argv[3], "on") == 0;
        sg_state_unlock(&node);
    }
    sg_state_close(&node);
    return rc;
}

static int parse_fault(struct softgpu_fault *f, int argc, char **argv) {
    if (argc < 3) {
        return -1;
    }
    snprintf(f->entry, sizeof(f->entry), "%s", argv[1]);
    f->result = (uint32_t)strtoul(argv[2], NULL, 10);
    for (int i = 3; i < argc; i++) {
        if (strcmp(argv[i], "--sticky") == 0) {
            f->flags |= SOFTGPU_FAULT_STICKY;
        } else if (strcmp(argv[i], "--always") == 0) {
            f->flags |= SOFTGPU_FAULT_ALWAYS;
        } else if (strcmp(argv[i], "--late") == 0) {
            f->flags |= SOFTGPU_FAULT_LATE;
        } else if (strcmp(argv[i], "--kill") == 0) {
            f->flags |= SOFTGPU_FAULT_KILL;
        } else if (strcmp(argv[i], "--after") == 0 && i + 1 < argc) {
            f->after = strtoull(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--times") == 0 && i + 1 < argc) {
            f->times = strtoull(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--delay") == 0 && i + 1 < argc) {
            f->delay_ns = strtoull(argv[++i], NULL, 10) * 1000000;
        } else if (strcmp(argv[i], "--gpu") == 0 && i + 1 < argc) {
            f->device = 1 + (uint32_t)strtoul(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--pid") == 0 && i + 1 < argc) {
            f->pid = (uint32_t)strtoul(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--random") == 0 && i + 2 < argc) {
            f->flags |= SOFTGPU_FAULT_RANDOM;
            f->seed = strtoull(argv[++i], NULL, 10);
            f->probability = strtod(argv[++i], NULL);
        } else {
            return -1;
        }
    }
    bool harmless = f->result == 0 && f->delay_ns == 0 && (f->flags & SOFTGPU_FAULT_KILL) == 0;
    return harmless ? -1 : 0;
}

static void clear_faults(struct softgpu_state *st) {
    for (int i = 0; i < SOFTGPU_MAX_FAULTS; i++) {
        /* A program that is struck at this moment has counted its fault out itself. */
        if (__atomic_exchange_n(&st->faults[i].armed, 0, __ATOMIC_ACQ_REL) != 0) {
            __atomic_sub_fetch(&st->header.faults_armed, 1, __ATOMIC_RELEASE);
        }
    }
}

static int arm(struct softgpu_state *st, const struct softgpu_fault *f) {
    for (int i = 0; i < SOFTGPU_MAX_FAULTS; i++) {
        if (st->faults[i].armed == 0) {
            st->faults[i] = *f;
            __atomic_add_fetch(&st->header.faults_armed, 1, __ATOMIC_RELEASE);
            __atomic_store_n(&st->faults[i].armed, 1, __ATOMIC_RELEASE);
            return 0;
        }
    }
    return -1;
}

int tool_fault(int argc, char **argv) {
    struct softgpu_fault f = {0};
    int clear = argc == 2 && strcmp(argv[1], "--clear") == 0;
    if (!clear && parse_fault(&f, argc, argv) != 0) {
        fprintf(stderr, "softgpu fault: want ENTRY RESULT [--after N] [--times N] [--pid P] "
                        "[--gpu N] [--delay MS] [--late] [--kill] [--sticky] [--always] "
                        "[--random SEED PROBABILITY], or --clear\n");
        return 2;
    }
    struct sg_node node;
    if (tool_open(&node, "fault", NULL) != 0) {
        return 1;
    }
    int rc = 0;
    sg_state_lock(&node);
    if (clear) {
        clear_faults(node.st);
    } else {
        rc = arm(node.st, &f);
    }
    sg_state_unlock(&node);
    if (rc != 0) {
        fprintf(stderr, "softgpu fault: all %d places are taken\n", SOFTGPU_MAX_FAULTS);
    }
    sg_state_close(&node);
    return rc == 0 ? 0 : 1;
}
