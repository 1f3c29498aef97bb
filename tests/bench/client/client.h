/*
 * The programs that the benches time: a CUDA client with one role per bench. It has never heard of
 * Heddle; what stands in front of the driver is the caller's choice.
 */
#ifndef BENCH_CLIENT_H
#define BENCH_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "../../play/src/clock.h"
#include "../../play/src/driver.h"
#include "../../play/src/error.h"

/* A context with one kernel loaded that does nothing and takes no time. */
struct bench_cuda {
    struct play_driver driver;
    CUcontext context;
    CUmodule module;
    CUfunction nothing;
};

bool bench_cuda_open(struct bench_cuda *cuda, struct play_error *err);

/* The roles. Each returns the exit status. */
int bench_launch_main(int argc, char **argv);
int bench_gate_main(int argc, char **argv);
int bench_attach_main(int argc, char **argv);

/* Prints the error and returns 1. */
int bench_complain(const struct play_error *err);

/* Maps size bytes of the file that the caller shares with others; NULL: err says why. */
void *bench_map(const char *path, size_t size, struct play_error *err);

#endif /* BENCH_CLIENT_H */
