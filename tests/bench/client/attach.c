/*
 * How long it takes to become a client: cuInit and the first context, from one moment that all
 * processes share: the end of descriptor 3, a pipe that the caller closes. Each says in the shared
 * file that it is there, waits for that, and writes the times into its own slot. It then stays
 * until its standard input is closed, so that the caller can count the clients.
 */
#include "client.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { START_FD = 3 };

struct slot {
    _Atomic uint64_t begun_ns;
    _Atomic uint64_t initialised_ns; /* cuInit has returned */
    _Atomic uint64_t done_ns;        /* a context is there */
};

struct shared {
    _Atomic uint64_t there;
    struct slot slots[];
};

/* Contexts take memory, so the clients spread over the devices. */
static bool attach(struct slot *slot, size_t index, struct play_error *err) {
    struct play_driver driver;
    CUdevice device = 0;
    CUcontext context = NULL;
    int count = 0;

    atomic_store(&slot->begun_ns, play_now_ns());
    if (!play_driver_open(&driver, err)) {
        return false;
    }
    atomic_store(&slot->initialised_ns, play_now_ns());
    if (!play_driver_ok(&driver, driver.device_count(&count), "cuDeviceGetCount", err) ||
        count < 1 ||
        !play_driver_ok(&driver, driver.device_get(&device, (int)(index % (size_t)count)),
                        "cuDeviceGet", err) ||
        !play_driver_ok(&driver, driver.primary_retain(&context, device),
                        "cuDevicePrimaryCtxRetain", err)) {
        return false;
    }
    atomic_store(&slot->done_ns, play_now_ns());
    return true;
}

static void read_to_end(int fd) {
    char byte;

    while (read(fd, &byte, 1) < 0 && errno == EINTR) {
    }
}

int bench_attach_main(int argc, char **argv) {
    struct play_error err;

    if (argc != 3) {
        play_fail(&err, "attach: want FILE SLOT");
        return bench_complain(&err);
    }
    const size_t slot = strtoul(argv[2], NULL, 10);
    struct shared *shared =
        bench_map(argv[1], sizeof *shared + (slot + 1) * sizeof(struct slot), &err);
    if (shared == NULL) {
        return bench_complain(&err);
    }
    atomic_fetch_add(&shared->there, 1);
    read_to_end(START_FD);
    if (!attach(&shared->slots[slot], slot, &err)) {
        return bench_complain(&err);
    }
    read_to_end(STDIN_FILENO);
    return 0;
}
