/*
 * The watch: a player that is still there long after its run was to end says where each of its
 * threads is stuck, and ends. Whoever waits for a player thus learns what it waits for.
 */
#ifndef PLAY_WATCH_H
#define PLAY_WATCH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bell.h"
#include "error.h"
#include "place.h"

struct play_watch {
    const atomic_bool *stop; /* true: the run was to end now */
    _Atomic uint64_t end_ns; /* when it is to end; UINT64_MAX: not known yet */
    uint64_t patience_ns;    /* 0: nobody watches */
    int exit_status;         /* of a stuck process */
    size_t count;
    struct play_place *places; /* of main, then of each lane */
    pthread_t thread;
    struct play_bell bell;
};

bool play_watch_start(struct play_watch *watch, uint32_t lanes, double patience_s,
                      const atomic_bool *stop, int exit_status, struct play_error *err);
void play_watch_stop(struct play_watch *watch);

#endif /* PLAY_WATCH_H */
