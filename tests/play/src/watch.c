#include "watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "line.h"

enum {
    SLICE_MS = 50,
    REPORT_TRIES = 20, /* of SLICE_MS: stderr may be a pipe that nobody reads */
};
#define SLICE_NS (SLICE_MS * UINT64_C(1000000))

static void say(struct play_line_writer *writer, int *tries, const char *line, int size) {
    while (play_line_write(writer, line, (size_t)size) == PLAY_LINE_DROPPED && *tries > 0) {
        (*tries)--;
        play_sleep_until_ns(play_now_ns() + SLICE_NS);
    }
}

static void say_place(struct play_line_writer *writer, int *tries, const struct play_place *place,
                      const char *who, uint64_t now) {
    char line[PLAY_LINE_MAX];
    const char *phase = atomic_load(&place->phase);
    const char *call = atomic_load(&place->call);

    if (phase == NULL) {
        return;
    }
    const int size = snprintf(line, sizeof line,
                              "heddle-play: %s: %s, for %.3f s, pass %" PRIu64 ", last call %s\n",
                              who, phase, (double)(now - atomic_load(&place->since_ns)) / 1e9,
                              atomic_load(&place->passes), call == NULL ? "none" : call);
    say(writer, tries, line, size);
}

/* Nothing that is stuck is asked for help here: no lock of stdio's, no atexit. */
_Noreturn static void give_up(const struct play_watch *watch) {
    struct play_line_writer writer;
    int tries = REPORT_TRIES;
    char line[PLAY_LINE_MAX];

    play_line_open(&writer, STDERR_FILENO);
    const int size = snprintf(line, sizeof line, "heddle-play: stuck %.3f s after the run's end\n",
                              (double)watch->patience_ns / 1e9);
    say(&writer, &tries, line, size);
    for (size_t i = 0; i < watch->count; i++) {
        char who[32] = "main";
        if (i > 0) {
            snprintf(who, sizeof who, "lane %zu", i - 1);
        }
        say_place(&writer, &tries, &watch->places[i], who, play_now_ns());
    }
    _exit(watch->exit_status);
}

/*
 * Counts slices that it was awake for, not time: a process that was stopped, or a machine that
 * slept, is not stuck.
 */
static void *keep(void *argument) {
    struct play_watch *watch = argument;
    uint64_t over_ns = 0;

    while (!play_bell_wait(&watch->bell, play_now_ns() + SLICE_NS)) {
        if (!atomic_load(watch->stop) && play_now_ns() < atomic_load(&watch->end_ns)) {
            continue;
        }
        over_ns += SLICE_NS;
        if (over_ns >= watch->patience_ns) {
            give_up(watch);
        }
    }
    return NULL;
}

bool play_watch_start(struct play_watch *watch, uint32_t lanes, double patience_s,
                      const atomic_bool *stop, int exit_status, struct play_error *err) {
    *watch = (struct play_watch){
        .stop = stop,
        .end_ns = UINT64_MAX,
        .exit_status = exit_status,
        .count = (size_t)lanes + 1,
    };
    watch->places = aligned_alloc(alignof(struct play_place), watch->count * sizeof *watch->places);
    if (watch->places == NULL) {
        return play_fail(err, "prepare %u lanes: out of memory", lanes);
    }
    memset((void *)watch->places, 0, watch->count * sizeof *watch->places);
    if (patience_s <= 0) {
        return true;
    }
    play_bell_open(&watch->bell);
    watch->patience_ns = (uint64_t)(patience_s * 1e9);
    const int code = pthread_create(&watch->thread, NULL, keep, watch);
    if (code != 0) {
        play_bell_close(&watch->bell);
        free(watch->places);
        return play_fail(err, "start the watch: %s", strerror(code));
    }
    return true;
}

void play_watch_stop(struct play_watch *watch) {
    if (watch->patience_ns > 0) {
        play_bell_ring(&watch->bell);
        pthread_join(watch->thread, NULL);
        play_bell_close(&watch->bell);
    }
    free(watch->places);
}
