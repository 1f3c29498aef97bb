/* The module's text: names, one entry per kernel of the table, the costs that it states. */
#include "ptx.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static void test_names(void) {
    static const struct {
        const char *name;
        enum play_profile profile;
        const char *want;
    } cases[] = {
        {"Conv", PLAY_PROFILE_COMPUTE, "Conv_c"},
        {"Conv", PLAY_PROFILE_MEMORY, "Conv_m"},
        {"add", PLAY_PROFILE_UNKNOWN, "add_u"},
        {"void at::native::(anonymous namespace)::f<int, 4>", PLAY_PROFILE_MEMORY,
         "void_at_native_anonymous_namespace_f_int_4_m"},
        {"3d", PLAY_PROFILE_MEMORY, "k3d_m"},
        {"\"\"", PLAY_PROFILE_MEMORY, "k_m"},
        {"\xc3\xa9t\xc3\xa9", PLAY_PROFILE_MEMORY, "k_t_m"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char name[128];
        char out[PLAY_PTX_NAME_MAX];
        snprintf(name, sizeof name, "%s", cases[i].name);
        const struct play_kernel kernel = {.name = name, .profile = cases[i].profile};
        play_ptx_name(&kernel, out);
        PLAY_CHECK(strcmp(out, cases[i].want) == 0, "%s: %s, not %s", name, out, cases[i].want);
    }
}

static void test_long_name(void) {
    char name[1000];
    char out[PLAY_PTX_NAME_MAX];

    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    const struct play_kernel kernel = {.name = name, .profile = PLAY_PROFILE_COMPUTE};
    play_ptx_name(&kernel, out);
    PLAY_CHECK(strlen(out) == PLAY_PTX_NAME_MAX - 1, "%zu characters", strlen(out));
    PLAY_CHECK(strcmp(out + strlen(out) - 2, "_c") == 0, "%s", out);
}

static size_t occurrences(const char *text, const char *what) {
    size_t n = 0;

    for (const char *at = text; (at = strstr(at, what)) != NULL; at += strlen(what)) {
        n++;
    }
    return n;
}

static void test_module(void) {
    static const char rows[] = "Name,Profile,SM_usage,Duration\n"
                               "Conv,1,4,100\n"
                               "Conv,0,4,100\n"
                               "Conv,1,8,200\n"
                               "f<int>,-1,1,5\n";
    struct play_error err;
    struct play_table table;
    struct play_ptx ptx;

    PLAY_CHECK(play_table_parse(rows, strlen(rows), "t", &table, &err), "%s", err.text);
    PLAY_CHECK(play_ptx_build(&table, &ptx, &err), "%s", err.text);
    PLAY_CHECK(ptx.count == 3, "%zu entries", ptx.count);
    PLAY_CHECK(occurrences(ptx.text, ".visible .entry ") == 3, "%s", ptx.text);
    PLAY_CHECK(table.kernels[0].entry == table.kernels[2].entry, "one kernel, two entries");
    PLAY_CHECK(table.kernels[0].entry != table.kernels[1].entry, "two profiles, one entry");
    PLAY_CHECK(occurrences(ptx.text, "// softgpu.kernel Conv_c busy time_ns=param:1 dram=0.20\n") ==
                   1,
               "%s", ptx.text);
    PLAY_CHECK(occurrences(ptx.text, "// softgpu.kernel Conv_m busy time_ns=param:1 dram=0.90\n") ==
                   1,
               "%s", ptx.text);
    PLAY_CHECK(occurrences(ptx.text, "6364136223846793005") == 3, "%s", ptx.text);
    PLAY_CHECK(occurrences(ptx.text, "{") == occurrences(ptx.text, "}"), "%s", ptx.text);
    for (const char *at = ptx.text; *at != '\0'; at++) {
        if (!isprint((unsigned char)*at) && *at != '\n') {
            PLAY_CHECK(false, "byte %d in the module", *at);
            break;
        }
    }
    play_ptx_free(&ptx);
    play_table_free(&table);
}

static void test_fold(void) {
    const uint64_t right = play_ptx_fold(play_ptx_fold(0, 1), 2);

    PLAY_CHECK(right != play_ptx_fold(play_ptx_fold(0, 2), 1), "order does not show");
    PLAY_CHECK(right != play_ptx_fold(0, 2), "a lost kernel does not show");
    PLAY_CHECK(right != play_ptx_fold(play_ptx_fold(play_ptx_fold(0, 1), 2), 2),
               "a doubled kernel does not show");
}

int main(void) {
    test_names();
    test_long_name();
    test_module();
    test_fold();
    return play_check_failures != 0;
}
