/* Arrival patterns: the JSON reader, and that a seed means one sequence. */
#include "arrivals.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static bool parse(const char *text, size_t size, struct play_arrivals *out,
                  struct play_error *err) {
    err->text[0] = '\0';
    return play_arrivals_parse(text, size, "a.json", out, err);
}

static void test_json(void) {
    static const struct {
        const char *what;
        const char *text;
        size_t count; /* 0: refused */
        double last;
    } cases[] = {
        {"gaps in seconds", "[0.031, 0.012, 0.073]", 3, 0.073},
        {"space around", " \n[ 1e-3 ,2 ]\n", 2, 2},
        {"one gap", "[5]", 1, 5},
        {"nothing", "", 0, 0},
        {"no array", "{\"a\":1}", 0, 0},
        {"empty array", "[]", 0, 0},
        {"not closed", "[1, 2", 0, 0},
        {"comma at the end", "[1, ]", 0, 0},
        {"negative", "[1, -2]", 0, 0},
        {"plus sign", "[+1]", 0, 0},
        {"hexadecimal", "[0x10]", 0, 0},
        {"not a number", "[nan]", 0, 0},
        {"too large", "[1e300]", 0, 0},
        {"beyond a double", "[1e999]", 0, 0},
        {"a string", "[\"1\"]", 0, 0},
        {"text behind", "[1] x", 0, 0},
        {"no time passes", "[0, 0]", 0, 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct play_error err;
        struct play_arrivals arrivals;
        const bool ok = parse(cases[i].text, strlen(cases[i].text), &arrivals, &err);

        PLAY_CHECK(ok == (cases[i].count > 0), "%s: %s", cases[i].what, err.text);
        PLAY_CHECK(arrivals.count == cases[i].count, "%s: %zu gaps", cases[i].what, arrivals.count);
        if (ok && arrivals.count > 0) {
            PLAY_CHECK(fabs(arrivals.gaps[arrivals.count - 1] - cases[i].last) < 1e-12, "%s",
                       cases[i].what);
        }
        play_arrivals_free(&arrivals);
    }
    struct play_error err;
    struct play_arrivals arrivals;
    PLAY_CHECK(!parse("[1]\0", 4, &arrivals, &err), "a NUL byte was taken");
}

static void test_gaps_repeat(void) {
    struct play_error err;
    struct play_arrivals arrivals;

    PLAY_CHECK(parse("[1, 2]", 6, &arrivals, &err), "%s", err.text);
    for (int i = 0; i < 4; i++) {
        const uint64_t want = i % 2 == 0 ? 1000000000U : 2000000000U;
        PLAY_CHECK(play_arrivals_gap_ns(&arrivals) == want, "gap %d", i);
    }
    play_arrivals_free(&arrivals);
}

static void test_specs(void) {
    static const char *const bad[] = {"poisson:",    "poisson:0",  "poisson:-1",
                                      "poisson:nan", "poisson:9x", "/nonexistent/arrivals.json"};
    struct play_error err;
    struct play_arrivals arrivals;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        PLAY_CHECK(!play_arrivals_open(bad[i], 1, &arrivals, &err), "%s was taken", bad[i]);
    }
    PLAY_CHECK(play_arrivals_open("closed", 1, &arrivals, &err), "%s", err.text);
    PLAY_CHECK(play_arrivals_gap_ns(&arrivals) == 0, "a gap in a closed loop");
}

static void test_poisson(void) {
    struct play_error err;
    struct play_arrivals a;
    struct play_arrivals b;
    struct play_arrivals other;
    double sum = 0;
    double squares = 0;
    int same = 0;
    const int n = 20000;

    PLAY_CHECK(play_arrivals_open("poisson:100", 7, &a, &err), "%s", err.text);
    PLAY_CHECK(play_arrivals_open("poisson:100", 7, &b, &err), "%s", err.text);
    PLAY_CHECK(play_arrivals_open("poisson:100", 8, &other, &err), "%s", err.text);
    for (int i = 0; i < n; i++) {
        const uint64_t gap = play_arrivals_gap_ns(&a);
        PLAY_CHECK(gap == play_arrivals_gap_ns(&b), "one seed, two sequences at %d", i);
        same += gap == play_arrivals_gap_ns(&other);
        sum += (double)gap / 1e9;
        squares += (double)gap / 1e9 * ((double)gap / 1e9);
    }
    /* An exponential distribution: the deviation is as large as the mean, here 10 ms. */
    const double mean = sum / n;
    const double deviation = sqrt(squares / n - mean * mean);
    PLAY_CHECK(fabs(mean - 0.01) < 0.0005, "mean %f", mean);
    PLAY_CHECK(fabs(deviation - 0.01) < 0.0005, "deviation %f", deviation);
    PLAY_CHECK(same < 10, "two seeds, %d gaps alike", same);
}

static void test_mutations(void) {
    static const char seed_text[] = "[0.031, 0.012, 0.073, 1e-3, 0, 2.5]";
    uint32_t state = 20261130;

    for (int round = 0; round < 20000; round++) {
        char text[sizeof seed_text];
        struct play_error err;
        struct play_arrivals arrivals;
        memcpy(text, seed_text, sizeof text);
        for (int n = 0; n < 3; n++) {
            state = state * 1664525U + 1013904223U;
            text[(state >> 8) % (sizeof text - 1)] = (char)(state >> 24);
        }
        const bool ok = parse(text, sizeof text - 1, &arrivals, &err);
        PLAY_CHECK(ok == (arrivals.count > 0), "round %d", round);
        PLAY_CHECK(ok == (err.text[0] == '\0'), "round %d", round);
        play_arrivals_free(&arrivals);
    }
}

int main(void) {
    test_json();
    test_gaps_repeat();
    test_specs();
    test_poisson();
    test_mutations();
    return play_check_failures != 0;
}
