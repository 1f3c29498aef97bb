#include "run.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "clock.h"
#include "start.h"
#include "status.h"

/* What all lanes share. */
struct run {
    const struct play_options *options;
    const atomic_bool *stop;
    struct play_watch *watch;
    uint64_t warm_ns; /* what begins before is not measured */
    uint64_t end_ns;  /* nothing begins after */
    struct play_status status;

    pthread_mutex_t lock; /* guards the arrivals */
    struct play_arrivals *arrivals;
    uint64_t arrival_ns; /* the last one */
};

/* One thread and what it measured. */
struct player {
    struct run *run;
    struct play_lane lane;
    struct play_place *place;
    pthread_t thread;
    struct play_samples latency;
    struct play_samples due; /* of each latency */
    uint64_t first_ns;       /* begin of the first measured pass */
    uint64_t last_ns;        /* end of the last one */
    bool ok;
    bool wrong;
    struct play_error err;
};

/* The next request's time of arrival. */
static uint64_t next_arrival(struct run *run) {
    if (run->arrivals->kind == PLAY_ARRIVALS_CLOSED) {
        return play_now_ns();
    }
    pthread_mutex_lock(&run->lock);
    const double gap = (double)play_arrivals_gap_ns(run->arrivals) / run->options->speed;
    run->arrival_ns += (uint64_t)gap;
    const uint64_t arrival = run->arrival_ns;
    pthread_mutex_unlock(&run->lock);
    return arrival;
}

/*
 * Plays one pass that was due at that time. An open-loop request that comes while the service is
 * busy waits here, and that wait is part of its latency.
 */
static bool play_one(struct player *player, uint64_t due) {
    struct run *run = player->run;

    play_place_phase(player->place, "waiting for a request");
    if (!play_sleep_unless(due, run->stop)) {
        return true;
    }
    play_place_pass(player->place);
    play_status_begin(&run->status);
    const bool ok = play_lane_pass(&player->lane, &player->err);
    const uint64_t end = play_now_ns();
    play_status_end(&run->status, end - due);
    if (!ok || due < run->warm_ns) {
        return ok;
    }
    if (player->first_ns == 0) {
        player->first_ns = due;
    }
    player->last_ns = end;
    if (!play_samples_add(&player->latency, end - due) || !play_samples_add(&player->due, due)) {
        return play_fail(&player->err, "record a latency: out of memory");
    }
    return true;
}

static void *play(void *argument) {
    struct player *player = argument;
    struct run *run = player->run;
    const bool infer = run->options->mode == PLAY_MODE_INFER;

    /* The default slack of 50 us would be added to every request that finds the service idle. */
    prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
    player->ok = play_lane_enter(&player->lane, player->place, &player->err);
    while (player->ok && !atomic_load(run->stop)) {
        const uint64_t due = infer ? next_arrival(run) : play_now_ns();
        if (due >= run->end_ns) {
            break;
        }
        player->ok = play_one(player, due);
    }
    play_place_phase(player->place, "checking results");
    if (player->ok && !play_lane_check(&player->lane, &player->err)) {
        player->ok = false;
        player->wrong = true;
    }
    play_place_phase(player->place, "done");
    return NULL;
}

static bool write_samples(const char *path, const struct player *players, uint32_t count,
                          uint64_t start_ns, struct play_error *err) {
    FILE *to = fopen(path, "we");

    if (to == NULL) {
        return play_fail(err, "open %s: %s", path, strerror(errno));
    }
    for (uint32_t i = 0; i < count; i++) {
        for (size_t s = 0; s < players[i].latency.count; s++) {
            fprintf(to, "%.6f %.6f\n", (double)(players[i].due.values[s] - start_ns) / 1e9,
                    (double)players[i].latency.values[s] / 1e6);
        }
    }
    const bool failed = ferror(to) != 0;
    return fclose(to) == 0 && !failed ? true
                                      : play_fail(err, "write %s: %s", path, strerror(errno));
}

