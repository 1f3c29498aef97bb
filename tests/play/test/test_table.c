/* The kernel table's parser: what it takes, what it refuses, and that no text can hurt it. */
#include "table.h"

#include <dirent.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "file.h"

static const char HEADER[] = "Name,Profile,Memory_footprint,SM_usage,Duration\n";

static void takes(const char *what, const char *text, const char *name, int profile, uint32_t sms,
                  uint64_t time_ns) {
    struct play_error err = {{0}};
    struct play_table table;
    const bool ok = play_table_parse(text, strlen(text), "t.csv", &table, &err);

    PLAY_CHECK(ok, "%s: %s", what, err.text);
    if (!ok) {
        return;
    }
    const struct play_kernel *last = &table.kernels[table.count - 1];
    PLAY_CHECK(strcmp(last->name, name) == 0, "%s: name %s", what, last->name);
    PLAY_CHECK((int)last->profile == profile, "%s: profile %d", what, (int)last->profile);
    PLAY_CHECK(last->sms == sms, "%s: sms %u", what, last->sms);
    PLAY_CHECK(last->time_ns == time_ns, "%s: time %llu", what, (unsigned long long)last->time_ns);
    play_table_free(&table);
}

static void refuses(const char *what, const char *text, const char *message) {
    struct play_error err = {{0}};
    struct play_table table;
    const bool ok = play_table_parse(text, strlen(text), "t.csv", &table, &err);

    PLAY_CHECK(!ok, "%s was taken", what);
    PLAY_CHECK(table.kernels == NULL && table.count == 0, "%s: something was left", what);
    PLAY_CHECK(strstr(err.text, message) != NULL, "%s: \"%s\" lacks \"%s\"", what, err.text,
               message);
    if (ok) {
        play_table_free(&table);
    }
}

static void test_taken(void) {
    char text[1024];

#define ROW(row) (snprintf(text, sizeof text, "%s%s", HEADER, row), text)
    takes("plain row", ROW("Conv,1,0,49,26688\n"), "Conv", 1, 49, 26688);
    takes("no newline at the end", ROW("Conv,0,0,49,26688"), "Conv", 0, 49, 26688);
    takes("carriage returns", ROW("Conv,-1,0,49,26688\r\n"), "Conv", -1, 49, 26688);
    takes("colons and parentheses", ROW("void at::native::(anonymous namespace)::f,0,0,1,5\n"),
          "void at::native::(anonymous namespace)::f", 0, 1, 5);
    takes("quoted commas", ROW("\"f<int, 4>(a, b)\",1,0,2,7\n"), "f<int, 4>(a, b)", 1, 2, 7);
    takes("doubled quotes", ROW("\"f<\"\"x\"\">\",1,0,2,7\n"), "f<\"x\">", 1, 2, 7);
    takes("newline in quotes", ROW("\"a\nb\",1,0,2,7\n"), "a\nb", 1, 2, 7);
    takes("commas without quotes", ROW("f<int, 4>(a, b),1,0,2,7\n"), "f<int, 4>(a, b)", 1, 2, 7);
    takes("a quote inside a plain name", ROW("operator\"\" x,1,0,2,7\n"), "operator\"\" x", 1, 2,
          7);
    takes("decimals", ROW("f,1,0,1.5,7.6\n"), "f", 1, 2, 8);
    takes("empty lines between", ROW("a,1,0,2,7\n\n\nb,0,0,3,9\n\n"), "b", 0, 3, 9);
#undef ROW
    takes("other order, more columns, no profile", "Duration,x,Name,SM_usage\n7,?,f,3\n", "f", -1,
          3, 7);
    takes("byte order mark", "\xef\xbb\xbfName,SM_usage,Duration\nf,3,7\n", "f", -1, 3, 7);
}

