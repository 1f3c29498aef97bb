#include "arrivals.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "file.h"

enum limits {
    GAPS_MAX = 1 << 22,
    FILE_MAX = 1 << 26,
};

static const double GAP_MAX_S = 3600;
static const double RATE_MAX = 1e6;

static bool add_gap(struct play_arrivals *arrivals, size_t *room, double gap) {
    if (arrivals->count == *room) {
        const size_t larger = *room == 0 ? 1024 : *room * 2;
        double *more = realloc(arrivals->gaps, larger * sizeof *more);
        if (more == NULL) {
            return false;
        }
        arrivals->gaps = more;
        *room = larger;
    }
    arrivals->gaps[arrivals->count++] = gap;
    return true;
}

static const char *skip_space(const char *at) {
    while (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r') {
        at++;
    }
    return at;
}

/* A JSON array of numbers, from a NUL-terminated text. Returns what is wrong, or NULL. */
static const char *parse_array(const char *at, struct play_arrivals *arrivals, const char **where) {
    size_t room = 0;
    double sum = 0;

    at = skip_space(at);
    *where = at;
    if (*at++ != '[') {
        return "expected a JSON array of seconds";
    }
    for (;;) {
        at = skip_space(at);
        *where = at;
        /* strtod reads more than JSON has: hexadecimals, "inf", a leading plus. */
        if (!isdigit((unsigned char)*at) || (at[0] == '0' && (at[1] == 'x' || at[1] == 'X'))) {
            return "expected a number of seconds, 0 or more";
        }
        char *end = NULL;
        const double gap = strtod(at, &end);
        if (!(gap <= GAP_MAX_S)) {
            return "gap of more than an hour";
        }
        if (arrivals->count == GAPS_MAX) {
            return "too many gaps";
        }
        if (!add_gap(arrivals, &room, gap)) {
            return "out of memory";
        }
        sum += gap;
        at = skip_space(end);
        *where = at;
        if (*at == ']') {
            break;
        }
        if (*at++ != ',') {
            return "expected , or ]";
        }
    }
    at = skip_space(at + 1);
    *where = at;
    if (*at != '\0') {
        return "text behind the array";
    }
    return sum > 0 ? NULL : "all gaps are 0";
}

bool play_arrivals_parse(const char *text, size_t size, const char *name, struct play_arrivals *out,
                         struct play_error *err) {
    *out = (struct play_arrivals){.kind = PLAY_ARRIVALS_GAPS};
    char *copy = malloc(size + 1);
    if (copy == NULL) {
        return play_fail(err, "read arrivals %s: out of memory", name);
    }
    memcpy(copy, text, size);
    copy[size] = '\0';
    const char *where = copy;
    const char *fault = parse_array(copy, out, &where);
    if (fault == NULL && where != copy + size) {
        fault = "NUL byte";
    }
    const size_t offset = (size_t)(where - copy);
    free(copy);
    if (fault != NULL) {
        play_arrivals_free(out);
        return play_fail(err, "read arrivals %.200s: at byte %zu: %s", name, offset, fault);
    }
    return true;
}

bool play_arrivals_open(const char *spec, uint64_t seed, struct play_arrivals *out,
                        struct play_error *err) {
    static const char poisson[] = "poisson:";

    *out = (struct play_arrivals){.kind = PLAY_ARRIVALS_CLOSED, .random = seed};
    if (strcmp(spec, "closed") == 0) {
        return true;
    }
    if (strncmp(spec, poisson, strlen(poisson)) == 0) {
        const char *rate = spec + strlen(poisson);
        char *end = NULL;
        out->kind = PLAY_ARRIVALS_POISSON;
        out->rate = strtod(rate, &end);
        if (end == rate || *end != '\0' || !(out->rate > 0 && out->rate <= RATE_MAX)) {
            return play_fail(err, "arrivals %.100s: the rate must be requests per second, above 0",
                             spec);
        }
        return true;
    }
    char *text = NULL;
    size_t size = 0;
    if (!play_file_read(spec, FILE_MAX, &text, &size, err)) {
        return false;
    }
    const bool ok = play_arrivals_parse(text, size, spec, out, err);
    free(text);
    return ok;
}

void play_arrivals_free(struct play_arrivals *arrivals) {
    free(arrivals->gaps);
    *arrivals = (struct play_arrivals){.kind = PLAY_ARRIVALS_CLOSED};
}

/* splitmix64: small, of full period from every seed, the same on every machine. */
static uint64_t next_random(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15U;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

uint64_t play_arrivals_gap_ns(struct play_arrivals *arrivals) {
    double seconds = 0;

    switch (arrivals->kind) {
    case PLAY_ARRIVALS_CLOSED:
        return 0;
    case PLAY_ARRIVALS_POISSON: {
        /* From (0, 1], so that the logarithm is finite. */
        const double u = ((double)(next_random(&arrivals->random) >> 11) + 1) / 9007199254740992.0;
        seconds = -log(u) / arrivals->rate;
        break;
    }
    case PLAY_ARRIVALS_GAPS:
        seconds = arrivals->gaps[arrivals->next];
        arrivals->next = (arrivals->next + 1) % arrivals->count;
        break;
    }
    return (uint64_t)(seconds * 1e9);
}
