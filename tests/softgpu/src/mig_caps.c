/* What the kernel driver shows of MIG's capabilities, as a folder beside the state file. It follows the state:
 * who changes instances marks it as out of date, changes them, and makes it anew; if he dies on the way, the
 * next one who looks does that. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mig.h"

enum {
    CAP_CONFIG = 1,
    CAP_MONITOR = 2,
    GPU_MINORS = 32,
    CAP_FIRST = 3, /* of GPU 0's instance 0; then that of each of its compute instances */
    CAPS_PER_INSTANCE = 1 + SOFTGPU_MIG_INSTANCES,
    CAPS_PER_GPU = SOFTGPU_MIG_IDS * CAPS_PER_INSTANCE,
    CAPS = CAP_FIRST + GPU_MINORS * CAPS_PER_GPU,
    PATH_BYTES = 4096
};

uint32_t sg_mig_minor(uint32_t gpu_minor, uint32_t id, uint32_t compute) {
    if (id == SOFTGPU_NONE) {
        return CAP_CONFIG;
    }
    uint32_t minor = CAP_FIRST + gpu_minor * CAPS_PER_GPU + id * CAPS_PER_INSTANCE;
    return compute == SOFTGPU_NONE ? minor : minor + 1 + compute;
}

bool sg_mig_caps_path(const struct sg_node *node, char *out, size_t size) {
    char link[64];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", node->fd);
    ssize_t n = readlink(link, out, size - 6);
    if (n < 0 || (size_t)n >= size - 6) {
        return false;
    }
    out[n] = '\0';
    struct stat by_name;
    struct stat by_fd;
    if (stat(out, &by_name) != 0 || fstat(node->fd, &by_fd) != 0 ||
        by_name.st_ino != by_fd.st_ino || by_name.st_dev != by_fd.st_dev) {
        return false; /* removed, or another node by now */
    }
    memcpy(out + n, ".caps", 6);
    return true;
}

void sg_mig_caps_spoil(const struct sg_node *node) {
    __atomic_store_n(&node->st->header.caps_stale, 1, __ATOMIC_RELEASE);
}

