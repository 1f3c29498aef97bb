/*
 * Prints what one kernel launch costs its caller, in nanoseconds, on whatever libcuda.so.1 is: the
 * driver itself, the interposer switched off, or the interposer attached.
 *
 * The launches of a round are few enough to fit the driver's queue, so that the time measured is
 * the caller's and not the device's; the queue is emptied between rounds, outside the measurement.
 *
 *   launch-cost [ROUNDS]        one JSON object: {"min_ns": ..., "median_ns": ..., "rounds": ...}
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    LAUNCHES = 500,
    ROUNDS_DEFAULT = 200,
    ROUNDS_MAX = 10000,
    SECOND_NS = 1000000000,
};

/* The entry points used, declared as the driver documents them. */
struct driver {
    int (*init)(unsigned flags);
    int (*device_get)(int *device, int ordinal);
    int (*primary_retain)(void **context, int device);
    int (*set_current)(void *context);
    int (*module_load)(void **module, const void *image);
    int (*function_get)(void **function, void *module, const char *name);
    int (*launch)(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                  unsigned bz, unsigned shared, void *stream, void **parameters, void **extra);
    int (*synchronize)(void);
};

static const char EMPTY[] = ".version 6.4\n"
                            ".target sm_50\n"
                            ".address_size 64\n"
                            "// softgpu.kernel empty busy time_ns=200\n"
                            ".visible .entry empty()\n"
                            "{\n"
                            "    ret;\n"
                            "}\n";

static int fail(const char *what, int result) {
    (void)fprintf(stderr, "launch-cost: %s: driver answered %d\n", what, result);
    return 1;
}

static int open_driver(struct driver *d) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    const struct {
        const char *name;
        void *slot;
    } wanted[] = {
        {"cuInit", &d->init},
        {"cuDeviceGet", &d->device_get},
        {"cuDevicePrimaryCtxRetain", &d->primary_retain},
        {"cuCtxSetCurrent", &d->set_current},
        {"cuModuleLoadData", &d->module_load},
        {"cuModuleGetFunction", &d->function_get},
        {"cuLaunchKernel", &d->launch},
        {"cuCtxSynchronize", &d->synchronize},
    };

    if (library == NULL) {
        (void)fprintf(stderr, "launch-cost: %s\n", dlerror());
        return 1;
    }
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        void *symbol = dlsym(library, wanted[i].name);

        /* Copied, because C has no conversion from an object's pointer to a function's. */
        memcpy(wanted[i].slot, &symbol, sizeof(symbol));
        if (symbol == NULL) {
            (void)fprintf(stderr, "launch-cost: the driver has no %s\n", wanted[i].name);
            return 1;
        }
    }
    return 0;
}

static uint64_t now_ns(void) {
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a;
    const double y = *(const double *)b;

    return (x > y) - (x < y);
}

/* One round: ns per launch, or a negative number with the driver's answer. */
static double play_round(const struct driver *d, void *function) {
    const uint64_t start = now_ns();
    int result = 0;

    for (int i = 0; i < LAUNCHES && result == 0; i++) {
        result = d->launch(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
    }
    const uint64_t end = now_ns();

    if (result == 0) {
        result = d->synchronize();
    }
    return result != 0 ? -(double)result : (double)(end - start) / LAUNCHES;
}

int main(int argc, char **argv) {
    static double costs[ROUNDS_MAX];
    long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : ROUNDS_DEFAULT;
    struct driver d;
    void *context = NULL;
    void *module = NULL;
    void *function = NULL;
    int device = 0;
    int result = 0;

    if (argc > 2 || rounds < 1 || rounds > ROUNDS_MAX) {
        (void)fprintf(stderr, "usage: launch-cost [ROUNDS, 1 to %d]\n", ROUNDS_MAX);
        return 2;
    }
    if (open_driver(&d) != 0) {
        return 1;
    }
    if ((result = d.init(0)) != 0) {
        return fail("cuInit", result);
    }
    if ((result = d.device_get(&device, 0)) != 0) {
        return fail("cuDeviceGet", result);
    }
    if ((result = d.primary_retain(&context, device)) != 0 ||
        (result = d.set_current(context)) != 0) {
        return fail("primary context", result);
    }
    if ((result = d.module_load(&module, EMPTY)) != 0 ||
        (result = d.function_get(&function, module, "empty")) != 0) {
        return fail("load the empty kernel", result);
    }
    /* The first rounds load code and grow queues. */
    for (int i = 0; i < 5; i++) {
        (void)play_round(&d, function);
    }
    for (long i = 0; i < rounds; i++) {
        costs[i] = play_round(&d, function);
        if (costs[i] < 0) {
            return fail("launch", (int)-costs[i]);
        }
    }
    qsort(costs, (size_t)rounds, sizeof(costs[0]), ascending);
    printf("{\"min_ns\": %.1f, \"median_ns\": %.1f, \"rounds\": %ld}\n", costs[0],
           costs[rounds / 2], rounds);
    return 0;
}
