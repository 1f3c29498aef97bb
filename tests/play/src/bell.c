#include "bell.h"

#include <time.h>

void play_bell_open(struct play_bell *bell) {
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&bell->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&bell->lock, NULL);
    bell->rung = false;
}

void play_bell_close(struct play_bell *bell) {
    pthread_cond_destroy(&bell->wake);
    pthread_mutex_destroy(&bell->lock);
}

bool play_bell_wait(struct play_bell *bell, uint64_t until_ns) {
    const struct timespec until = {(time_t)(until_ns / 1000000000U),
                                   (long)(until_ns % 1000000000U)};

    pthread_mutex_lock(&bell->lock);
    while (!bell->rung && pthread_cond_timedwait(&bell->wake, &bell->lock, &until) == 0) {
    }
    const bool rung = bell->rung;
    pthread_mutex_unlock(&bell->lock);
    return rung;
}

void play_bell_ring(struct play_bell *bell) {
    pthread_mutex_lock(&bell->lock);
    bell->rung = true;
    pthread_cond_signal(&bell->wake);
    pthread_mutex_unlock(&bell->lock);
}
