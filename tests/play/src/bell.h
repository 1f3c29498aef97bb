/* A sleep that another thread can end for good. */
#ifndef PLAY_BELL_H
#define PLAY_BELL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct play_bell {
    pthread_mutex_t lock; /* guards rung */
    pthread_cond_t wake;
    bool rung;
};

void play_bell_open(struct play_bell *bell);
void play_bell_close(struct play_bell *bell);

/* Sleeps until that time of CLOCK_MONOTONIC or until the bell is rung; true: it was. */
bool play_bell_wait(struct play_bell *bell, uint64_t until_ns);
void play_bell_ring(struct play_bell *bell);

#endif /* PLAY_BELL_H */
