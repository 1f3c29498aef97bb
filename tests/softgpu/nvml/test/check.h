/* A test is a function; CHECK says what was wrong and where, and the program's exit code is its verdict. */
#ifndef SOFTGPU_NVML_CHECK_H
#define SOFTGPU_NVML_CHECK_H

#include <stdio.h>

extern _Atomic int check_failures;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            check_failures++;                                                                      \
        }                                                                                          \
    } while (0)

#define CHECK_EQ(got, want)                                                                        \
    do {                                                                                           \
        long long got_ = (long long)(got), want_ = (long long)(want);                              \
        if (got_ != want_) {                                                                       \
            fprintf(stderr, "%s:%d: %s is %lld, want %lld\n", __FILE__, __LINE__, #got, got_,      \
                    want_);                                                                        \
            check_failures++;                                                                      \
        }                                                                                          \
    } while (0)

#endif
