/*
 * The gate against tests/testdata/gate-vectors.txt, which explains its own form, and against its
 * twin in Go.
 *
 *     gate_vectors FILE     check every vector of FILE
 *     gate_vectors -        answer binary questions on standard input until it ends. They come in
 *                           batches: a uint32_t number of questions and one of padding, then for
 *                           each one struct heddle_gate_input, a uint32_t number of peers, a
 *                           uint32_t of padding and the peers; each is answered by a
 *                           struct heddle_gate_answer, all of a batch at its end
 */
#define _POSIX_C_SOURCE 200809L /* strtok_r */

#include <heddle/gate.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PEERS_MAX = HEDDLE_PEERS_MAX, LINE_BYTES = 1024 };

struct vector {
    const char *name;
    struct heddle_gate_input in;
    struct heddle_gate_peer peers[PEERS_MAX];
    uint32_t npeers;
    struct heddle_gate_answer want;
};

/* Reads digits and a unit up to the end of text. */
static bool number(const char *text, uint64_t max, uint64_t *out) {
    static const struct {
        const char *suffix;
        uint64_t ns;
    } units[] = {{"", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};
    char *end;
    unsigned long long n;

    if (strcmp(text, "max") == 0) {
        *out = max;
        return true;
    }
    errno = 0;
    n = strtoull(text, &end, 0);
    if (errno != 0 || end == text) {
        return false;
    }
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(end, units[i].suffix) == 0) {
            *out = (uint64_t)n * units[i].ns;
            return n <= max / units[i].ns;
        }
    }
    return false;
}

static bool number32(const char *text, uint32_t *out) {
    uint64_t n = 0;

    if (!number(text, UINT32_MAX, &n)) {
        return false;
    }
    *out = (uint32_t)n;
    return true;
}

static bool gate_word(char *text, uint32_t *out) {
    static const struct {
        const char *name;
        uint32_t bit;
    } bits[] = {{"closed", HEDDLE_GATE_CLOSED},
                {"yield", HEDDLE_GATE_YIELD},
                {"publish", HEDDLE_GATE_PUBLISH},
                {"window", HEDDLE_GATE_WINDOW},
                {"fill", HEDDLE_GATE_FILL}};
    char *rest = NULL;

    if (number32(text, out)) {
        return true;
    }
    *out = 0;
    for (char *name = strtok_r(text, "+", &rest); name != NULL; name = strtok_r(NULL, "+", &rest)) {
        size_t i = 0;

        while (i < sizeof bits / sizeof bits[0] && strcmp(bits[i].name, name) != 0) {
            i++;
        }
        if (i == sizeof bits / sizeof bits[0]) {
            return false;
        }
        *out |= bits[i].bit;
    }
    return true;
}

static bool add_peer(struct vector *v, char *text) {
    struct heddle_gate_peer *peer;
    char *part[5];
    char *rest = NULL;
    int parts = 0;

    if (v->npeers == PEERS_MAX) {
        return false;
    }
    peer = &v->peers[v->npeers++];
    for (char *p = strtok_r(text, "/", &rest); p != NULL; p = strtok_r(NULL, "/", &rest)) {
        if (parts == 5) {
            return false;
        }
        part[parts++] = p;
    }
    return parts >= 4 && number32(part[0], &peer->busy) && number32(part[1], &peer->corun) &&
           number(part[2], UINT64_MAX, &peer->idle_since_ns) &&
           number(part[3], UINT64_MAX, &peer->next_launch_ns) &&
           (parts == 4 || number(part[4], UINT64_MAX, &peer->want_ns));
}

static bool set(struct vector *v, const char *key, char *value) {
    const struct {
        const char *key;
        uint64_t *field;
    } wide[] = {{"now", &v->in.now_ns},
                {"estimate", &v->in.estimate_ns},
                {"outstanding", &v->in.outstanding_ns},
                {"window", &v->in.window_ns},
                {"quiet", &v->in.quiet_ns},
                {"held", &v->in.held_since_ns},
                {"max_hold", &v->in.max_hold_ns},
                {"corun", &v->in.corun_ns},
                {"min_gap", &v->in.min_gap_ns},
                {"max_block", &v->in.max_block_ns}};

    for (size_t i = 0; i < sizeof wide / sizeof wide[0]; i++) {
        if (strcmp(wide[i].key, key) == 0) {
            return number(value, UINT64_MAX, wide[i].field);
        }
    }
    if (strcmp(key, "gate") == 0) {
        return gate_word(value, &v->in.gate);
    }
    if (strcmp(key, "margin") == 0) {
        return number32(value, &v->in.margin_ppm);
    }
    if (strcmp(key, "token") == 0) {
        return number32(value, &v->in.has_token);
    }
    if (strcmp(key, "beside") == 0) {
        return number32(value, &v->in.beside);
    }
    return strcmp(key, "peer") == 0 && add_peer(v, value);
}

