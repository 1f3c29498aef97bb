/* Progress lines: a reader that does not read costs lines, never time, and no line is torn. */
#include "status.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"

enum {
    LINES = 100000, /* more than any pipe or socket holds */
};

/* Reads to the end of what is there and checks that it is whole lines, numbered from 0 on. */
static unsigned long read_lines(int fd, const char *what) {
    FILE *from = fdopen(dup(fd), "r");
    unsigned long count = 0;
    char line[PLAY_LINE_MAX];

    while (fgets(line, sizeof line, from) != NULL) {
        char want[PLAY_LINE_MAX];
        snprintf(want, sizeof want, "line %lu\n", count);
        PLAY_CHECK(strcmp(line, want) == 0, "%s: line %lu is \"%s\"", what, count, line);
        count++;
    }
    fclose(from);
    return count;
}

static enum play_line_result say(struct play_line_writer *writer, unsigned long number) {
    char line[PLAY_LINE_MAX];
    const int size = snprintf(line, sizeof line, "line %lu\n", number);

    return play_line_write(writer, line, (size_t)size);
}

/* Fills it until a line is dropped, then reads: what was taken is there, and there is room again. */
static void test_reader_behind(const char *what, int reader, int writer_fd) {
    struct play_line_writer writer;
    unsigned long taken = 0;

    play_line_open(&writer, writer_fd);
    while (taken < LINES && say(&writer, taken) == PLAY_LINE_WRITTEN) {
        taken++;
    }
    PLAY_CHECK(taken > 0 && taken < LINES, "%s: %lu lines were taken", what, taken);
    PLAY_CHECK(say(&writer, 0) == PLAY_LINE_DROPPED, "%s: taken though full", what);
    PLAY_CHECK((fcntl(writer_fd, F_GETFL) & O_NONBLOCK) == 0, "%s: the flag was changed", what);

    fcntl(reader, F_SETFL, O_NONBLOCK);
    char gone[65536];
    while (read(reader, gone, sizeof gone) > 0) {
    }
    enum play_line_result again = PLAY_LINE_DROPPED;
    for (int i = 0; again == PLAY_LINE_DROPPED && i < 2; i++) { /* the first may end a torn one */
        again = say(&writer, taken);
    }
    PLAY_CHECK(again == PLAY_LINE_WRITTEN, "%s: dropped though there is room", what);
    play_line_close(&writer);
    close(reader);
    close(writer_fd);
}

static void test_whole_lines(void) {
    int ends[2];
    struct play_line_writer writer;

    PLAY_CHECK(pipe(ends) == 0, "pipe");
    /* Small, so that it is soon full, somewhere inside a line. */
    PLAY_CHECK(fcntl(ends[1], F_SETPIPE_SZ, 4096) >= 0, "shrink the pipe");
    play_line_open(&writer, ends[1]);
    unsigned long taken = 0;
    while (say(&writer, taken) == PLAY_LINE_WRITTEN) {
        taken++;
    }
    close(ends[1]);
    play_line_close(&writer);
    PLAY_CHECK(read_lines(ends[0], "a pipe") == taken, "not all of %lu lines came", taken);
    close(ends[0]);
}

static void test_reader_gone(void) {
    int ends[2];
    struct play_line_writer writer;

    PLAY_CHECK(pipe(ends) == 0, "pipe");
    play_line_open(&writer, ends[1]);
    close(ends[0]);
    PLAY_CHECK(say(&writer, 0) == PLAY_LINE_CLOSED, "a pipe without a reader");
    play_line_close(&writer);
    close(ends[1]);
}

static void test_file(void) {
    char path[] = "/tmp/heddle-play-status-XXXXXX";
    const int fd = mkstemp(path);
    struct play_line_writer writer;

    unlink(path);
    play_line_open(&writer, fd);
    for (unsigned long i = 0; i < 10; i++) {
        PLAY_CHECK(say(&writer, i) == PLAY_LINE_WRITTEN, "line %lu of a file", i);
    }
    play_line_close(&writer);
    lseek(fd, 0, SEEK_SET);
    PLAY_CHECK(read_lines(fd, "a file") == 10, "not all lines came");
    close(fd);
}

static void test_no_burst(void) {
    static const struct {
        const char *what;
        uint64_t due;
        uint64_t now;
        uint64_t want;
    } cases[] = {
        {"in time", 200, 150, 200},
        {"just due", 200, 200, 300},
        {"a little late", 200, 201, 300},
        {"many intervals late", 200, 1234, 1300},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const uint64_t next = play_status_next(cases[i].due, 100, cases[i].now);
        PLAY_CHECK(next == cases[i].want, "%s: %lu", cases[i].what, (unsigned long)next);
    }
}

int main(void) {
    int ends[2];

    signal(SIGPIPE, SIG_IGN);
    PLAY_CHECK(pipe(ends) == 0, "pipe");
    test_reader_behind("a pipe", ends[0], ends[1]);
    PLAY_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
    test_reader_behind("a socket", ends[0], ends[1]);
    test_whole_lines();
    test_reader_gone();
    test_file();
    test_no_burst();
    return play_check_failures != 0;
}
