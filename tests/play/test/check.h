/* The harness: a failed check is printed with its place, and main returns play_check_failures. */
#ifndef PLAY_CHECK_H
#define PLAY_CHECK_H

#include <stdio.h>

static int play_check_failures;

#define PLAY_CHECK(condition, ...)                                                                 \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            play_check_failures++;                                                                 \
            fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition);                        \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
        }                                                                                          \
    } while (0)

#endif /* PLAY_CHECK_H */
