/*
 * The driver and the interposer have one SONAME, so the loader would hand us ourselves. Candidates
 * are opened by path; one that is this very file (same device and inode), or that carries our note
 * (a copy of another version), is passed over.
 */
#include "locate.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "note.h"
#include "settings.h"

/* Where distributions and container toolkits put the driver, most specific first. */
static const char *const folders[] = {
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/lib/wsl/lib",
    "/usr/local/nvidia/lib64",
    "/usr/local/nvidia/lib",
    "/usr/lib/x86_64-linux-gnu/nvidia/current",
    "/usr/lib64/nvidia",
    "/run/opengl-driver/lib",
    "/run/nvidia/driver/usr/lib/x86_64-linux-gnu",
    "/run/nvidia/driver/usr/lib64",
    "/usr/local/cuda/compat",
};

struct search {
    char *path; /* the candidate */
    size_t size;
    dev_t own_device;
    ino_t own_inode;
    char own_folder[PATH_MAX];
};

static void find_self(struct search *search) {
    Dl_info info;
    struct stat status;

    search->own_folder[0] = '\0';
    search->own_inode = 0;
    if (dladdr((const void *)(uintptr_t)&heddle_locate_open, &info) == 0 ||
        info.dli_fname == NULL || stat(info.dli_fname, &status) != 0) {
        return;
    }
    search->own_device = status.st_dev;
    search->own_inode = status.st_ino;
    if (realpath(info.dli_fname, search->own_folder) != NULL) {
        char *slash = strrchr(search->own_folder, '/');

        if (slash != NULL) {
            *slash = '\0';
        }
    } else {
        search->own_folder[0] = '\0';
    }
}

static void *open_candidate(const struct search *search) {
    struct stat status;

    if (stat(search->path, &status) != 0 || !S_ISREG(status.st_mode)) {
        return NULL;
    }
    if (search->own_inode != 0 && status.st_ino == search->own_inode &&
        status.st_dev == search->own_device) {
        return NULL;
    }
    if (heddle_locate_is_interposer(search->path)) {
        return NULL;
    }
    return dlopen(search->path, RTLD_NOW | RTLD_LOCAL);
}

static void *try_in(struct search *search, const char *folder, size_t length, const char *suffix) {
    const int written =
        snprintf(search->path, search->size, "%.*s/libcuda.so.%s", (int)length, folder, suffix);

    return written > 0 && (size_t)written < search->size ? open_candidate(search) : NULL;
}

/* The loader's own order begins with LD_LIBRARY_PATH; an empty part of it is the current folder. */
static void *try_library_path(struct search *search) {
    const char *part = secure_getenv("LD_LIBRARY_PATH");

    while (part != NULL && *part != '\0') {
        const size_t length = strcspn(part, ":;");
        void *handle =
            length == 0 ? try_in(search, ".", 1, "1") : try_in(search, part, length, "1");

        if (handle != NULL) {
            return handle;
        }
        part += length;
        part += *part != '\0';
    }
    return NULL;
}

bool heddle_locate_version(const char *text, char *version, size_t size) {
    /* NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build ... */
    const char *at = text;

    while (*at != '\0' && *at != '\n') {
        const size_t word = strcspn(at, " \t\n");
        const size_t number = strspn(at, "0123456789.");

        if (word != 0 && word == number && memchr(at, '.', word) != NULL && *at != '.' &&
            word < size) {
            memcpy(version, at, word);
            version[word] = '\0';
            return true;
        }
        at += word;
        at += strspn(at, " \t");
    }
    return false;
}

static bool read_version(char *version, size_t size) {
    char text[512];
    const int file = open("/proc/driver/nvidia/version", O_RDONLY | O_CLOEXEC);
    const ssize_t got = file >= 0 ? read(file, text, sizeof(text) - 1) : -1;

    if (file >= 0) {
        close(file);
    }
    if (got <= 0) {
        return false;
    }
    text[got] = '\0';
    return heddle_locate_version(text, version, size);
}

/*
 * In a container this file stands at the driver's path, and the driver beside it under its full
 * name; so our own folder comes first.
 */
static void *try_folders(struct search *search, const char *suffix) {
    void *handle = NULL;

    if (search->own_folder[0] != '\0') {
        handle = try_in(search, search->own_folder, strlen(search->own_folder), suffix);
    }
    for (size_t i = 0; handle == NULL && i < sizeof(folders) / sizeof(folders[0]); i++) {
        handle = try_in(search, folders[i], strlen(folders[i]), suffix);
    }
    return handle;
}

void *heddle_locate_open(char *path, size_t size) {
    struct search search = {.path = path, .size = size};
    const char *given = heddle_settings()->real;
    char version[32];
    void *handle = NULL;

    find_self(&search);
    if (given[0] != '\0') {
        snprintf(path, size, "%s", given);
        return open_candidate(&search);
    }
    handle = try_library_path(&search);
    if (handle == NULL && read_version(version, sizeof(version))) {
        handle = try_folders(&search, version);
    }
    if (handle == NULL) {
        handle = try_folders(&search, "1");
    }
    return handle;
}
