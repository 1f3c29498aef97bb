/* Lines for a reader that need not read: writing one never waits. */
#ifndef PLAY_LINE_H
#define PLAY_LINE_H

#include <stdbool.h>
#include <stddef.h>

enum {
    PLAY_LINE_MAX = 256,
};

enum play_line_result {
    PLAY_LINE_WRITTEN,
    PLAY_LINE_DROPPED, /* the reader is behind */
    PLAY_LINE_CLOSED,  /* nobody reads any more */
};

struct play_line_writer {
    int fd;
    int own_fd;  /* the same file opened again, or -1 */
    size_t left; /* of a line that was taken in part: it is ended before another begins */
    char rest[PLAY_LINE_MAX];
};

void play_line_open(struct play_line_writer *writer, int fd);
void play_line_close(struct play_line_writer *writer);

/* The whole line or nothing of it; size is at most PLAY_LINE_MAX. */
enum play_line_result play_line_write(struct play_line_writer *writer, const char *line,
                                      size_t size);

#endif /* PLAY_LINE_H */