/* Makes the folders of a path below `root`; what fails shows when the file is made. */
static int open_folder(int root, const char *path) {
    char part[256];
    for (size_t i = 1; i <= strlen(path) && i < sizeof(part); i++) {
        if (path[i] == '/' || path[i] == '\0') {
            memcpy(part, path, i);
            part[i] = '\0';
            mkdirat(root, part, 0755);
        }
    }
    return openat(root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* A file is there as a whole or not at all. Whoever dies on the way leaves the folder marked as out of date, and
 * the next one writes the same file. */
static void write_file(int dir, const char *name, mode_t mode, const char *text, size_t size) {
    char temporary[64];
    snprintf(temporary, sizeof(temporary), ".%s", name);
    unlinkat(dir, temporary, 0);
    int fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        return;
    }
    bool whole = write(fd, text, size) == (ssize_t)size && fchmod(fd, mode) == 0;
    close(fd);
    if (!whole || renameat(dir, temporary, dir, name) != 0) {
        unlinkat(dir, temporary, 0);
    }
}

static bool exists(int dir, const char *name) {
    return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* The table is the same on every machine: all names that there can be. */
static void write_minors(int root) {
    int dir = open_folder(root, "proc/driver/nvidia-caps");
    if (dir < 0) {
        return;
    }
    char *text = NULL;
    size_t size = 0;
    FILE *out = exists(dir, "mig-minors") ? NULL : open_memstream(&text, &size);
    if (out != NULL) {
        fprintf(out, "config %d\nmonitor %d\n", CAP_CONFIG, CAP_MONITOR);
        for (uint32_t gpu = 0; gpu < GPU_MINORS; gpu++) {
            for (uint32_t id = 0; id < SOFTGPU_MIG_IDS; id++) {
                fprintf(out, "gpu%u/gi%u/access %u\n", gpu, id,
                        sg_mig_minor(gpu, id, SOFTGPU_NONE));
                for (uint32_t c = 0; c < SOFTGPU_MIG_INSTANCES; c++) {
                    fprintf(out, "gpu%u/gi%u/ci%u/access %u\n", gpu, id, c,
                            sg_mig_minor(gpu, id, c));
                }
            }
        }
        fclose(out);
        write_file(dir, "mig-minors", 0444, text, size);
        free(text);
    }
    close(dir);
}

static void write_access(int dir, const char *name, uint32_t minor, uint32_t mode) {
    char text[128];
    int n = snprintf(text, sizeof(text),
                     "DeviceFileMinor: %u\nDeviceFileMode: %u\nDeviceFileModify: 1\n", minor, mode);
    if (!exists(dir, name)) {
        write_file(dir, name, 0444, text, (size_t)n);
    }
}

/* A folder with an "access" file in it, there or not. */
static void set_access(int root, const char *path, bool wanted, uint32_t minor) {
    char file[256];
    snprintf(file, sizeof(file), "%s/access", path);
    if (!wanted) {
        unlinkat(root, file, 0);
        unlinkat(root, path, AT_REMOVEDIR);
        return;
    }
    int dir = open_folder(root, path);
    if (dir >= 0) {
        write_access(dir, "access", minor, 0444);
        close(dir);
    }
}

static void write_capabilities(int root, const struct softgpu_state *st) {
    int mig = open_folder(root, "proc/driver/nvidia/capabilities/mig");
    if (mig >= 0) {
        write_access(mig, "config", CAP_CONFIG, 0400);
        write_access(mig, "monitor", CAP_MONITOR, 0444);
        close(mig);
    }
    for (uint32_t d = 0; d < st->header.device_count; d++) {
        for (uint32_t i = 0; i < SOFTGPU_MIG_IDS; i++) {
            const struct softgpu_mig_instance *g = &st->devices[d].mig[i];
            uint32_t minor = st->devices[d].minor;
            bool there = g->state == SOFTGPU_SLOT_USED;
            char gi[128];
            snprintf(gi, sizeof(gi), "proc/driver/nvidia/capabilities/gpu%u/mig/gi%u", minor, i);
            if (!there && !exists(root, gi)) {
                continue;
            }
            for (uint32_t c = 0; c < SOFTGPU_MIG_INSTANCES; c++) {
                char ci[160];
                snprintf(ci, sizeof(ci), "%s/ci%u", gi, c);
                set_access(root, ci, there && g->compute[c].state == SOFTGPU_SLOT_USED,
                           sg_mig_minor(minor, i, c));
            }
            set_access(root, gi, there, sg_mig_minor(minor, i, SOFTGPU_NONE));
        }
    }
}

static void mark_wanted(const struct softgpu_state *st, uint8_t wanted[CAPS]) {
    memset(wanted, 0, CAPS);
    wanted[CAP_CONFIG] = 1;
    wanted[CAP_MONITOR] = 1;
    for (uint32_t d = 0; d < st->header.device_count; d++) {
        for (uint32_t i = 0; i < SOFTGPU_MIG_IDS; i++) {
            const struct softgpu_mig_instance *g = &st->devices[d].mig[i];
            for (uint32_t c = 0; c < SOFTGPU_MIG_INSTANCES; c++) {
                if (g->state == SOFTGPU_SLOT_USED && g->compute[c].state == SOFTGPU_SLOT_USED) {
                    wanted[sg_mig_minor(st->devices[d].minor, i, c)] = 1;
                }
            }
            if (g->state == SOFTGPU_SLOT_USED) {
                wanted[sg_mig_minor(st->devices[d].minor, i, SOFTGPU_NONE)] = 1;
            }
        }
    }
}

/* Files stand for the device nodes: nobody opens them to do anything, only to see whether he may. */
static void write_nodes(int root, const struct softgpu_state *st) {
    static const char prefix[] = "nvidia-cap";
    uint8_t wanted[CAPS];
    mark_wanted(st, wanted);
    int dir = open_folder(root, "dev/nvidia-caps");
    DIR *list = dir < 0 ? NULL : fdopendir(fcntl(dir, F_DUPFD_CLOEXEC, 0));
    for (struct dirent *e; list != NULL && (e = readdir(list)) != NULL;) {
        bool node = strncmp(e->d_name, prefix, strlen(prefix)) == 0;
        unsigned long minor = node ? strtoul(e->d_name + strlen(prefix), NULL, 10) : CAPS;
        if (minor < CAPS && !wanted[minor]) {
            unlinkat(dir, e->d_name, 0);
        } else if (minor < CAPS) {
            wanted[minor] = 0;
        }
    }
    for (uint32_t minor = 0; dir >= 0 && minor < CAPS; minor++) {
        if (wanted[minor]) {
            char name[32];
            snprintf(name, sizeof(name), "%s%u", prefix, minor);
            write_file(dir, name, minor == CAP_CONFIG ? 0400 : 0444, "", 0);
        }
    }
    if (list != NULL) {
        closedir(list);
    }
    if (dir >= 0) {
        close(dir);
    }
}

void sg_mig_caps_sync(const struct sg_node *node) {
    char path[PATH_BYTES];
    int root = -1;
    if (sg_mig_caps_path(node, path, sizeof(path))) {
        mkdir(path, 0755);
        root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    if (root >= 0 && exists(root, "dev/nvidia-caps") &&
        faccessat(root, "dev/nvidia-caps", W_OK, AT_EACCESS) != 0) {
        close(root);
        return; /* another's folder: he finds it marked */
    }
    if (root >= 0) {
        write_minors(root);
        write_capabilities(root, node->st);
        write_nodes(root, node->st);
        close(root);
    }
    /* Where the folder cannot be written, nobody looks for it. */
    __atomic_store_n(&node->st->header.caps_stale, 0, __ATOMIC_RELEASE);
}
