#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char play_usage[] =
    "usage: heddle-play --table FILE --mode infer|train [options]\n"
    "\n"
    "Plays a table of kernels on the CUDA driver that libcuda.so.1 is, and measures it.\n"
    "\n"
    "  --table FILE       kernel table: CSV with Name, Profile, SM_usage, Duration (ns)\n"
    "  --mode infer       a service: requests arrive, each runs the table once; reports latency\n"
    "                     from arrival to completion\n"
    "  --mode train       a job: runs the table over and over; reports iterations per second\n"
    "  --arrivals SPEC    closed (default), poisson:RATE, or a JSON array of gaps in seconds\n"
    "  --duration SECONDS measured time (default 10)\n"
    "  --warmup SECONDS   time before it that is played and not counted (default 0.5)\n"
    "  --speed FACTOR     kernels and gaps this much faster (default 1)\n"
    "  --seed N           of the Poisson process (default 1)\n"
    "  --threads N        lanes, each with a stream of its own (default 1)\n"
    "  --graph            launch the table as one CUDA graph\n"
    "  --device N         ordinal of the device (default 0)\n"
    "  --json             print the result as one JSON object\n"
    "  --samples FILE     write every measured pass there: seconds since the start, milliseconds\n"
    "  --status MS        print a JSON line of progress every MS milliseconds\n"
    "  --status-fd FD     where to (default 2)\n"
    "  --ready-fd FD      write \"ready\" and a newline there when everything is loaded\n"
    "  --start-fd FD      then read from there a line with the time to start at\n"
    "  --start-at NS      start at this CLOCK_MONOTONIC time (default: at once)\n"
    "  --patience SECONDS how long after its end a run may go on before it says where it is stuck\n"
    "                     and ends (default 10, 0: for ever)\n"
    "  --ptx              print the module and end\n"
    "  --help             print this text\n"
    "\n"
    "Exit status: 0 played and checked, 1 fault, 2 wrong use, 3 wrong results, 4 stuck.\n";

static bool number(const char *name, const char *text, double min, double max, double *out,
                   struct play_error *err) {
    char *end = NULL;

    *out = strtod(text, &end);
    if (end == text || *end != '\0' || !(*out >= min && *out <= max)) {
        return play_fail(err, "--%s %.100s: expected a number from %g to %g", name, text, min, max);
    }
    return true;
}

static bool whole(const char *name, const char *text, uint64_t min, uint64_t max, uint64_t *out,
                  struct play_error *err) {
    char *end = NULL;

    errno = 0;
    *out = strtoull(text, &end, 10);
    if (end == text || *end != '\0' || text[0] == '-' || errno != 0 || *out < min || *out > max) {
        return play_fail(err, "--%s %.100s: expected a whole number from %llu to %llu", name, text,
                         (unsigned long long)min, (unsigned long long)max);
    }
    return true;
}

static bool descriptor(const char *name, const char *text, int *out, struct play_error *err) {
    uint64_t value = 0;

    if (!whole(name, text, 0, INT_MAX, &value, err)) {
        return false;
    }
    *out = (int)value;
    return true;
}

static bool mode(const char *text, struct play_options *out, struct play_error *err) {
    if (strcmp(text, "infer") == 0) {
        out->mode = PLAY_MODE_INFER;
    } else if (strcmp(text, "train") == 0) {
        out->mode = PLAY_MODE_TRAIN;
    } else {
        return play_fail(err, "--mode %.100s: expected infer or train", text);
    }
    return true;
}

/* getopt_long's values for the options; all above any character. */
enum option_code {
    OPT_TABLE = 256,
    OPT_MODE,
    OPT_ARRIVALS,
    OPT_DURATION,
    OPT_WARMUP,
    OPT_SPEED,
    OPT_SEED,
    OPT_THREADS,
    OPT_GRAPH,
    OPT_DEVICE,
    OPT_JSON,
    OPT_SAMPLES,
    OPT_STATUS,
    OPT_STATUS_FD,
    OPT_READY_FD,
    OPT_START_FD,
    OPT_START_AT,
    OPT_PATIENCE,
    OPT_PTX,
    OPT_HELP,
};

