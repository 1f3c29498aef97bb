/* Stopping a process at a place where it holds up nobody. SIGSTOP alone may strike it while it has the
 * node's lock, and then all others wait for SIGCONT, which no real device would make them do. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "state.h"
#include "tool.h"

/* A process with threads that do not stop for so long is in a state that a signal does not reach. */
enum { STOP_MS = 5000 };

/* True if the thread runs no instruction of its own any more. */
static bool is_stopped(const char *pid, const char *task) {
    char path[300];
    char stat[256] = "";
    snprintf(path, sizeof(path), "/proc/%s/task/%s/stat", pid, task);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, stat, sizeof(stat) - 1);
    if (fd >= 0) {
        close(fd);
    }
    const char *name_end = strrchr(stat, ')');
    if (n <= 0 || name_end == NULL || name_end[1] != ' ') {
        return true; /* it is gone */
    }
    return strchr("TtZX", name_end[2]) != NULL;
}

static bool all_stopped(const char *pid) {
    char path[64];
    snprintf(path, sizeof(path), "/proc/%s/task", pid);
    DIR *tasks = opendir(path);
    bool all = true;
    if (tasks == NULL) {
        return true;
    }
    for (const struct dirent *t = readdir(tasks); t != NULL; t = readdir(tasks)) {
        all = all && (t->d_name[0] == '.' || is_stopped(pid, t->d_name));
    }
    closedir(tasks);
    return all;
}

/* With the lock held here, nobody else has it. 0, or an errno. */
static int stop(const char *pid, pid_t number) {
    if (kill(number, SIGSTOP) != 0) {
        return errno;
    }
    const struct timespec pause = {.tv_nsec = 1000000};
    for (int ms = 0; !all_stopped(pid); ms++) {
        if (ms == STOP_MS) {
            return ETIMEDOUT;
        }
        nanosleep(&pause, NULL);
    }
    return 0;
}

int tool_stop(int argc, char **argv) {
    char *end = NULL;
    long number = argc == 2 ? strtol(argv[1], &end, 10) : 0;
    if (number <= 1 || number > INT32_MAX || *end != '\0') {
        fprintf(stderr, "softgpu stop: want a process id\n");
        return 2;
    }
    struct sg_node node;
    if (tool_open(&node, "stop", NULL) != 0) {
        return 1;
    }
    sg_state_lock(&node);
    int rc = stop(argv[1], (pid_t)number);
    sg_state_unlock(&node);
    sg_state_close(&node);
    if (rc != 0) {
        fprintf(stderr, "softgpu stop: %s: %s\n", argv[1], strerror(rc));
    }
    return rc == 0 ? 0 : 1;
}
