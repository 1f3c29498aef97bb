/* What the fake driver counted, and what it shall answer. */
#ifndef HEDDLE_TEST_FAKE_DRIVER_H
#define HEDDLE_TEST_FAKE_DRIVER_H

#include <stdint.h>

struct fake_calls {
    uint64_t init;
    uint64_t launches;
    uint64_t last_sum;
    uint64_t graphs;
    uint64_t syncs;
    uint64_t events_created;
    uint64_t events_recorded;
    uint64_t events_queried;
    uint64_t names_asked;
    int last_priority; /* with which a stream was created */
};

struct fake_answers {
    int launch;
    int sync;
    int query;
    const char *name; /* of every function, NULL = an error */
    float elapsed_ms;
    int busy; /* what asking for a stream answers */
};

#endif /* HEDDLE_TEST_FAKE_DRIVER_H */
