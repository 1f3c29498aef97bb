#include "line.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * O_NONBLOCK belongs to the open file, which a shell or a terminal may share with us, so it is not
 * ours to set. A pipe or a terminal can be opened a second time, with a flag of its own; a file
 * must not be, for it would be written from its beginning, and need not be, for it never waits.
 */
static int open_again(int fd) {
    char path[32];
    struct stat what;

    if (fstat(fd, &what) != 0 || !(S_ISFIFO(what.st_mode) || S_ISCHR(what.st_mode))) {
        return -1;
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

void play_line_open(struct play_line_writer *writer, int fd) {
    *writer = (struct play_line_writer){.fd = fd, .own_fd = open_again(fd)};
}

void play_line_close(struct play_line_writer *writer) {
    if (writer->own_fd >= 0) {
        close(writer->own_fd);
    }
    writer->own_fd = -1;
}

/* What write returns, or -1 and EAGAIN where it would wait. */
static ssize_t write_now(const struct play_line_writer *writer, const char *text, size_t size) {
    if (writer->own_fd >= 0) {
        return write(writer->own_fd, text, size);
    }
    const ssize_t sent = send(writer->fd, text, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0 || errno != ENOTSOCK) {
        return sent;
    }
    /* No socket, and a pipe only if /proc is missing: then this is true unless others write too. */
    struct pollfd room = {.fd = writer->fd, .events = POLLOUT};
    if (poll(&room, 1, 0) == 0) {
        errno = EAGAIN;
        return -1;
    }
    return write(writer->fd, text, size);
}

/* How much was taken; *closed: nothing more ever will be. */
static size_t write_some(const struct play_line_writer *writer, const char *text, size_t size,
                         bool *closed) {
    ssize_t n;

    do {
        n = write_now(writer, text, size);
    } while (n < 0 && errno == EINTR);
    *closed = n < 0 && errno != EAGAIN && errno != EWOULDBLOCK;
    return n < 0 ? 0 : (size_t)n;
}

enum play_line_result play_line_write(struct play_line_writer *writer, const char *line,
                                      size_t size) {
    bool closed = false;

    if (writer->left > 0) {
        const size_t taken = write_some(writer, writer->rest, writer->left, &closed);
        writer->left -= taken;
        memmove(writer->rest, writer->rest + taken, writer->left);
    }
    if (!closed && writer->left > 0) {
        return PLAY_LINE_DROPPED;
    }
    const size_t taken = closed ? 0 : write_some(writer, line, size, &closed);
    if (closed) {
        return PLAY_LINE_CLOSED;
    }
    if (taken == 0) {
        return PLAY_LINE_DROPPED;
    }
    writer->left = size - taken;
    memcpy(writer->rest, line + taken, writer->left);
    return PLAY_LINE_WRITTEN;
}