static void test_refused(void) {
    char text[1024];

#define ROW(row) (snprintf(text, sizeof text, "%s%s", HEADER, row), text)
    refuses("nothing", "", "empty");
    refuses("header alone", HEADER, "no kernel");
    refuses("no name column", "Profile,SM_usage,Duration\n1,2,3\n", "no column Name");
    refuses("column twice", "Name,SM_usage,Duration,Name\n", "column Name twice");
    refuses("too few fields", ROW("f,1,0,2\n"), "line 2: 4 fields, the header has 5");
    refuses("too many fields with quotes", ROW("\"f\",1,0,2,3,4\n"), "6 fields");
    refuses("no number", ROW("f,1,0,2,fast\n"), "Duration \"fast\" is not a number");
    refuses("number with a unit", ROW("f,1,0,2,3ns\n"), "is not a number");
    refuses("not finite", ROW("f,1,0,2,nan\n"), "is not a number");
    refuses("no duration", ROW("f,1,0,2,\n"), "is not a number");
    refuses("negative duration", ROW("f,1,0,2,-5\n"), "is not from 1");
    refuses("no SM", ROW("f,1,0,0,5\n"), "SM_usage");
    refuses("unknown profile", ROW("f,2,0,1,5\n"), "Profile 2 is not from -1 to 1");
    refuses("half a profile", ROW("f,0.5,0,1,5\n"), "Profile 0.5");
    refuses("empty name", ROW(",0,0,1,5\n"), "empty Name");
    refuses("open quote", ROW("a,0,0,1,5\n\"f,0,0,1,5\n"), "line 3: quote is not closed");
    refuses("text behind a quote", ROW("\"f\"x,0,0,1,5\n"), "behind a closing quote");
#undef ROW
}

static void test_long_row(void) {
    const size_t size = (1 << 17) + sizeof HEADER;
    char *text = malloc(size + 1);

    memcpy(text, HEADER, sizeof HEADER);
    memset(text + sizeof HEADER - 1, 'x', size - sizeof HEADER);
    text[size - 1] = '\0';
    refuses("a row without end", text, "row is too long");
    free(text);
}

static uint32_t next_random(uint32_t *state) {
    *state = *state * 1664525U + 1013904223U;
    return *state >> 8;
}

/* A valid text with a few bytes changed, cut or moved either parses or says why, and never both. */
static void mutate(const char *seed_text, size_t seed_size, uint32_t seed, int rounds) {
    static const char interesting[] = ",\"\n\r\0-.09eEx \xff";
    char *text = malloc(seed_size + 1);

    for (int round = 0; round < rounds; round++) {
        uint32_t state = seed + (uint32_t)round;
        size_t size = seed_size;
        memcpy(text, seed_text, seed_size);
        for (uint32_t n = next_random(&state) % 8 + 1; n > 0 && size > 0; n--) {
            const size_t at = next_random(&state) % size;
            switch (next_random(&state) % 3) {
            case 0:
                text[at] = interesting[next_random(&state) % (sizeof interesting - 1)];
                break;
            case 1:
                size = next_random(&state) % 16 == 0 ? at : size;
                break;
            default:
                memmove(text + at, text + at + 1, size - at - 1);
                size--;
            }
        }
        struct play_error err = {{0}};
        struct play_table table;
        const bool ok = play_table_parse(text, size, "mutated", &table, &err);
        PLAY_CHECK(ok == (table.count > 0), "seed %u round %d", seed, round);
        PLAY_CHECK(ok == (err.text[0] == '\0'), "seed %u round %d", seed, round);
        play_table_free(&table);
    }
    free(text);
}

/* Every shipped table loads, and survives being damaged. */
static void test_shipped(const char *folder) {
    DIR *dir = opendir(folder);
    int tables = 0;

    PLAY_CHECK(dir != NULL, "%s", folder);
    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        const char *dot = strrchr(entry->d_name, '.');
        if (dot == NULL || strcmp(dot, ".csv") != 0) {
            continue;
        }
        char path[4096];
        struct play_error err = {{0}};
        struct play_table table;
        char *text = NULL;
        size_t size = 0;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        PLAY_CHECK(play_table_load(path, &table, &err), "%s", err.text);
        PLAY_CHECK(play_table_time_ns(&table) > 0, "%s", path);
        play_table_free(&table);
        if (play_file_read(path, 1 << 20, &text, &size, &err)) {
            mutate(text, size < 4000 ? size : 4000, 20261130, 2000);
        }
        free(text);
        tables++;
    }
    if (dir != NULL) {
        closedir(dir);
    }
    PLAY_CHECK(tables >= 4, "%d tables in %s", tables, folder);
}

int main(int argc, char **argv) {
    test_taken();
    test_refused();
    test_long_row();
    test_shipped(argc > 1 ? argv[1] : "tests/play/workloads");
    return play_check_failures != 0;
}
