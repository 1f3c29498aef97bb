/*
 * When requests arrive: a closed loop (the next one when the last is answered), a Poisson process
 * with a seed, or the gaps of a JSON file (an array of seconds), repeated when they run out.
 */
#ifndef PLAY_ARRIVALS_H
#define PLAY_ARRIVALS_H

#include <stddef.h>
#include <stdint.h>

#include "error.h"

enum play_arrivals_kind {
    PLAY_ARRIVALS_CLOSED,
    PLAY_ARRIVALS_POISSON,
    PLAY_ARRIVALS_GAPS,
};

struct play_arrivals {
    enum play_arrivals_kind kind;
    double rate;  /* per second, for POISSON */
    double *gaps; /* seconds, for GAPS */
    size_t count;
    size_t next;
    uint64_t random; /* state */
};

/* spec: "closed", "poisson:RATE" or the name of a JSON file. */
bool play_arrivals_open(const char *spec, uint64_t seed, struct play_arrivals *out,
                        struct play_error *err);
bool play_arrivals_parse(const char *text, size_t size, const char *name, struct play_arrivals *out,
                         struct play_error *err);
void play_arrivals_free(struct play_arrivals *arrivals);

/* Time from the last arrival to the next one; 0 in a closed loop. */
uint64_t play_arrivals_gap_ns(struct play_arrivals *arrivals);

#endif /* PLAY_ARRIVALS_H */
