/* Rows of a CSV text, one at a time. */
#ifndef PLAY_CSV_H
#define PLAY_CSV_H

#include <stddef.h>

#include "error.h"

enum play_csv_limits {
    PLAY_CSV_FIELDS_MAX = 64,
    PLAY_CSV_ROW_MAX = 1 << 16,
};

struct play_csv {
    const char *at;
    const char *end;
    size_t line;                      /* of the row that play_csv_next returned */
    size_t lines;                     /* read so far */
    size_t fields;                    /* in the present row */
    bool quoted;                      /* a field of the row was quoted, so its commas are certain */
    char *field[PLAY_CSV_FIELDS_MAX]; /* NUL-terminated, valid until the next call */
    char row[PLAY_CSV_ROW_MAX];
};

enum play_csv_result {
    PLAY_CSV_ROW,
    PLAY_CSV_END,
    PLAY_CSV_BAD, /* err says why */
};

void play_csv_open(struct play_csv *csv, const char *text, size_t size);

/* The next row that is not empty. */
enum play_csv_result play_csv_next(struct play_csv *csv, struct play_error *err);

/* Joins the fields first .. first + surplus into one again; only for rows without quotes. */
void play_csv_join(struct play_csv *csv, size_t first, size_t surplus);

#endif /* PLAY_CSV_H */
