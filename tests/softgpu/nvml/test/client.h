/* A process with a context on a device, as the driver would enter it into the state file. */
#ifndef SOFTGPU_NVML_CLIENT_H
#define SOFTGPU_NVML_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct client {
    unsigned unit;
    uint64_t bytes;
    uint64_t kernel_ns; /* one kernel on every SM, which takes this long; 0: none */
    bool mps;
};

/* Starts such a process and returns when it is in the state file; -1 when it could not. */
pid_t client_start(const struct client *want);

/* Kills it without a chance to clean up, and waits until the OS has let go of it. */
void client_kill(pid_t pid);

#endif
