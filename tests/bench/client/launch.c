/*
 * What a launch costs. The caller asks for rounds on stdin, one line each:
 *
 *     KIND THREADS PINNED LAUNCHES
 *
 * and gets one line back with ns per launch: of processor time, which other programs on the machine
 * do not change, and of wall-clock time. KIND is "submit" (launches one behind the other) or
 * "drained" (each waited for). The threads live as long as the process, as a program's do.
 */
#include "client.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    THREADS_MAX = 16,
    BATCHES = 16, /* a round's result is the median of its batches */
};

struct round {
    bool drained;
    bool pinned;
    unsigned threads;
    unsigned long launches; /* per batch */
};

struct worker {
    struct bench_cuda *cuda;
    unsigned index;
    pthread_t thread;
    CUstream stream;
    double cpu_ns[BATCHES];
    double wall_ns[BATCHES];
    bool ok;
    struct play_error err;
};

/* Round by round: main fills the order and meets the workers at the barrier, twice. */
static struct round present;
static pthread_barrier_t barrier;

static uint64_t cpu_now_ns(void) {
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

static bool pin(const struct worker *worker, bool pinned, struct play_error *err) {
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    cpu_set_t set;

    CPU_ZERO(&set);
    for (long cpu = 0; cpu < processors && cpu < CPU_SETSIZE; cpu++) {
        if (!pinned || cpu == (long)worker->index % processors) {
            CPU_SET((size_t)cpu, &set);
        }
    }
    const int code = pthread_setaffinity_np(pthread_self(), sizeof set, &set);
    return code == 0 || play_fail(err, "pin thread %u: %s", worker->index, strerror(code));
}

static bool batch(struct worker *worker, int n, struct play_error *err) {
    const struct play_driver *driver = &worker->cuda->driver;
    const unsigned long launches = present.launches;
    uint64_t time_ns = 0;
    void *parameters[] = {&time_ns};
    CUresult result = PLAY_CUDA_SUCCESS;

    const uint64_t wall = play_now_ns();
    const uint64_t cpu = cpu_now_ns();
    if (present.drained) {
        for (unsigned long i = 0; i < launches; i++) {
            result |= driver->launch(worker->cuda->nothing, 1, 1, 1, 32, 1, 1, 0, worker->stream,
                                     parameters, NULL);
            result |= driver->stream_wait(worker->stream);
        }
    } else {
        for (unsigned long i = 0; i < launches; i++) {
            result |= driver->launch(worker->cuda->nothing, 1, 1, 1, 32, 1, 1, 0, worker->stream,
                                     parameters, NULL);
        }
    }
    worker->cpu_ns[n] = (double)(cpu_now_ns() - cpu) / (double)launches;
    worker->wall_ns[n] = (double)(play_now_ns() - wall) / (double)launches;
    return play_driver_ok(driver, result, "cuLaunchKernel", err) &&
           play_driver_ok(driver, driver->stream_wait(worker->stream), "cuStreamSynchronize", err);
}

static void *work(void *argument) {
    struct worker *worker = argument;
    const struct play_driver *driver = &worker->cuda->driver;
    struct play_error *err = &worker->err;

    worker->ok =
        play_driver_ok(driver, driver->set_current(worker->cuda->context), "cuCtxSetCurrent",
                       err) &&
        play_driver_ok(driver, driver->stream_create(&worker->stream, PLAY_STREAM_NON_BLOCKING),
                       "cuStreamCreate", err);
    for (;;) {
        pthread_barrier_wait(&barrier);
        if (present.threads == 0) {
            return NULL;
        }
        if (worker->ok && worker->index < present.threads) {
            worker->ok = pin(worker, present.pinned, err);
            for (int n = 0; worker->ok && n < BATCHES; n++) {
                worker->ok = batch(worker, n, err);
            }
        }
        pthread_barrier_wait(&barrier);
    }
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a;
    const double y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The median over all batches of all threads of the round. */
static double median(const struct worker *workers, bool cpu) {
    double values[THREADS_MAX * BATCHES] = {0};
    size_t count = 0;

    for (unsigned i = 0; i < present.threads; i++) {
        for (int n = 0; n < BATCHES; n++) {
            values[count++] = cpu ? workers[i].cpu_ns[n] : workers[i].wall_ns[n];
        }
    }
    qsort(values, count, sizeof values[0], by_value);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

static bool read_round(const char *line, struct round *round) {
    char kind[16];
    int pinned = 0;

    if (sscanf(line, "%15s %u %d %lu", kind, &round->threads, &pinned, &round->launches) != 4) {
        return false;
    }
    round->pinned = pinned != 0;
    round->drained = strcmp(kind, "drained") == 0;
    return (round->drained || strcmp(kind, "submit") == 0) && round->threads >= 1 &&
           round->threads <= THREADS_MAX && round->launches >= 1;
}

static int serve(struct worker *workers) {
    char line[128];

    while (fgets(line, sizeof line, stdin) != NULL) {
        if (!read_round(line, &present)) {
            fprintf(stderr, "bench-client: no round: %s", line);
            return 2;
        }
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        for (unsigned i = 0; i < present.threads; i++) {
            if (!workers[i].ok) {
                return bench_complain(&workers[i].err);
            }
        }
        printf("%.4f %.4f\n", median(workers, true), median(workers, false));
        fflush(stdout);
    }
    return 0;
}

int bench_launch_main(int argc, char **argv) {
    static struct worker workers[THREADS_MAX];
    struct bench_cuda cuda;
    struct play_error err;

    (void)argc;
    (void)argv;
    if (!bench_cuda_open(&cuda, &err)) {
        return bench_complain(&err);
    }
    pthread_barrier_init(&barrier, NULL, THREADS_MAX + 1);
    for (unsigned i = 0; i < THREADS_MAX; i++) {
        workers[i].cuda = &cuda;
        workers[i].index = i;
        const int code = pthread_create(&workers[i].thread, NULL, work, &workers[i]);
        if (code != 0) {
            play_fail(&err, "start thread %u: %s", i, strerror(code));
            return bench_complain(&err);
        }
    }
    printf("ready\n");
    fflush(stdout);
    const int status = serve(workers);
    present.threads = 0;
    pthread_barrier_wait(&barrier);
    for (unsigned i = 0; i < THREADS_MAX; i++) {
        pthread_join(workers[i].thread, NULL);
    }
    return status;
}
