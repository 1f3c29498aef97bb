/* heddle-play: plays a table of kernels as an inference service or as a training job. */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arrivals.h"
#include "lane.h"
#include "options.h"
#include "report.h"
#include "run.h"
#include "table.h"
#include "watch.h"

enum exit_status {
    EXIT_PLAYED = 0,
    EXIT_FAULT = 1,
    EXIT_USAGE = 2,
    EXIT_WRONG = 3,
    EXIT_STUCK = 4,
};

static atomic_bool stop;

static void on_signal(int number) {
    (void)number;
    atomic_store(&stop, true);
}

/* The first signal ends the measurement early, the second one the process. */
static void catch_signals(void) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};

    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static int complain(enum exit_status status, const struct play_error *err) {
    fprintf(stderr, "heddle-play: %s\n", err->text);
    return (int)status;
}

static int print_ptx(struct play_table *table) {
    struct play_error err;
    struct play_ptx ptx;

    if (!play_ptx_build(table, &ptx, &err)) {
        return complain(EXIT_FAULT, &err);
    }
    fputs(ptx.text, stdout);
    play_ptx_free(&ptx);
    return fflush(stdout) == 0 ? EXIT_PLAYED : EXIT_FAULT;
}

static int play_watched(const struct play_options *options, struct play_table *table,
                        struct play_arrivals *arrivals, struct play_watch *watch) {
    struct play_error err;
    struct play_device device;
    struct play_result result;
    int status = EXIT_PLAYED;

    play_place_phase(watch->places, "opening");
    if (!play_device_open(&device, options->device, table, options->speed, watch->places, &err)) {
        return complain(EXIT_FAULT, &err);
    }
    if (!play_run(options, &device, arrivals, watch, &result, &err)) {
        status = complain(result.wrong ? EXIT_WRONG : EXIT_FAULT, &err);
    } else if (!play_report(stdout, options, table, &device, &result)) {
        play_fail(&err, "write the report: %s", strerror(errno));
        status = complain(EXIT_FAULT, &err);
    }
    play_samples_free(&result.latency);
    play_device_close(&device);
    return status;
}

static int play(const struct play_options *options, struct play_table *table,
                struct play_arrivals *arrivals) {
    struct play_error err;
    struct play_watch watch;

    if (!play_watch_start(&watch, options->threads, options->patience_s, &stop, EXIT_STUCK, &err)) {
        return complain(EXIT_FAULT, &err);
    }
    const int status = play_watched(options, table, arrivals, &watch);
    play_watch_stop(&watch);
    return status;
}

int main(int argc, char **argv) {
    struct play_options options;
    struct play_error err;
    struct play_table table;
    struct play_arrivals arrivals;

    if (!play_options_parse(argc, argv, &options, &err)) {
        return complain(EXIT_USAGE, &err);
    }
    if (options.help) {
        fputs(play_usage, stdout);
        return EXIT_PLAYED;
    }
    if (!play_arrivals_open(options.arrivals, options.seed, &arrivals, &err)) {
        return complain(EXIT_USAGE, &err);
    }
    if (!play_table_load(options.table, &table, &err)) {
        play_arrivals_free(&arrivals);
        return complain(EXIT_USAGE, &err);
    }
    catch_signals();
    const int status = options.ptx ? print_ptx(&table) : play(&options, &table, &arrivals);
    play_table_free(&table);
    play_arrivals_free(&arrivals);
    return status;
}
