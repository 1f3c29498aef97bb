/* What a client that means harm does, behind an interposer that is what it should be. */
#ifndef CLIENT_HOSTILE_H
#define CLIENT_HOSTILE_H

#include "driver.h"

#include <stdbool.h>

struct hostile_gpu {
    const struct client_driver *cu;
    cu_context context;
    cu_function tick;
};

/* Runs a command of the list in client.c and prints its answer; false if it is none of them. */
bool hostile_command(const struct hostile_gpu *gpu, const char *name, uint64_t a, uint64_t b);

#endif