static bool set_answer(struct vector *v, char *text) {
    char *retry = strstr(text, " retry=");
    const bool held = strncmp(text, "window", 6) == 0 || strncmp(text, "peer:", 5) == 0 ||
                      strncmp(text, "token:", 6) == 0;

    if (held != (retry != NULL)) {
        return false;
    }
    v->want.retry_ns = UINT64_MAX;
    if (retry != NULL) {
        *retry = '\0';
        retry += strlen(" retry=");
        if (strcmp(retry, "never") != 0 && !number(retry, UINT64_MAX, &v->want.retry_ns)) {
            return false;
        }
    }
    if (strcmp(text, "open") == 0) {
        v->want.result = HEDDLE_GATE_OPEN;
        v->want.retry_ns = v->in.now_ns;
    } else if (strcmp(text, "closed") == 0) {
        v->want.result = HEDDLE_GATE_HELD_CLOSED;
    } else if (strcmp(text, "overrun") == 0) {
        v->want.result = HEDDLE_GATE_OVERRUN;
    } else if (strcmp(text, "window") == 0) {
        v->want.result = HEDDLE_GATE_HELD_WINDOW;
    } else if (strcmp(text, "long") == 0) {
        v->want.result = HEDDLE_GATE_HELD_LONG;
    } else if (strncmp(text, "token:", 6) == 0) {
        v->want.result = HEDDLE_GATE_HELD_TOKEN;
        return number32(text + 6, &v->want.peer);
    } else if (strncmp(text, "peer:", 5) == 0) {
        v->want.result = HEDDLE_GATE_HELD_PEER;
        return number32(text + 5, &v->want.peer);
    } else {
        return false;
    }
    return true;
}

/* Takes the line apart in place. */
static bool parse(struct vector *v, char *line) {
    char *input = strstr(line, ": ");
    char *answer = strstr(line, " => ");
    char *rest = NULL;

    memset(v, 0, sizeof *v);
    if (input == NULL || answer == NULL || answer < input) {
        return false;
    }
    *input = '\0';
    *answer = '\0';
    v->name = line;
    for (char *field = strtok_r(input + 2, " ", &rest); field != NULL;
         field = strtok_r(NULL, " ", &rest)) {
        char *value = strchr(field, '=');

        if (value == NULL) {
            return false;
        }
        *value = '\0';
        if (!set(v, field, value + 1)) {
            return false;
        }
    }
    return set_answer(v, answer + 4);
}

static int check_file(const char *path) {
    static struct vector v;
    char line[LINE_BYTES];
    int number_of_line = 0;
    int checked = 0;
    int failed = 0;
    FILE *f = fopen(path, "r");

    if (f == NULL) {
        perror(path);
        return 1;
    }
    while (fgets(line, sizeof line, f) != NULL) {
        struct heddle_gate_answer got;

        number_of_line++;
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '\0' || line[0] == '#') {
            continue;
        }
        if (!parse(&v, line)) {
            fprintf(stderr, "%s:%d: not a vector\n", path, number_of_line);
            failed++;
            continue;
        }
        checked++;
        heddle_gate_decide(&v.in, v.peers, v.npeers, &got);
        if (got.result != v.want.result || got.peer != v.want.peer ||
            got.retry_ns != v.want.retry_ns) {
            fprintf(stderr,
                    "%s:%d: %s: got result %u peer %u retry %llu, want result %u peer %u retry "
                    "%llu\n",
                    path, number_of_line, v.name, got.result, got.peer,
                    (unsigned long long)got.retry_ns, v.want.result, v.want.peer,
                    (unsigned long long)v.want.retry_ns);
            failed++;
        }
    }
    fclose(f);
    printf("%d vectors, %d failed\n", checked, failed);
    return failed != 0 || checked == 0;
}

static bool answer_one(void) {
    static struct heddle_gate_peer peers[PEERS_MAX];
    struct heddle_gate_input in;
    struct heddle_gate_answer out = {0};
    uint32_t count[2];

    if (fread(&in, sizeof in, 1, stdin) != 1 || fread(count, sizeof count, 1, stdin) != 1 ||
        count[0] > PEERS_MAX || fread(peers, sizeof peers[0], count[0], stdin) != count[0]) {
        fputs("gate_vectors: half a question\n", stderr);
        return false;
    }
    heddle_gate_decide(&in, peers, count[0], &out);
    return fwrite(&out, sizeof out, 1, stdout) == 1;
}

static int answer_questions(void) {
    uint32_t batch[2];

    while (fread(batch, sizeof batch, 1, stdin) == 1) {
        for (uint32_t i = 0; i < batch[0]; i++) {
            if (!answer_one()) {
                return 1;
            }
        }
        if (fflush(stdout) != 0) {
            return 1;
        }
    }
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: %s FILE | -\n", argv[0]);
        return 2;
    }
    return strcmp(argv[1], "-") == 0 ? answer_questions() : check_file(argv[1]);
}
