#include "serve.h"

#include <stdlib.h>
#include <time.h>

static int ascending(const void *a, const void *b) {
    const float x = *(const float *)a;
    const float y = *(const float *)b;

    return (x > y) - (x < y);
}

/*
 * Between the first event and the launch lie a few instructions of this thread, all else is the
 * device's: how busy the machine is that computes a software GPU hardly matters.
 */
cu_result serve(const struct client_driver *cu, cu_graph_exec graph, cu_stream stream,
                uint64_t rounds, uint64_t idle_us, float *latency_ms) {
    const struct timespec idle = {.tv_sec = (time_t)(idle_us / 1000000U),
                                  .tv_nsec = (long)(idle_us % 1000000U) * 1000};
    cu_event from = NULL;
    cu_event to = NULL;
    cu_result rc = cu->event_create(&from, 0);

    rc = rc != CU_OK ? rc : cu->event_create(&to, 0);
    for (uint64_t i = 0; i < rounds && rc == CU_OK; i++) {
        nanosleep(&idle, NULL);
        rc = cu->event_record(from, stream);
        rc = rc != CU_OK ? rc : cu->graph_launch(graph, stream);
        rc = rc != CU_OK ? rc : cu->event_record(to, stream);
        rc = rc != CU_OK ? rc : cu->event_sync(to);
        rc = rc != CU_OK ? rc : cu->event_elapsed(&latency_ms[i], from, to);
    }
    if (rc == CU_OK) {
        qsort(latency_ms, rounds, sizeof *latency_ms, ascending);
    }
    return rc;
}