static const struct option OPTIONS[] = {
    {"table", required_argument, NULL, OPT_TABLE},
    {"mode", required_argument, NULL, OPT_MODE},
    {"arrivals", required_argument, NULL, OPT_ARRIVALS},
    {"duration", required_argument, NULL, OPT_DURATION},
    {"warmup", required_argument, NULL, OPT_WARMUP},
    {"speed", required_argument, NULL, OPT_SPEED},
    {"seed", required_argument, NULL, OPT_SEED},
    {"threads", required_argument, NULL, OPT_THREADS},
    {"graph", no_argument, NULL, OPT_GRAPH},
    {"device", required_argument, NULL, OPT_DEVICE},
    {"json", no_argument, NULL, OPT_JSON},
    {"samples", required_argument, NULL, OPT_SAMPLES},
    {"status", required_argument, NULL, OPT_STATUS},
    {"status-fd", required_argument, NULL, OPT_STATUS_FD},
    {"ready-fd", required_argument, NULL, OPT_READY_FD},
    {"start-fd", required_argument, NULL, OPT_START_FD},
    {"start-at", required_argument, NULL, OPT_START_AT},
    {"patience", required_argument, NULL, OPT_PATIENCE},
    {"ptx", no_argument, NULL, OPT_PTX},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0},
};

static bool take(int code, char **argv, struct play_options *out, struct play_error *err) {
    uint64_t value = 0;

    switch (code) {
    case OPT_TABLE:
        out->table = optarg;
        return true;
    case OPT_MODE:
        return mode(optarg, out, err);
    case OPT_ARRIVALS:
        out->arrivals = optarg;
        return true;
    case OPT_DURATION:
        return number("duration", optarg, 0.001, 86400, &out->duration_s, err);
    case OPT_WARMUP:
        return number("warmup", optarg, 0, 86400, &out->warmup_s, err);
    case OPT_SPEED:
        return number("speed", optarg, 0.001, 1000, &out->speed, err);
    case OPT_SEED:
        return whole("seed", optarg, 0, UINT64_MAX, &out->seed, err);
    case OPT_THREADS:
        if (!whole("threads", optarg, 1, 256, &value, err)) {
            return false;
        }
        out->threads = (uint32_t)value;
        return true;
    case OPT_GRAPH:
        out->graph = true;
        return true;
    case OPT_DEVICE:
        return descriptor("device", optarg, &out->device, err);
    case OPT_JSON:
        out->json = true;
        return true;
    case OPT_SAMPLES:
        out->samples = optarg;
        return true;
    case OPT_STATUS:
        return whole("status", optarg, 1, 3600000, &out->status_ms, err);
    case OPT_STATUS_FD:
        return descriptor("status-fd", optarg, &out->status_fd, err);
    case OPT_READY_FD:
        return descriptor("ready-fd", optarg, &out->ready_fd, err);
    case OPT_START_FD:
        return descriptor("start-fd", optarg, &out->start_fd, err);
    case OPT_START_AT:
        return whole("start-at", optarg, 1, INT64_MAX, &out->start_at, err);
    case OPT_PATIENCE:
        return number("patience", optarg, 0, 86400, &out->patience_s, err);
    case OPT_PTX:
        out->ptx = true;
        return true;
    case OPT_HELP:
        out->help = true;
        return true;
    case ':':
        return play_fail(err, "%.100s: missing value", argv[optind - 1]);
    default:
        return play_fail(err, "%.100s: unknown option, see --help", argv[optind - 1]);
    }
}

bool play_options_parse(int argc, char **argv, struct play_options *out, struct play_error *err) {
    *out = (struct play_options){
        .arrivals = "closed",
        .duration_s = 10,
        .warmup_s = 0.5,
        .patience_s = 10,
        .speed = 1,
        .seed = 1,
        .threads = 1,
        .ready_fd = -1,
        .start_fd = -1,
        .status_fd = 2,
    };
    optind = 1;
    for (;;) {
        const int code = getopt_long(argc, argv, "+:", OPTIONS, NULL);
        if (code == -1) {
            break;
        }
        if (!take(code, argv, out, err)) {
            return false;
        }
    }
    if (out->help) {
        return true;
    }
    if (optind < argc) {
        return play_fail(err, "%.100s: unexpected argument, see --help", argv[optind]);
    }
    if (out->table == NULL) {
        return play_fail(err, "--table is missing, see --help");
    }
    if (out->mode == PLAY_MODE_NONE && !out->ptx) {
        return play_fail(err, "--mode is missing, see --help");
    }
    return true;
}
