#include "start.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"

/* Waits until there is something to read; false: the word to stop came first. */
static bool wait_readable(int fd, const atomic_bool *stop) {
    struct pollfd readable = {.fd = fd, .events = POLLIN};

    while (!atomic_load(stop)) {
        if (poll(&readable, 1, (int)(PLAY_CLOCK_SLICE_NS / 1000000U)) > 0) {
            return true;
        }
    }
    return false;
}

static bool read_start(int fd, const atomic_bool *stop, uint64_t *start, struct play_error *err) {
    char line[32];
    size_t have = 0;

    while (have < sizeof line - 1) {
        if (!wait_readable(fd, stop)) {
            *start = 0;
            return true;
        }
        const ssize_t n = read(fd, line + have, 1);
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
            continue;
        }
        if (n < 0) {
            return play_fail(err, "read the start time: %s", strerror(errno));
        }
        if (n == 0) {
            return play_fail(err, "read the start time: the other end was closed");
        }
        if (line[have] == '\n') {
            break;
        }
        have++;
    }
    line[have] = '\0';
    char *end = NULL;
    *start = strtoull(line, &end, 10);
    if (end == line || *end != '\0') {
        return play_fail(err, "read the start time: \"%s\" is not a number", line);
    }
    return true;
}

bool play_wait_for_start(int ready_fd, int start_fd, uint64_t start_at, const atomic_bool *stop,
                         uint64_t *start, struct play_error *err) {
    static const char ready[] = "ready\n";

    *start = start_at;
    if (ready_fd >= 0 && write(ready_fd, ready, strlen(ready)) != (ssize_t)strlen(ready)) {
        return play_fail(err, "say ready on descriptor %d: %s", ready_fd, strerror(errno));
    }
    if (start_fd >= 0 && !read_start(start_fd, stop, start, err)) {
        return false;
    }
    const uint64_t now = play_now_ns();
    if (*start <= now) {
        *start = now;
    } else if (!play_sleep_unless(*start, stop)) {
        *start = play_now_ns();
    }
    return true;
}
