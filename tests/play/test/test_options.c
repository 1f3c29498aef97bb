/* The command line: what it means, and that wrong use is one clear line. */
#include "options.h"

#include <string.h>

#include "check.h"
#include "samples.h"

enum { ARGUMENTS_MAX = 16 };

static bool parse(char *line, struct play_options *out, struct play_error *err) {
    char *argv[ARGUMENTS_MAX] = {(char[]){"heddle-play"}};
    int argc = 1;

    for (char *word = strtok(line, " "); word != NULL && argc < ARGUMENTS_MAX - 1;
         word = strtok(NULL, " ")) {
        argv[argc++] = word;
    }
    err->text[0] = '\0';
    return play_options_parse(argc, argv, out, err);
}

static void test_taken(void) {
    char line[] = "--table t.csv --mode infer --arrivals poisson:20 --duration 2.5 --seed 9 "
                  "--threads 3 --graph --json";
    struct play_options options;
    struct play_error err;

    PLAY_CHECK(parse(line, &options, &err), "%s", err.text);
    PLAY_CHECK(options.mode == PLAY_MODE_INFER, "mode");
    PLAY_CHECK(strcmp(options.table, "t.csv") == 0, "%s", options.table);
    PLAY_CHECK(options.duration_s > 2.4 && options.duration_s < 2.6, "%f", options.duration_s);
    PLAY_CHECK(options.seed == 9 && options.threads == 3, "numbers");
    PLAY_CHECK(options.graph && options.json && !options.ptx, "flags");
    PLAY_CHECK(options.ready_fd == -1 && options.start_fd == -1, "descriptors");
}

static void test_refused(void) {
    static const struct {
        const char *line;
        const char *message;
    } cases[] = {
        {"", "--table is missing"},
        {"--table t.csv", "--mode is missing"},
        {"--table t.csv --mode both", "expected infer or train"},
        {"--table t.csv --mode infer --sped 2", "unknown option"},
        {"--table t.csv --mode infer extra", "unexpected argument"},
        {"--table", "missing value"},
        {"--table t.csv --mode infer --duration 0", "expected a number"},
        {"--table t.csv --mode infer --duration 5s", "expected a number"},
        {"--table t.csv --mode infer --speed nan", "expected a number"},
        {"--table t.csv --mode infer --threads 0", "expected a whole number"},
        {"--table t.csv --mode infer --seed -1", "expected a whole number"},
        {"--table t.csv --mode infer --device 99999999999999999999", "expected a whole number"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char line[256];
        struct play_options options;
        struct play_error err;
        snprintf(line, sizeof line, "%s", cases[i].line);
        PLAY_CHECK(!parse(line, &options, &err), "\"%s\" was taken", cases[i].line);
        PLAY_CHECK(strstr(err.text, cases[i].message) != NULL, "\"%s\": \"%s\"", cases[i].line,
                   err.text);
        PLAY_CHECK(strchr(err.text, '\n') == NULL, "more than a line: %s", err.text);
    }
}

static void test_percentiles(void) {
    struct play_samples samples = {NULL, 0, 0};

    PLAY_CHECK(play_samples_percentile(&samples, 99) == 0, "of nothing");
    for (uint64_t i = 0; i < 200; i++) {
        PLAY_CHECK(play_samples_add(&samples, 200 - i), "out of memory");
    }
    play_samples_sort(&samples);
    PLAY_CHECK(play_samples_percentile(&samples, 50) == 100, "p50");
    PLAY_CHECK(play_samples_percentile(&samples, 99) == 198, "p99");
    PLAY_CHECK(play_samples_percentile(&samples, 100) == 200, "p100");
    PLAY_CHECK(play_samples_percentile(&samples, 0) == 1, "p0");
    PLAY_CHECK(play_samples_mean(&samples) > 100.4 && play_samples_mean(&samples) < 100.6, "mean");
    play_samples_free(&samples);
}

int main(void) {
    test_taken();
    test_refused();
    test_percentiles();
    return play_check_failures != 0;
}
