/*
 * A test harness in one header: TEST("sentence") { ... CHECK(...) } registers itself; main runs all,
 * or those whose sentence contains the argument, and exits 1 if a check failed.
 */
#ifndef HEDDLE_TEST_H
#define HEDDLE_TEST_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct test {
    const char *sentence;
    void (*run)(void);
    struct test *next;
};

static struct test *test_list;
static struct test **test_end = &test_list;
static int test_failures;

#define TEST_JOIN_(a, b) a##b
#define TEST_JOIN(a, b) TEST_JOIN_(a, b)
#define TEST(text)                                                                                 \
    static void TEST_JOIN(test_run_, __LINE__)(void);                                              \
    __attribute__((constructor)) static void TEST_JOIN(test_add_, __LINE__)(void) {                \
        static struct test self = {text, TEST_JOIN(test_run_, __LINE__), NULL};                    \
        *test_end = &self;                                                                         \
        test_end = &self.next;                                                                     \
    }                                                                                              \
    static void TEST_JOIN(test_run_, __LINE__)(void)

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            test_failures++;                                                                       \
        }                                                                                          \
    } while (0)

#define CHECK_EQUAL(got, want)                                                                     \
    do {                                                                                           \
        const unsigned long long got_ = (unsigned long long)(got);                                 \
        const unsigned long long want_ = (unsigned long long)(want);                               \
        if (got_ != want_) {                                                                       \
            fprintf(stderr, "%s:%d: %s is %llu, want %llu\n", __FILE__, __LINE__, #got, got_,      \
                    want_);                                                                        \
            test_failures++;                                                                       \
        }                                                                                          \
    } while (0)

int main(int argc, char **argv) {
    int ran = 0;

    for (struct test *test = test_list; test != NULL; test = test->next) {
        const int before = test_failures;

        if (argc > 1 && strstr(test->sentence, argv[1]) == NULL) {
            continue;
        }
        test->run();
        ran++;
        if (test_failures != before) {
            fprintf(stderr, "FAIL %s\n", test->sentence);
        }
    }
    printf("%s: %d tests, %d failures\n", argv[0], ran, test_failures);
    return test_failures != 0 || ran == 0;
}

#endif /* HEDDLE_TEST_H */
