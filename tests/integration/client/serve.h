/* A service whose latency is told in the device's own time. */
#ifndef CLIENT_SERVE_H
#define CLIENT_SERVE_H

#include "driver.h"

enum { SERVE_ROUNDS_MAX = 10000 };

/*
 * Launches the graph that many times, idle in between, and tells the latencies of the device from
 * just before each launch until it was done.
 */
cu_result serve(const struct client_driver *cu, cu_graph_exec graph, cu_stream stream,
                uint64_t rounds, uint64_t idle_us, float *latency_ms);

#endif
