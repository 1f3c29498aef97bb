/* The command line. */
#ifndef PLAY_OPTIONS_H
#define PLAY_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "error.h"

enum play_mode {
    PLAY_MODE_NONE,
    PLAY_MODE_INFER,
    PLAY_MODE_TRAIN,
};

struct play_options {
    enum play_mode mode;
    const char *table;
    const char *arrivals;
    const char *samples; /* NULL: do not write them */
    double duration_s;
    double warmup_s;
    double speed;
    double patience_s; /* 0: for ever */
    uint64_t seed;
    uint32_t threads;
    int device;
    int ready_fd; /* -1: none */
    int start_fd; /* -1: none */
    int status_fd;
    uint64_t status_ms; /* 0: none */
    uint64_t start_at;  /* CLOCK_MONOTONIC ns, 0: at once */
    bool json;
    bool graph;
    bool ptx;
    bool help;
};

extern const char play_usage[];

bool play_options_parse(int argc, char **argv, struct play_options *out, struct play_error *err);

#endif /* PLAY_OPTIONS_H */
