#include "table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "csv.h"
#include "file.h"

enum limits {
    ROWS_MAX = 1 << 20,
    SMS_MAX = 1 << 20,
    FILE_MAX = 1 << 26,
};

static const double TIME_MAX_NS = 1e11;

/* Column numbers, or -1. */
struct columns {
    int name;
    int profile;
    int sms;
    int time;
    size_t count;
};

static bool read_header(const struct play_csv *csv, struct columns *columns,
                        struct play_error *err) {
    *columns = (struct columns){-1, -1, -1, -1, csv->fields};
    const struct {
        const char *title;
        int *column;
        bool required;
    } wanted[] = {
        {"Name", &columns->name, true},
        {"Profile", &columns->profile, false},
        {"SM_usage", &columns->sms, true},
        {"Duration", &columns->time, true},
    };

    for (size_t w = 0; w < sizeof wanted / sizeof wanted[0]; w++) {
        for (size_t i = 0; i < csv->fields; i++) {
            if (strcmp(csv->field[i], wanted[w].title) != 0) {
                continue;
            }
            if (*wanted[w].column >= 0) {
                return play_fail(err, "line %zu: column %s twice", csv->line, wanted[w].title);
            }
            *wanted[w].column = (int)i;
        }
        if (wanted[w].required && *wanted[w].column < 0) {
            return play_fail(err, "line %zu: no column %s in the header", csv->line,
                             wanted[w].title);
        }
    }
    return true;
}

static bool read_number(const struct play_csv *csv, int column, const char *title, double min,
                        double max, double *out, struct play_error *err) {
    const char *text = csv->field[column];
    char *end = NULL;

    *out = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(*out)) {
        return play_fail(err, "line %zu: %s \"%.40s\" is not a number", csv->line, title, text);
    }
    if (*out < min || *out > max) {
        return play_fail(err, "line %zu: %s %.40s is not from %.0f to %.0f", csv->line, title, text,
                         min, max);
    }
    return true;
}

static bool read_kernel(struct play_csv *csv, const struct columns *columns,
                        struct play_kernel *kernel, struct play_error *err) {
    double profile = PLAY_PROFILE_UNKNOWN;
    double sms = 0;
    double time = 0;

    if (csv->fields > columns->count && !csv->quoted) {
        play_csv_join(csv, (size_t)columns->name, csv->fields - columns->count);
    }
    if (csv->fields != columns->count) {
        return play_fail(err, "line %zu: %zu fields, the header has %zu", csv->line, csv->fields,
                         columns->count);
    }
    if (columns->profile >= 0 &&
        !read_number(csv, columns->profile, "Profile", -1, 1, &profile, err)) {
        return false;
    }
    if (profile != rint(profile)) {
        return play_fail(err, "line %zu: Profile %s is not -1, 0 or 1", csv->line,
                         csv->field[columns->profile]);
    }
    if (!read_number(csv, columns->sms, "SM_usage", 1, SMS_MAX, &sms, err) ||
        !read_number(csv, columns->time, "Duration", 1, TIME_MAX_NS, &time, err)) {
        return false;
    }
    if (csv->field[columns->name][0] == '\0') {
        return play_fail(err, "line %zu: empty Name", csv->line);
    }
    kernel->name = strdup(csv->field[columns->name]);
    if (kernel->name == NULL) {
        return play_fail(err, "line %zu: out of memory", csv->line);
    }
    kernel->profile = profile > 0 ? PLAY_PROFILE_COMPUTE
                                  : (profile < 0 ? PLAY_PROFILE_UNKNOWN : PLAY_PROFILE_MEMORY);
    kernel->sms = (uint32_t)ceil(sms);
    kernel->time_ns = (uint64_t)llround(time);
    kernel->entry = 0;
    return true;
}

static bool grow(struct play_table *table, size_t *room, struct play_error *err) {
    if (table->count < *room) {
        return true;
    }
    if (table->count == ROWS_MAX) {
        return play_fail(err, "more than %d rows", ROWS_MAX);
    }
    const size_t larger = *room == 0 ? 256 : *room * 2;
    struct play_kernel *more = realloc(table->kernels, larger * sizeof *more);
    if (more == NULL) {
        return play_fail(err, "out of memory");
    }
    table->kernels = more;
    *room = larger;
    return true;
}

static bool read_rows(struct play_csv *csv, struct play_table *table, struct play_error *err) {
    struct columns columns;
    size_t room = 0;
    enum play_csv_result result = play_csv_next(csv, err);

    if (result == PLAY_CSV_END) {
        return play_fail(err, "empty, expected a header line");
    }
    if (result == PLAY_CSV_BAD || !read_header(csv, &columns, err)) {
        return false;
    }
    while ((result = play_csv_next(csv, err)) == PLAY_CSV_ROW) {
        if (!grow(table, &room, err) ||
            !read_kernel(csv, &columns, &table->kernels[table->count], err)) {
            return false;
        }
        table->count++;
    }
    if (result == PLAY_CSV_END && table->count == 0) {
        return play_fail(err, "no kernel behind the header");
    }
    return result == PLAY_CSV_END;
}

bool play_table_parse(const char *text, size_t size, const char *name, struct play_table *out,
                      struct play_error *err) {
    struct play_error inner = {{0}};
    struct play_csv *csv = malloc(sizeof *csv);

    *out = (struct play_table){NULL, 0};
    if (csv == NULL) {
        return play_fail(err, "read kernel table %s: out of memory", name);
    }
    play_csv_open(csv, text, size);
    const bool ok = read_rows(csv, out, &inner);
    free(csv);
    if (!ok) {
        play_table_free(out);
        return play_fail(err, "read kernel table %.200s: %.250s", name, inner.text);
    }
    return true;
}

bool play_table_load(const char *path, struct play_table *out, struct play_error *err) {
    char *text = NULL;
    size_t size = 0;

    *out = (struct play_table){NULL, 0};
    if (!play_file_read(path, FILE_MAX, &text, &size, err)) {
        return false;
    }
    const bool ok = play_table_parse(text, size, path, out, err);
    free(text);
    return ok;
}

void play_table_free(struct play_table *table) {
    for (size_t i = 0; i < table->count; i++) {
        free(table->kernels[i].name);
    }
    free(table->kernels);
    *table = (struct play_table){NULL, 0};
}

uint64_t play_table_time_ns(const struct play_table *table) {
    uint64_t sum = 0;

    for (size_t i = 0; i < table->count; i++) {
        sum += table->kernels[i].time_ns;
    }
    return sum;
}
