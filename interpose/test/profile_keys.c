/*
 * Keys of kernels against tests/testdata/profile-keys.txt, which explains its own form, and against
 * their twin in Go.
 *
 *     profile_keys FILE     check every line of FILE
 *     profile_keys -        answer binary questions on standard input until it ends: each is a
 *                           struct question, followed by the bytes of its name
 */
#include <heddle/profile.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 1024, NAME_BYTES = 512 };

struct question {
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t dynamic_shared;
    uint32_t length; /* of the name */
    uint64_t previous;
};

struct answer {
    uint64_t key;
    uint64_t pair; /* with the previous of the question */
};

static struct answer answer_of(const struct question *q, const char *name) {
    struct answer a;

    a.key = heddle_profile_key(heddle_profile_name(name, q->length), q->grid, q->block,
                               q->dynamic_shared);
    a.pair = heddle_profile_pair(q->previous, a.key);
    return a;
}

static bool numbers3(const char *text, uint32_t out[3]) {
    int end = 0;

    return sscanf(text, "%" SCNu32 ",%" SCNu32 ",%" SCNu32 "%n", &out[0], &out[1], &out[2], &end) ==
               3 &&
           text[end] == '\0';
}

/* Checks one line; false if it cannot be read. */
static bool check(char *line, bool *right) {
    struct question q = {0};
    struct answer want;
    struct answer got;
    char *fields[7];
    char *rest = line;

    line[strcspn(line, "\n")] = '\0';
    for (int i = 0; i < 7; i++) {
        fields[i] = rest;
        rest = strchr(rest, '|');
        if ((rest == NULL) != (i == 6)) {
            return false;
        }
        if (rest != NULL) {
            *rest++ = '\0';
        }
    }
    if (!numbers3(fields[1], q.grid) || !numbers3(fields[2], q.block)) {
        return false;
    }
    q.length = (uint32_t)strlen(fields[0]);
    q.dynamic_shared = (uint32_t)strtoul(fields[3], NULL, 10);
    q.previous = strtoull(fields[4], NULL, 0);
    want.key = strtoull(fields[5], NULL, 0);
    want.pair = strtoull(fields[6], NULL, 0);
    got = answer_of(&q, fields[0]);
    *right = got.key == want.key && got.pair == want.pair;
    if (!*right) {
        fprintf(stderr, "%s: key %#" PRIx64 ", pair %#" PRIx64 "\n", fields[0], got.key, got.pair);
    }
    return true;
}

static int check_file(const char *path) {
    char line[LINE_BYTES];
    FILE *file = fopen(path, "r");
    int number = 0;
    int checked = 0;
    int wrong = 0;

    if (file == NULL) {
        perror(path);
        return EXIT_FAILURE;
    }
    while (fgets(line, sizeof(line), file) != NULL) {
        bool right = false;

        number++;
        if (line[0] == '#' || line[0] == '\n') {
            continue;
        }
        if (!check(line, &right)) {
            fprintf(stderr, "%s:%d: not NAME|GRID|BLOCK|SHARED|PREVIOUS|KEY|PAIR\n", path, number);
            right = false;
        }
        checked++;
        wrong += right ? 0 : 1;
    }
    (void)fclose(file);
    printf("%d keys, %d wrong\n", checked, wrong);
    return checked > 0 && wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int answer_questions(void) {
    static char name[NAME_BYTES];
    struct question q;

    while (fread(&q, sizeof(q), 1, stdin) == 1) {
        struct answer a;

        if (q.length > sizeof(name) || fread(name, 1, q.length, stdin) != q.length) {
            fprintf(stderr, "profile_keys: a name of %" PRIu32 " bytes\n", q.length);
            return EXIT_FAILURE;
        }
        a = answer_of(&q, name);
        if (fwrite(&a, sizeof(a), 1, stdout) != 1) {
            return EXIT_FAILURE;
        }
    }
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: %s FILE|-\n", argv[0]);
        return 2;
    }
    return strcmp(argv[1], "-") == 0 ? answer_questions() : check_file(argv[1]);
}
