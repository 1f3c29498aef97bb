/*
 * From the holder's idling to the held one's running. Two processes share a page: the holder
 * launches and does not wait, so that its stream counts as busy; the held one launches and is held;
 * a little later the holder takes the time, synchronises, and is idle. The held one takes the time
 * when its launch returns. Both times are of CLOCK_MONOTONIC.
 */
#include "client.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum turn {
    TURN_START = 0,    /* the holder may launch */
    TURN_HOLDING = 1,  /* the holder is busy */
    TURN_KNOCKING = 2, /* the held one is about to launch */
    TURN_PASSED = 3,   /* its launch has returned */
    TURN_OVER = 4,
};

struct shared {
    _Atomic uint32_t turn;
    _Atomic uint32_t go; /* the caller's word to begin */
    _Atomic uint64_t idle_ns;
    _Atomic uint64_t passed_ns;
};

enum {
    POLL_US = 50,
    HOLD_US = 1500, /* from knocking to idling: long enough for the other to be asleep */
    TURN_LIMIT_S = 5,
};

static void sleep_us(uint64_t us) {
    play_sleep_until_ns(play_now_ns() + us * 1000U);
}

/* Waits until it is that turn; false after TURN_LIMIT_S, or when the other one has given up. */
static bool await(struct shared *shared, uint32_t turn, struct play_error *err) {
    const uint64_t limit = play_now_ns() + TURN_LIMIT_S * UINT64_C(1000000000);

    for (uint32_t now; (now = atomic_load(&shared->turn)) != turn;) {
        if (now == TURN_OVER) {
            return play_fail(err, "the other process has ended");
        }
        if (play_now_ns() > limit) {
            return play_fail(err, "no turn %u within %d s, it is turn %u", turn, TURN_LIMIT_S, now);
        }
        sleep_us(POLL_US);
    }
    return true;
}

static bool launch(struct bench_cuda *cuda, CUstream stream, struct play_error *err) {
    uint64_t time_ns = 0;
    void *parameters[] = {&time_ns};

    return play_driver_ok(
        &cuda->driver,
        cuda->driver.launch(cuda->nothing, 1, 1, 1, 32, 1, 1, 0, stream, parameters, NULL),
        "cuLaunchKernel", err);
}

static bool finish(struct bench_cuda *cuda, CUstream stream, struct play_error *err) {
    return play_driver_ok(&cuda->driver, cuda->driver.stream_wait(stream), "cuStreamSynchronize",
                          err);
}

static bool hold(struct bench_cuda *cuda, CUstream stream, struct shared *shared,
                 struct play_error *err) {
    if (!launch(cuda, stream, err)) {
        return false;
    }
    atomic_store(&shared->turn, TURN_HOLDING);
    if (!await(shared, TURN_KNOCKING, err)) {
        return false;
    }
    sleep_us(HOLD_US);
    const uint64_t idle = play_now_ns();
    const uint32_t turn = atomic_load(&shared->turn);
    if (!finish(cuda, stream, err)) {
        return false;
    }
    if (turn != TURN_KNOCKING) {
        return play_fail(err, "the launch was not held");
    }
    atomic_store(&shared->idle_ns, idle);
    if (!await(shared, TURN_PASSED, err)) {
        return false;
    }
    printf("%llu\n", (unsigned long long)(atomic_load(&shared->passed_ns) - idle));
    atomic_store(&shared->turn, TURN_START);
    return true;
}

static bool knock(struct bench_cuda *cuda, CUstream stream, struct shared *shared,
                  struct play_error *err) {
    if (!await(shared, TURN_HOLDING, err)) {
        return false;
    }
    atomic_store(&shared->turn, TURN_KNOCKING);
    if (!launch(cuda, stream, err)) {
        return false;
    }
    atomic_store(&shared->passed_ns, play_now_ns());
    atomic_store(&shared->turn, TURN_PASSED);
    return finish(cuda, stream, err);
}

int bench_gate_main(int argc, char **argv) {
    struct bench_cuda cuda;
    struct play_error err;
    CUstream stream = NULL;
    struct shared *shared = NULL;

    if (argc != 4) {
        play_fail(&err, "gate: want holder|held FILE ROUNDS");
        return bench_complain(&err);
    }
    const bool holder = strcmp(argv[1], "holder") == 0;
    const unsigned long rounds = strtoul(argv[3], NULL, 10);
    bool ok =
        (shared = bench_map(argv[2], sizeof *shared, &err)) != NULL &&
        bench_cuda_open(&cuda, &err) &&
        play_driver_ok(&cuda.driver, cuda.driver.stream_create(&stream, PLAY_STREAM_NON_BLOCKING),
                       "cuStreamCreate", &err) &&
        launch(&cuda, stream, &err) && finish(&cuda, stream, &err);
    if (ok) {
        printf("ready\n");
        fflush(stdout);
        while (atomic_load(&shared->go) == 0) {
            sleep_us(POLL_US);
        }
    }
    for (unsigned long i = 0; ok && i < rounds; i++) {
        ok = holder ? hold(&cuda, stream, shared, &err) && await(shared, TURN_START, &err)
                    : knock(&cuda, stream, shared, &err);
    }
    if (!ok) {
        if (shared != NULL) {
            atomic_store(&shared->turn, TURN_OVER);
        }
        return bench_complain(&err);
    }
    return 0;
}