/* Merges what the players measured, and closes the account. */
static bool collect(const struct player *players, uint32_t count, struct play_result *result,
                    struct play_error *err) {
    bool ok = true;

    for (uint32_t i = 0; i < count; i++) {
        const struct player *player = &players[i];
        result->passes += player->lane.passes;
        for (size_t s = 0; s < player->latency.count; s++) {
            ok = play_samples_add(&result->latency, player->latency.values[s]) && ok;
        }
        /* Each lane's own rate over its own whole passes: no rounding to the run's end. */
        if (player->last_ns > player->first_ns) {
            result->per_second +=
                (double)player->latency.count * 1e9 / (double)(player->last_ns - player->first_ns);
        }
    }
    play_samples_sort(&result->latency);
    return ok || play_fail(err, "collect the latencies: out of memory");
}

static bool start_threads(struct player *players, uint32_t count, uint32_t *started,
                          struct play_error *err) {
    for (uint32_t i = 0; i < count; i++) {
        const int code = pthread_create(&players[i].thread, NULL, play, &players[i]);
        if (code != 0) {
            return play_fail(err, "start thread %u: %s", i, strerror(code));
        }
        (*started)++;
    }
    return true;
}

static bool open_lanes(struct player *players, struct run *run, struct play_device *device,
                       uint32_t *opened, struct play_error *err) {
    for (uint32_t i = 0; i < run->options->threads; i++) {
        players[i].run = run;
        players[i].place = &run->watch->places[i + 1];
        if (!play_lane_open(&players[i].lane, device, run->options->graph, err)) {
            return false;
        }
        (*opened)++;
        /* Once before the clock runs: loading code lazily is nobody's latency. */
        if (!play_lane_pass(&players[i].lane, err)) {
            return false;
        }
    }
    return true;
}

static bool play_all(struct player *players, struct run *run, struct play_result *result,
                     struct play_error *err) {
    const struct play_options *options = run->options;
    uint32_t started = 0;
    uint64_t start = 0;

    play_place_phase(run->watch->places, "waiting for the start");
    if (!play_wait_for_start(options->ready_fd, options->start_fd, options->start_at, run->stop,
                             &start, err)) {
        return false;
    }
    result->start_ns = start;
    run->arrival_ns = start;
    run->warm_ns = start + (uint64_t)(options->warmup_s * 1e9);
    run->end_ns = run->warm_ns + (uint64_t)(options->duration_s * 1e9);
    atomic_store(&run->watch->end_ns, run->end_ns);
    if (!play_status_start(&run->status, options->status_ms, options->status_fd, start, err)) {
        return false;
    }
    bool ok = start_threads(players, options->threads, &started, err);
    if (!ok) {
        run->end_ns = 0;
    }
    play_place_phase(run->watch->places, "waiting for the lanes");
    for (uint32_t i = 0; i < started; i++) {
        pthread_join(players[i].thread, NULL);
        if (ok && !players[i].ok) {
            ok = false;
            result->wrong = players[i].wrong;
            *err = players[i].err;
        }
    }
    play_status_stop(&run->status);
    play_place_phase(run->watch->places, "closing");
    if (ok && options->samples != NULL) {
        ok = write_samples(options->samples, players, options->threads, start, err);
    }
    return ok && collect(players, options->threads, result, err);
}

bool play_run(const struct play_options *options, struct play_device *device,
              struct play_arrivals *arrivals, struct play_watch *watch, struct play_result *result,
              struct play_error *err) {
    struct run run = {
        .options = options, .stop = watch->stop, .watch = watch, .arrivals = arrivals};
    struct player *players = calloc(options->threads, sizeof *players);
    uint32_t opened = 0;

    *result = (struct play_result){0};
    if (players == NULL) {
        return play_fail(err, "prepare %u threads: out of memory", options->threads);
    }
    pthread_mutex_init(&run.lock, NULL);
    const bool ok =
        open_lanes(players, &run, device, &opened, err) && play_all(players, &run, result, err);
    for (uint32_t i = 0; i < opened; i++) {
        play_lane_close(&players[i].lane);
        play_samples_free(&players[i].latency);
        play_samples_free(&players[i].due);
    }
    pthread_mutex_destroy(&run.lock);
    free(players);
    return ok;
}
