/* A capture in progress. */
#ifndef SOFTGPU_CAPTURE_H
#define SOFTGPU_CAPTURE_H

#include "driver.h"

struct sg_capture {
    struct sg_capture *next; /* in the list of those in progress */
    struct sg_graph *graph;
    struct sg_stream *origin;
    pthread_t thread;
    int mode;
    bool invalid;
    bool into_given; /* the graph belongs to the caller */
    uint64_t id;
};

#endif /* SOFTGPU_CAPTURE_H */
