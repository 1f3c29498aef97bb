#include "csv.h"

#include <string.h>

void play_csv_open(struct play_csv *csv, const char *text, size_t size) {
    static const char byte_order_mark[] = "\xef\xbb\xbf";

    memset(csv, 0, offsetof(struct play_csv, row));
    csv->at = text;
    csv->end = text + size;
    if (size >= 3 && memcmp(text, byte_order_mark, 3) == 0) {
        csv->at += 3;
    }
}

/* Where the row is being written to. */
struct writer {
    char *to;
    char *limit;
};

static bool put(struct writer *w, char c) {
    if (w->to == w->limit) {
        return false;
    }
    *w->to++ = c;
    return true;
}

/* Reads a quoted field, csv->at is behind its opening quote. */
static const char *read_quoted(struct play_csv *csv, struct writer *w) {
    for (;;) {
        if (csv->at == csv->end) {
            return "quote is not closed";
        }
        const char c = *csv->at++;
        if (c == '\0') {
            return "NUL byte";
        }
        if (c == '\n') {
            csv->lines++;
        }
        if (c == '"') {
            if (csv->at == csv->end || *csv->at != '"') {
                break;
            }
            csv->at++;
        }
        if (!put(w, c)) {
            return "row is too long";
        }
    }
    if (csv->at < csv->end && *csv->at != ',' && *csv->at != '\n' && *csv->at != '\r') {
        return "text behind a closing quote";
    }
    return NULL;
}

/* Reads a plain field up to its comma or line end; a quote inside is a character like others. */
static const char *read_plain(struct play_csv *csv, struct writer *w) {
    while (csv->at < csv->end && *csv->at != ',' && *csv->at != '\n') {
        const char c = *csv->at++;
        if (c == '\0') {
            return "NUL byte";
        }
        if (c == '\r' && (csv->at == csv->end || *csv->at == '\n')) {
            break;
        }
        if (!put(w, c)) {
            return "row is too long";
        }
    }
    return NULL;
}

static const char *read_row(struct play_csv *csv) {
    struct writer w = {csv->row, csv->row + sizeof csv->row};

    csv->fields = 0;
    csv->quoted = false;
    for (;;) {
        if (csv->fields == PLAY_CSV_FIELDS_MAX) {
            return "too many fields";
        }
        csv->field[csv->fields++] = w.to;
        const char *fault = NULL;
        if (csv->at < csv->end && *csv->at == '"') {
            csv->at++;
            csv->quoted = true;
            fault = read_quoted(csv, &w);
        } else {
            fault = read_plain(csv, &w);
        }
        if (fault != NULL) {
            return fault;
        }
        if (!put(&w, '\0')) {
            return "row is too long";
        }
        if (csv->at < csv->end && *csv->at == ',') {
            csv->at++;
            continue;
        }
        if (csv->at < csv->end && *csv->at == '\r') {
            csv->at++;
        }
        if (csv->at < csv->end && *csv->at == '\n') {
            csv->at++;
        }
        csv->lines++;
        return NULL;
    }
}

enum play_csv_result play_csv_next(struct play_csv *csv, struct play_error *err) {
    while (csv->at < csv->end) {
        csv->line = csv->lines + 1;
        const char *fault = read_row(csv);
        if (fault != NULL) {
            play_fail(err, "line %zu: %s", csv->line, fault);
            return PLAY_CSV_BAD;
        }
        if (csv->fields > 1 || csv->quoted || csv->field[0][0] != '\0') {
            return PLAY_CSV_ROW;
        }
    }
    return PLAY_CSV_END;
}

void play_csv_join(struct play_csv *csv, size_t first, size_t surplus) {
    /* The fields lie one behind the other, so each comma stood where the NUL stands now. */
    for (size_t i = first; i < first + surplus; i++) {
        csv->field[i][strlen(csv->field[i])] = ',';
    }
    for (size_t i = first + surplus + 1; i < csv->fields; i++) {
        csv->field[i - surplus] = csv->field[i];
    }
    csv->fields -= surplus;
}
