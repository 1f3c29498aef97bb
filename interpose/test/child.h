/* A test that runs in a child process, since a process attaches once and for good. After test.h. */
#ifndef HEDDLE_TEST_CHILD_H
#define HEDDLE_TEST_CHILD_H

#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

static const char *path; /* of the daemon's socket */

static inline void pause_us(long us) {
    const struct timespec time = {.tv_nsec = us * 1000};

    (void)nanosleep(&time, NULL);
}

static inline bool eventually_(bool (*holds)(void)) {
    for (int i = 0; i < 20000; i++) {
        if (holds()) {
            return true;
        }
        pause_us(500);
    }
    return false;
}

/* The child has a folder of its own that is gone afterwards. */
static inline void in_child(void (*body)(void)) {
    char folder[] = "/tmp/heddle-test-XXXXXX";
    char name[64];
    int status = 0;
    pid_t child = 0;

    CHECK(mkdtemp(folder) != NULL);
    snprintf(name, sizeof(name), "%s/attach.sock", folder);
    fflush(NULL);
    child = fork();
    if (child == 0) {
        test_failures = 0; /* the parent's own are not the child's */
        setenv("HEDDLE_SOCKET", name, 1);
        path = name;
        body();
        fflush(NULL);
        _exit(test_failures != 0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    unlink(name);
    CHECK(rmdir(folder) == 0);
}

#endif /* HEDDLE_TEST_CHILD_H */
