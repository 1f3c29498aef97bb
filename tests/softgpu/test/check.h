/* A test harness in one header: CHECK reports and counts, RUN names, finish() decides. */
#ifndef SOFTGPU_TEST_CHECK_H
#define SOFTGPU_TEST_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int check_failures;
static const char *check_case = "";

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s: not true: %s\n", __FILE__, __LINE__, check_case,           \
                    #condition);                                                                   \
            check_failures++;                                                                      \
        }                                                                                          \
    } while (0)

#define CHECK_EQ(got, want)                                                                        \
    do {                                                                                           \
        long long got_ = (long long)(got);                                                         \
        long long want_ = (long long)(want);                                                       \
        if (got_ != want_) {                                                                       \
            fprintf(stderr, "%s:%d: %s: %s is %lld, want %lld\n", __FILE__, __LINE__, check_case,  \
                    #got, got_, want_);                                                            \
            check_failures++;                                                                      \
        }                                                                                          \
    } while (0)

/* A call that must succeed; without it the rest makes no sense. */
#define OK(call)                                                                                   \
    do {                                                                                           \
        int rc_ = (int)(call);                                                                     \
        if (rc_ != 0) {                                                                            \
            fprintf(stderr, "%s:%d: %s: %s answers %d\n", __FILE__, __LINE__, check_case, #call,   \
                    rc_);                                                                          \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#define RUN(name, function)                                                                        \
    do {                                                                                           \
        check_case = name;                                                                         \
        function();                                                                                \
    } while (0)

static char check_state[64];

static pid_t check_owner;

static inline void check_remove_state(void) {
    if (getpid() != check_owner) {
        return; /* a child that ended early */
    }
    unlink(check_state);
}

/* A node of its own for this test program, gone when it ends. */
static inline void check_node(const char *gpus, const char *profile) {
    snprintf(check_state, sizeof(check_state), "/dev/shm/softgpu-test-%d", (int)getpid());
    unlink(check_state);
    setenv("SOFTGPU_STATE", check_state, 1);
    setenv("SOFTGPU_GPUS", gpus, 1);
    setenv("SOFTGPU_PROFILE", profile, 1);
    check_owner = getpid();
    atexit(check_remove_state);
}

static inline int finish(const char *program) {
    if (check_failures != 0) {
        fprintf(stderr, "%s: %d failures\n", program, check_failures);
        return 1;
    }
    printf("%s: ok\n", program);
    return 0;
}

#endif /* SOFTGPU_TEST_CHECK_H */
