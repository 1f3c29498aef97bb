/* One error text, filled where the fault is seen and printed once, by main. */
#ifndef PLAY_ERROR_H
#define PLAY_ERROR_H

#include <stdbool.h>

struct play_error {
    char text[512];
};

/* Writes the text and returns false, so that a fault is one line: return play_fail(err, ...). */
bool play_fail(struct play_error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif /* PLAY_ERROR_H */
