/* 32 threads call the driver for the first time at the same moment, each another function. */
#include <pthread.h>

#include "probe.h"

enum { THREADS = 32 };

static void *handle;
static pthread_barrier_t barrier;
static int failures;

static void *start(void *number) {
    static const char *const names[] = {"cuInit", "cuDriverGetVersion", "cuDeviceGetCount"};
    const uintptr_t i = (uintptr_t)number;
    void *function = probe_symbol(handle, names[i % 3]);
    int value = 0;
    int result = 0;

    pthread_barrier_wait(&barrier);
    if (i % 3 == 0) {
        result = ((init_call)(uintptr_t)function)(0);
    } else {
        result = ((int (*)(int *))(uintptr_t)function)(&value);
    }
    /* 3: not initialised yet, which depends on who came first. */
    if (result != 0 && result != 3) {
        __atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];

    handle = dlopen("libcuda.so.1", RTLD_NOW);
    if (handle == NULL) {
        return 1;
    }
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (uintptr_t i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], NULL, start, (void *)i) != 0) {
            return 1;
        }
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    return failures != 0 ? 1 : probe_report(probe_symbol(handle, "cuInit"));
}
