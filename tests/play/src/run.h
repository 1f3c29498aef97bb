/* Playing: lanes on threads, for a time, as a service or as a training job. */
#ifndef PLAY_RUN_H
#define PLAY_RUN_H

#include "arrivals.h"
#include "lane.h"
#include "options.h"
#include "samples.h"
#include "watch.h"

/* All times in ns of CLOCK_MONOTONIC. */
struct play_result {
    uint64_t start_ns;
    struct play_samples latency; /* sorted; per request, or per iteration of a training job */
    double per_second;           /* requests or iterations, in the measured time */
    uint64_t passes;             /* all, warm-up included */
    bool wrong;                  /* the kernels' results were not right; err says how */
};

/* Plays as the options say; stops early when the watch's *stop becomes true. False: err says why. */
bool play_run(const struct play_options *options, struct play_device *device,
              struct play_arrivals *arrivals, struct play_watch *watch, struct play_result *result,
              struct play_error *err);

#endif /* PLAY_RUN_H */
