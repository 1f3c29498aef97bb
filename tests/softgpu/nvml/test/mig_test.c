/* MIG, as a client of NVML sees it. */
#define _GNU_SOURCE
#include "mig_test.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "client.h"
#include "mig.h"
#include "session.h"

/* Profile ids of boards with seven slices. */
enum { P7G = 0, P4G = 5, P3G = 9, P2G = 14, P1G_DOUBLE = 15, P1G = 19, P1G_ME = 20 };

static nvmlDevice_t gpu(unsigned index) {
    nvmlDevice_t d = NULL;
    CHECK_EQ(nvmlDeviceGetHandleByIndex_v2(index, &d), NVML_SUCCESS);
    return d;
}

/* The node, for what only a test looks at; closed by the caller. */
static struct sg_node peek(void) {
    struct sg_node node;
    CHECK_EQ(sg_state_open(&node, NULL, NULL), 0);
    return node;
}

static nvmlReturn_t set_mode(nvmlDevice_t d, unsigned mode) {
    nvmlReturn_t activation = NVML_ERROR_UNKNOWN;
    CHECK_EQ(nvmlDeviceSetMigMode(d, mode, &activation), NVML_SUCCESS);
    return activation;
}

static void check_mode(nvmlDevice_t d, unsigned want, unsigned want_pending) {
    unsigned current = 9, pending = 9;
    CHECK_EQ(nvmlDeviceGetMigMode(d, &current, &pending), NVML_SUCCESS);
    CHECK_EQ(current, want);
    CHECK_EQ(pending, want_pending);
}

static nvmlReturn_t create_at(nvmlDevice_t d, unsigned profile, unsigned start, unsigned size,
                              nvmlGpuInstance_t *gi) {
    nvmlGpuInstancePlacement_t place = {.start = start, .size = size};
    return nvmlDeviceCreateGpuInstanceWithPlacement(d, profile, &place, gi);
}

/* An instance that must come to be, with the id that it must have. */
static nvmlGpuInstance_t must_create(nvmlDevice_t d, unsigned profile, unsigned start,
                                     unsigned size, unsigned id) {
    nvmlGpuInstance_t gi = NULL;
    nvmlGpuInstanceInfo_t info = {.id = 99};
    CHECK_EQ(create_at(d, profile, start, size, &gi), NVML_SUCCESS);
    CHECK_EQ(nvmlGpuInstanceGetInfo(gi, &info), NVML_SUCCESS);
    CHECK(info.device == d);
    CHECK_EQ(info.id, id);
    CHECK_EQ(info.profileId, profile);
    CHECK_EQ(info.placement.start, start);
    CHECK_EQ(info.placement.size, size);
    return gi;
}

static unsigned room_for(nvmlDevice_t d, unsigned profile) {
    unsigned n = 99;
    CHECK_EQ(nvmlDeviceGetGpuInstanceRemainingCapacity(d, profile, &n), NVML_SUCCESS);
    return n;
}

void test_mig_mode(void) {
    nvmlDevice_t hopper = gpu(0), ampere = gpu(1);
    nvmlReturn_t activation;
    unsigned n = 9;
    CHECK_EQ(nvmlDeviceSetMigMode(hopper, 2, &activation), NVML_ERROR_INVALID_ARGUMENT);
    CHECK_EQ(nvmlDeviceSetMigMode(hopper, 1, NULL), NVML_ERROR_INVALID_ARGUMENT);
    CHECK_EQ(nvmlDeviceGetGpuInstanceRemainingCapacity(hopper, P1G, &n), NVML_ERROR_NOT_SUPPORTED);
    nvmlGpuInstance_t gi;
    CHECK_EQ(nvmlDeviceCreateGpuInstance(hopper, P1G, &gi), NVML_ERROR_NOT_SUPPORTED);

    CHECK_EQ(set_mode(hopper, 1), NVML_SUCCESS);
    check_mode(hopper, 1, 1);
    CHECK_EQ(nvmlDeviceGetMaxMigDeviceCount(hopper, &n), NVML_SUCCESS);
    CHECK_EQ(n, 7);
    nvmlUtilization_t rates;
    CHECK_EQ(nvmlDeviceGetUtilizationRates(hopper, &rates), NVML_ERROR_NOT_SUPPORTED);

    /* An instance keeps the mode from being left. */
    gi = must_create(hopper, P3G, 4, 4, 1);
    CHECK_EQ(set_mode(hopper, 0), NVML_ERROR_IN_USE);
    check_mode(hopper, 1, 0);
    CHECK_EQ(nvmlGpuInstanceDestroy(gi), NVML_SUCCESS);
    CHECK_EQ(set_mode(hopper, 0), NVML_SUCCESS);
    check_mode(hopper, 0, 0);

    /* Ampere needs a reset, which is not NVML's. */
    CHECK_EQ(set_mode(ampere, 1), NVML_ERROR_RESET_REQUIRED);
    check_mode(ampere, 0, 1);
    CHECK_EQ(nvmlDeviceCreateGpuInstance(ampere, P1G, &gi), NVML_ERROR_NOT_SUPPORTED);
    struct sg_node node = peek();
    sg_state_lock(&node);
    CHECK_EQ(sg_mig_reset(&node, 1), 0);
    sg_state_unlock(&node);
    sg_state_close(&node);
    check_mode(ampere, 1, 1);
    CHECK_EQ(nvmlDeviceCreateGpuInstance(ampere, P1G, &gi), NVML_SUCCESS);
}

void test_mig_busy(void) {
    for (unsigned i = 0; i < 2; i++) {
        nvmlDevice_t d = gpu(i);
        pid_t pid = client_start(&(struct client){.unit = i, .bytes = 1 << 20});
        CHECK_EQ(set_mode(d, 1), NVML_ERROR_IN_USE);
        check_mode(d, 0, 1);
        struct sg_node node = peek();
        uint32_t pids[2] = {0};
        sg_state_lock(&node);
        CHECK_EQ(sg_mig_users(&node, i, SOFTGPU_NONE, SOFTGPU_NONE, pids, 2), 1);
        CHECK(sg_mig_reset(&node, i) != 0);
        sg_state_unlock(&node);
        sg_state_close(&node);
        CHECK_EQ(pids[0], pid);
        client_kill(pid);
        CHECK_EQ(set_mode(d, 1), i == 0 ? NVML_SUCCESS : NVML_ERROR_RESET_REQUIRED);
        check_mode(d, i == 0, 1);
    }
}

void test_mig_instances(void) {
    nvmlDevice_t d = gpu(0);
    nvmlGpuInstance_t gi, list[8];
    unsigned n = 9;
    set_mode(d, 1);
    CHECK_EQ(room_for(d, P1G), 7);
    CHECK_EQ(create_at(d, P3G, 2, 4, &gi), NVML_ERROR_INVALID_ARGUMENT);
    CHECK_EQ(create_at(d, P3G, 4, 2, &gi), NVML_ERROR_INVALID_ARGUMENT);
    CHECK_EQ(create_at(d, P1G, 7, 1, &gi), NVML_ERROR_INVALID_ARGUMENT);
    CHECK_EQ(create_at(d, 77, 0, 1, &gi), NVML_ERROR_INVALID_ARGUMENT);
    CHECK_EQ(nvmlDeviceCreateGpuInstanceWithPlacement(d, P3G, NULL, &gi),
             NVML_ERROR_INVALID_ARGUMENT);

    nvmlGpuInstance_t half = must_create(d, P3G, 4, 4, 1);
    CHECK_EQ(create_at(d, P3G, 4, 4, &gi), NVML_ERROR_INSUFFICIENT_RESOURCES);
    CHECK_EQ(create_at(d, P7G, 0, 8, &gi), NVML_ERROR_INSUFFICIENT_RESOURCES);
    CHECK_EQ(room_for(d, P7G), 0);
    CHECK_EQ(room_for(d, P4G), 1);
    CHECK_EQ(room_for(d, P1G), 4); /* four compute slices, four memory slices */
    CHECK_EQ(room_for(d, P1G_ME), 1);
    nvmlGpuInstance_t one = must_create(d, P1G_ME, 3, 1, 10);
    CHECK_EQ(room_for(d, P1G_ME), 0); /* the OFA engine is gone */
    CHECK_EQ(room_for(d, P2G), 1);
    CHECK_EQ(room_for(d, P4G), 0);
    nvmlGpuInstance_t two = must_create(d, P2G, 0, 2, 3);

    CHECK_EQ(nvmlDeviceGetGpuInstanceById(d, 1, &gi), NVML_SUCCESS);
    CHECK(gi == half);
    CHECK_EQ(nvmlDeviceGetGpuInstanceById(d, 2, &gi), NVML_ERROR_NOT_FOUND);
    CHECK_EQ(nvmlDeviceGetGpuInstanceById(d, 77, &gi), NVML_ERROR_NOT_FOUND);
    CHECK_EQ(nvmlDeviceGetGpuInstances(d, P2G, list, &n), NVML_SUCCESS);
    CHECK(n == 1 && list[0] == two);
    CHECK_EQ(nvmlDeviceGetGpuInstances(d, P1G, list, &n), NVML_SUCCESS);
    CHECK_EQ(n, 0);

    /* A handle is of one instance: who comes after it with the same id has another. */
    nvmlGpuInstanceInfo_t info;
    CHECK_EQ(nvmlGpuInstanceDestroy(one), NVML_SUCCESS);
    CHECK_EQ(nvmlGpuInstanceDestroy(one), NVML_ERROR_INVALID_ARGUMENT);
    nvmlGpuInstance_t again = must_create(d, P1G, 3, 1, 10);
    CHECK_EQ(nvmlGpuInstanceGetInfo(one, &info), NVML_ERROR_INVALID_ARGUMENT);
    CHECK_EQ(nvmlGpuInstanceGetInfo((nvmlGpuInstance_t)(void *)&n, &info),
             NVML_ERROR_INVALID_ARGUMENT);
    CHECK_EQ(nvmlGpuInstanceDestroy(again), NVML_SUCCESS);
    CHECK_EQ(nvmlGpuInstanceDestroy(half), NVML_SUCCESS);
    CHECK_EQ(nvmlGpuInstanceDestroy(two), NVML_SUCCESS);
    CHECK_EQ(room_for(d, P7G), 1);

    /* Where the driver chooses, the order decides what fits. */
    static const unsigned bad[] = {P1G, P1G, P2G, P3G}, good[] = {P3G, P1G, P2G, P1G};
    nvmlGpuInstance_t made[4];
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(nvmlDeviceCreateGpuInstance(d, bad[i], &made[i]),
                 i < 3 ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_RESOURCES);
    }
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(nvmlGpuInstanceDestroy(made[i]), NVML_SUCCESS);
    }
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(nvmlDeviceCreateGpuInstance(d, good[i], &made[i]), NVML_SUCCESS);
    }
}

void test_mig_rules(void) {
    struct sg_node node = peek();
    sg_state_lock(&node);
    for (uint32_t i = 0; i < 3; i++) {
        node.st->devices[i].mig_mode = SOFTGPU_MIG_ENABLED;
    }
    sg_state_unlock(&node);
    sg_state_close(&node);

    /* Every legal start of every profile of an empty device, and the id that goes with its share of memory. */
    static const struct {
        unsigned device, profile, start, size, id;
    } ids[] = {
        {0, P7G, 0, 8, 0}, {0, P4G, 0, 4, 2}, {0, P3G, 0, 4, 2}, {0, P3G, 4, 4, 1},
        {0, P2G, 2, 2, 4}, {0, P2G, 4, 2, 5}, {0, P1G, 0, 1, 7}, {0, P1G, 6, 1, 13},
        {0, 15, 6, 2, 6},  {1, 14, 0, 1, 3},  {1, 14, 3, 1, 6},  {1, 5, 2, 2, 1},
        {1, 5, 0, 2, 2},   {1, 0, 0, 4, 0},   {2, 64, 2, 2, 1},  {2, 67, 1, 1, 4},
    };
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        nvmlGpuInstance_t gi =
            must_create(gpu(ids[i].device), ids[i].profile, ids[i].start, ids[i].size, ids[i].id);
        CHECK_EQ(nvmlGpuInstanceDestroy(gi), NVML_SUCCESS);
    }

    /* All media engines in one instance leave only those without any. */
    enum { ALL_ME = 65, NO_ME = 67, PLAIN = 14, GFX = 47 };
    nvmlDevice_t d = gpu(2);
    nvmlGpuInstance_t gi;
    must_create(d, ALL_ME, 3, 1, 6);
    CHECK_EQ(room_for(d, PLAIN), 0);
    CHECK_EQ(room_for(d, GFX), 0);
    CHECK_EQ(room_for(d, NO_ME), 3);
    CHECK_EQ(create_at(d, PLAIN, 0, 1, &gi), NVML_ERROR_INSUFFICIENT_RESOURCES);

    /* 4g can only be at 0; two 3g strand a compute slice but leave no memory. */
    d = gpu(0);
    must_create(d, P3G, 0, 4, 2);
    CHECK_EQ(room_for(d, P4G), 0);
    CHECK_EQ(room_for(d, P1G), 3);
    must_create(d, P3G, 4, 4, 1);
    CHECK_EQ(room_for(d, P1G), 0);
}

void test_mig_compute(void) {
    nvmlDevice_t d = gpu(0);
    set_mode(d, 1);
    nvmlGpuInstance_t gi = must_create(d, P4G, 0, 4, 2);
    nvmlComputeInstanceProfileInfo_t info;
    unsigned profiles = 0, n = 0;
    nvmlReturn_t err = NVML_SUCCESS;
    for (unsigned i = 0; err != NVML_ERROR_INVALID_ARGUMENT; i++) {
        err = nvmlGpuInstanceGetComputeInstanceProfileInfo(gi, i, 0, &info);
        profiles += err == NVML_SUCCESS;
    }
    CHECK_EQ(profiles, 3);
    enum { ONE = 0, TWO = 1, FOUR = 3 };
    CHECK_EQ(nvmlGpuInstanceGetComputeInstanceProfileInfo(gi, ONE, 1, &info),
             NVML_ERROR_INVALID_ARGUMENT);
    CHECK_EQ(nvmlGpuInstanceGetComputeInstanceProfileInfo(gi, TWO, 0, &info), NVML_SUCCESS);
    CHECK_EQ(info.multiprocessorCount, 32);
    CHECK_EQ(info.instanceCount, 2);
    CHECK_EQ(info.sharedCopyEngineCount, 4);
    nvmlComputeInstanceProfileInfo_v2_t v2 = {
        .version = NVML_VERSION_OF(nvmlComputeInstanceProfileInfo_v2_t, 2)};
    CHECK_EQ(nvmlGpuInstanceGetComputeInstanceProfileInfoV(gi, TWO, 0, &v2), NVML_SUCCESS);
    CHECK(strcmp(v2.name, "MIG 2c.4g.40gb") == 0);
    nvmlComputeInstanceProfileInfo_v3_t v3 = {
        .version = NVML_VERSION_OF(nvmlComputeInstanceProfileInfo_v3_t, 3)};
    CHECK_EQ(nvmlGpuInstanceGetComputeInstanceProfileInfoV(gi, FOUR, 0, &v3), NVML_SUCCESS);
    CHECK(strcmp(v3.name, "MIG 4g.40gb") == 0);
    CHECK_EQ(v3.multiprocessorCount, 64);
    v3.version = 1;
    CHECK_EQ(nvmlGpuInstanceGetComputeInstanceProfileInfoV(gi, FOUR, 0, &v3),
             NVML_ERROR_ARGUMENT_VERSION_MISMATCH);

    nvmlComputeInstancePlacement_t places[8];
    n = 8;
    CHECK_EQ(nvmlGpuInstanceGetComputeInstancePossiblePlacements(gi, TWO, places, &n),
             NVML_SUCCESS);
    CHECK(n == 2 && places[1].start == 2 && places[1].size == 2);
    n = 1;
    CHECK_EQ(nvmlGpuInstanceGetComputeInstancePossiblePlacements(gi, TWO, places, &n),
             NVML_ERROR_INSUFFICIENT_SIZE);

    nvmlComputeInstance_t ci[4], list[8], none;
    nvmlComputeInstancePlacement_t place = {.start = 2, .size = 2};
    CHECK_EQ(nvmlGpuInstanceCreateComputeInstanceWithPlacement(gi, TWO, &place, &ci[0]),
             NVML_SUCCESS);
    CHECK_EQ(nvmlGpuInstanceCreateComputeInstanceWithPlacement(gi, TWO, &place, &none),
             NVML_ERROR_INSUFFICIENT_RESOURCES);
    place.start = 1;
    CHECK_EQ(nvmlGpuInstanceCreateComputeInstanceWithPlacement(gi, TWO, &place, &none),
             NVML_ERROR_INVALID_ARGUMENT);
    CHECK_EQ(nvmlGpuInstanceCreateComputeInstance(gi, FOUR, &none),
             NVML_ERROR_INSUFFICIENT_RESOURCES);
    CHECK_EQ(nvmlGpuInstanceCreateComputeInstance(gi, 4, &none), NVML_ERROR_INVALID_ARGUMENT);
    CHECK_EQ(nvmlGpuInstanceGetComputeInstanceRemainingCapacity(gi, ONE, &n), NVML_SUCCESS);
    CHECK_EQ(n, 2);
    CHECK_EQ(nvmlGpuInstanceCreateComputeInstance(gi, ONE, &ci[1]), NVML_SUCCESS);
    CHECK_EQ(nvmlGpuInstanceCreateComputeInstance(gi, ONE, &ci[2]), NVML_SUCCESS);
    CHECK_EQ(nvmlGpuInstanceCreateComputeInstance(gi, ONE, &none),
             NVML_ERROR_INSUFFICIENT_RESOURCES);
    nvmlComputeInstanceInfo_t made;
    for (unsigned i = 0; i < 3; i++) {
        CHECK_EQ(nvmlComputeInstanceGetInfo_v2(ci[i], &made), NVML_SUCCESS);
        CHECK_EQ(made.id, i);
        CHECK(made.gpuInstance == gi);
    }
    CHECK_EQ(made.placement.start, 1);
    CHECK_EQ(nvmlGpuInstanceGetComputeInstances(gi, ONE, list, &n), NVML_SUCCESS);
    CHECK(n == 2 && list[0] == ci[1] && list[1] == ci[2]);
    CHECK_EQ(nvmlGpuInstanceGetComputeInstanceById(gi, 2, &none), NVML_SUCCESS);
    CHECK(none == ci[2]);
    CHECK_EQ(nvmlGpuInstanceGetComputeInstanceById(gi, 3, &none), NVML_ERROR_NOT_FOUND);

    CHECK_EQ(nvmlGpuInstanceDestroy(gi), NVML_ERROR_IN_USE);
    for (unsigned i = 0; i < 3; i++) {
        CHECK_EQ(nvmlComputeInstanceDestroy(ci[i]), NVML_SUCCESS);
        CHECK_EQ(nvmlComputeInstanceDestroy(ci[i]), NVML_ERROR_INVALID_ARGUMENT);
    }
    CHECK_EQ(nvmlGpuInstanceDestroy(gi), NVML_SUCCESS);
    CHECK_EQ(nvmlGpuInstanceGetComputeInstanceById(gi, 0, &none), NVML_ERROR_INVALID_ARGUMENT);
}

static nvmlComputeInstance_t whole_compute(nvmlGpuInstance_t gi, unsigned profile) {
    nvmlComputeInstance_t ci = NULL;
    CHECK_EQ(nvmlGpuInstanceCreateComputeInstance(gi, profile, &ci), NVML_SUCCESS);
    return ci;
}

static nvmlDevice_t mig_device_of(nvmlComputeInstance_t ci) {
    nvmlComputeInstanceInfo_t info = {.device = NULL};
    CHECK_EQ(nvmlComputeInstanceGetInfo_v2(ci, &info), NVML_SUCCESS);
    return info.device;
}

static unsigned unit_of(unsigned device, unsigned gi, unsigned ci) {
    struct sg_node node = peek();
    unsigned unit = node.st->devices[device].mig[gi].compute[ci].unit;
    sg_state_close(&node);
    return unit;
}

void test_mig_devices(void) {
    nvmlDevice_t d = gpu(0), mig, same, parent;
    set_mode(d, 1);
    CHECK_EQ(nvmlDeviceGetMigDeviceHandleByIndex(d, 0, &mig), NVML_ERROR_NOT_FOUND);
    nvmlGpuInstance_t bare = must_create(d, P1G, 6, 1, 13); /* without compute: nothing to see */
    CHECK_EQ(nvmlDeviceGetMigDeviceHandleByIndex(d, 0, &mig), NVML_ERROR_NOT_FOUND);
    nvmlGpuInstance_t gi = must_create(d, P3G, 0, 4, 2);
    enum { ONE = 0, THREE = 2 };
    nvmlComputeInstance_t ci = whole_compute(gi, THREE);
    CHECK_EQ(nvmlDeviceGetMigDeviceHandleByIndex(d, 0, &mig), NVML_SUCCESS);
    CHECK_EQ(nvmlDeviceGetMigDeviceHandleByIndex(d, 1, &same), NVML_ERROR_NOT_FOUND);
    CHECK_EQ(nvmlDeviceGetMigDeviceHandleByIndex(d, 7, &same), NVML_ERROR_INVALID_ARGUMENT);
    CHECK(mig == mig_device_of(ci));

    unsigned v = 9;
    char name[96], uuid[96], gone[96];
    CHECK_EQ(nvmlDeviceIsMigDeviceHandle(mig, &v), NVML_SUCCESS);
    CHECK_EQ(v, 1);
    CHECK_EQ(nvmlDeviceGetGpuInstanceId(mig, &v), NVML_SUCCESS);
    CHECK_EQ(v, 2);
    CHECK_EQ(nvmlDeviceGetComputeInstanceId(mig, &v), NVML_SUCCESS);
    CHECK_EQ(v, 0);
    CHECK_EQ(nvmlDeviceGetDeviceHandleFromMigDeviceHandle(mig, &parent), NVML_SUCCESS);
    CHECK(parent == d);
    CHECK_EQ(nvmlDeviceGetDeviceHandleFromMigDeviceHandle(d, &parent), NVML_ERROR_INVALID_ARGUMENT);
    CHECK_EQ(nvmlDeviceGetName(mig, name, sizeof name), NVML_SUCCESS);
    CHECK(strcmp(name, "NVIDIA H100 80GB HBM3 MIG 3g.40gb") == 0);
    CHECK_EQ(nvmlDeviceGetUUID(mig, uuid, sizeof uuid), NVML_SUCCESS);
    CHECK(strlen(uuid) == 40 && strncmp(uuid, "MIG-", 4) == 0);
    CHECK_EQ(nvmlDeviceGetHandleByUUID(uuid, &same), NVML_SUCCESS);
    CHECK(same == mig);
    CHECK_EQ(nvmlDeviceGetHandleByUUID("MIG-0", &same), NVML_ERROR_NOT_FOUND);
    nvmlDeviceAttributes_t a;
    CHECK_EQ(nvmlDeviceGetAttributes_v2(d, &a), NVML_ERROR_NOT_SUPPORTED);
    CHECK_EQ(nvmlDeviceGetAttributes_v2(mig, &a), NVML_SUCCESS);
    CHECK(a.multiprocessorCount == 60 && a.gpuInstanceSliceCount == 3 &&
          a.computeInstanceSliceCount == 3 && a.memorySizeMB == 40448);
    unsigned watts;
    CHECK_EQ(nvmlDeviceGetPowerUsage(mig, &watts), NVML_ERROR_NOT_SUPPORTED);

    /* Memory and processes are the instance's own; the GPU has all of them, with the ids. */
    enum { BYTES = 64 << 20 };
    pid_t pid = client_start(&(struct client){.unit = unit_of(0, 2, 0), .bytes = BYTES});
    nvmlMemory_v2_t memory = {.version = NVML_VERSION_OF(nvmlMemory_v2_t, 2)};
    CHECK_EQ(nvmlDeviceGetMemoryInfo_v2(mig, &memory), NVML_SUCCESS);
    CHECK(memory.total == 40448ull << 20 && memory.used == BYTES);
    nvmlProcessInfo_t list[4];
    for (int i = 0; i < 2; i++) {
        unsigned n = 4;
        CHECK_EQ(nvmlDeviceGetComputeRunningProcesses_v3(i == 0 ? mig : d, &n, list), NVML_SUCCESS);
        CHECK_EQ(n, 1);
        CHECK(list[0].pid == (unsigned)pid && list[0].gpuInstanceId == 2 &&
              list[0].computeInstanceId == 0);
    }
    CHECK_EQ(nvmlComputeInstanceDestroy(ci), NVML_ERROR_IN_USE);
    client_kill(pid);

    /* The next one in the same place has the same ids and another UUID; old handles are of the old one. */
    CHECK_EQ(nvmlComputeInstanceDestroy(ci), NVML_SUCCESS);
    CHECK_EQ(nvmlDeviceGetUUID(mig, gone, sizeof gone), NVML_ERROR_INVALID_ARGUMENT);
    CHECK_EQ(nvmlDeviceGetHandleByUUID(uuid, &same), NVML_ERROR_NOT_FOUND);
    ci = whole_compute(gi, THREE);
    CHECK_EQ(nvmlDeviceGetUUID(mig, gone, sizeof gone), NVML_ERROR_INVALID_ARGUMENT);
    CHECK_EQ(nvmlDeviceGetUUID(mig_device_of(ci), gone, sizeof gone), NVML_SUCCESS);
    CHECK(strcmp(uuid, gone) != 0);

    /* Two that share a GPU instance share its memory. */
    CHECK_EQ(nvmlComputeInstanceDestroy(ci), NVML_SUCCESS);
    ci = whole_compute(gi, ONE);
    nvmlComputeInstance_t other = whole_compute(gi, ONE);
    CHECK_EQ(nvmlDeviceGetName(mig_device_of(ci), name, sizeof name), NVML_SUCCESS);
    CHECK(strcmp(name, "NVIDIA H100 80GB HBM3 MIG 1c.3g.40gb") == 0);
    CHECK_EQ(nvmlDeviceGetIndex(mig_device_of(other), &v), NVML_SUCCESS);
    CHECK_EQ(v, 1);
    pid = client_start(&(struct client){.unit = unit_of(0, 2, 0), .bytes = BYTES});
    CHECK_EQ(nvmlDeviceGetMemoryInfo_v2(mig_device_of(other), &memory), NVML_SUCCESS);
    CHECK_EQ(memory.used, BYTES);
    client_kill(pid);
    CHECK_EQ(nvmlGpuInstanceDestroy(bare), NVML_SUCCESS);
}

/* Starts a process that holds an instance, as a monitor does. */
static pid_t hold(uint32_t device, uint32_t id, uint32_t compute) {
    int ready[2];
    CHECK_EQ(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct sg_node node;
        if (sg_state_open(&node, NULL, NULL) != 0) {
            _exit(1);
        }
        sg_state_lock(&node);
        struct softgpu_proc *p = &node.st->procs[sg_proc_claim(&node)];
        if (id == SOFTGPU_NONE) {
            p->opened = 1u << device;
        } else {
            p->mig_device = device;
            p->mig_instance = id;
            p->mig_compute = compute;
        }
        sg_state_unlock(&node);
        if (write(ready[1], "r", 1) != 1) {
            _exit(1);
        }
        for (;;) {
            pause();
        }
    }
    char byte;
    CHECK_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return pid;
}

void test_mig_users(void) {
    nvmlDevice_t d = gpu(0);
    nvmlGpuInstance_t gi;
    set_mode(d, 1);
    /* Whoever has the GPU open keeps it from being divided, not from being divided further. */
    pid_t watcher = hold(0, SOFTGPU_NONE, SOFTGPU_NONE);
    CHECK_EQ(create_at(d, P3G, 4, 4, &gi), NVML_ERROR_IN_USE);
    client_kill(watcher);
    nvmlGpuInstance_t half = must_create(d, P3G, 4, 4, 1);
    watcher = hold(0, SOFTGPU_NONE, SOFTGPU_NONE);
    nvmlGpuInstance_t one = must_create(d, P1G, 0, 1, 7);
    nvmlComputeInstance_t ci = whole_compute(one, 0);
    /* Who holds only the GPU instance lets the compute instance go. */
    pid_t holder = hold(0, 7, SOFTGPU_NONE);
    CHECK_EQ(nvmlComputeInstanceDestroy(ci), NVML_SUCCESS);
    CHECK_EQ(nvmlGpuInstanceDestroy(one), NVML_ERROR_IN_USE);
    CHECK_EQ(nvmlGpuInstanceDestroy(half), NVML_SUCCESS);
    client_kill(holder);
    CHECK_EQ(nvmlGpuInstanceDestroy(one), NVML_SUCCESS);
    CHECK_EQ(set_mode(d, 0), NVML_ERROR_IN_USE);
    client_kill(watcher);
    CHECK_EQ(set_mode(d, 0), NVML_SUCCESS);
}

void test_mig_forgets(void) {
    struct sg_node node = peek();
    nvmlGpuInstance_t gi;
    for (uint32_t i = 0; i < 2; i++) {
        set_mode(gpu(i), 1);
        sg_state_lock(&node);
        CHECK_EQ(sg_mig_reset(&node, i), 0);
        sg_state_unlock(&node);
        whole_compute(must_create(gpu(i), P2G, 0, 2, 3), 1);
    }
    /* The file is the kernel driver's memory: instances outlive every process. */
    CHECK_EQ(nvmlShutdown(), NVML_SUCCESS);
    CHECK_EQ(nvmlInit_v2(), NVML_SUCCESS);
    CHECK_EQ(nvmlDeviceGetGpuInstanceById(gpu(0), 3, &gi), NVML_SUCCESS);
    pid_t pid = client_start(&(struct client){.unit = unit_of(0, 3, 0), .bytes = 1 << 20});
    sg_state_lock(&node);
    CHECK(sg_mig_reset(&node, 0) != 0 && sg_mig_reboot(&node) != 0);
    CHECK_EQ(sg_mig_reset(&node, 1), 0);
    sg_state_unlock(&node);
    client_kill(pid);
    check_mode(gpu(1), 1, 1);
    CHECK_EQ(nvmlDeviceGetGpuInstanceById(gpu(1), 3, &gi), NVML_ERROR_NOT_FOUND);
    CHECK_EQ(nvmlDeviceGetGpuInstanceById(gpu(0), 3, &gi), NVML_SUCCESS);
    whole_compute(must_create(gpu(1), P2G, 0, 2, 3), 1);
    sg_state_lock(&node);
    CHECK_EQ(sg_mig_reboot(&node), 0);
    CHECK_EQ(node.st->header.boots, 1);
    for (uint32_t u = 2; u < SOFTGPU_MAX_UNITS; u++) {
        CHECK_EQ(node.st->units[u].state, SOFTGPU_SLOT_FREE);
    }
    sg_state_unlock(&node);
    sg_state_close(&node);
    check_mode(gpu(0), 0, 0); /* Hopper's mode was in the driver's memory */
    check_mode(gpu(1), 1, 1); /* Ampere's is on the board */
    CHECK_EQ(nvmlDeviceGetGpuInstanceById(gpu(1), 3, &gi), NVML_ERROR_NOT_FOUND);
}

static void arm(const struct softgpu_fault *f) {
    struct sg_node node = peek();
    node.st->faults[0] = *f;
    node.st->header.faults_armed = 1;
    node.st->faults[0].armed = 1;
    sg_state_close(&node);
}

void test_mig_faults(void) {
    nvmlDevice_t d = gpu(0);
    nvmlGpuInstance_t gi;
    nvmlComputeInstance_t ci;
    set_mode(d, 1);
    set_mode(gpu(1), 1);
    arm(&(struct softgpu_fault){.entry = "nvmlDeviceCreateGpuInstance",
                                .result = NVML_ERROR_IN_USE,
                                .times = 3,
                                .device = 1});
    for (int i = 0; i < 4; i++) {
        nvmlReturn_t want = i < 3 ? NVML_ERROR_IN_USE : NVML_SUCCESS;
        CHECK_EQ(nvmlDeviceCreateGpuInstance(d, P1G, &gi), want);
        CHECK_EQ(nvmlDeviceCreateGpuInstance(gpu(1), P1G, &gi), NVML_SUCCESS);
    }
    nvmlGpuInstance_t mine = must_create(d, P3G, 0, 4, 2);
    arm(&(struct softgpu_fault){.entry = "nvmlGpuInstanceCreateComputeInstance",
                                .result = NVML_ERROR_INSUFFICIENT_RESOURCES});
    CHECK_EQ(nvmlGpuInstanceCreateComputeInstance(mine, 2, &ci), NVML_ERROR_INSUFFICIENT_RESOURCES);
    CHECK_EQ(nvmlGpuInstanceCreateComputeInstance(mine, 2, &ci), NVML_SUCCESS);
    /* A late one: it says that it failed, and it is done. */
    arm(&(struct softgpu_fault){.entry = "nvmlComputeInstanceDestroy",
                                .result = NVML_ERROR_UNKNOWN,
                                .flags = SOFTGPU_FAULT_LATE});
    CHECK_EQ(nvmlComputeInstanceDestroy(ci), NVML_ERROR_UNKNOWN);
    CHECK_EQ(nvmlComputeInstanceDestroy(ci), NVML_ERROR_INVALID_ARGUMENT);
    arm(&(struct softgpu_fault){
        .entry = "nvml*", .result = NVML_ERROR_GPU_IS_LOST, .flags = SOFTGPU_FAULT_ALWAYS});
    nvmlGpuInstanceInfo_t info;
    CHECK_EQ(nvmlGpuInstanceGetInfo(mine, &info), NVML_ERROR_GPU_IS_LOST);
    unsigned current, pending;
    CHECK_EQ(nvmlDeviceGetMigMode(d, &current, &pending), NVML_ERROR_GPU_IS_LOST);
    /* Killed when the change is made: it is. */
    arm(&(struct softgpu_fault){.entry = "nvmlGpuInstanceDestroy",
                                .flags = SOFTGPU_FAULT_LATE | SOFTGPU_FAULT_KILL});
    pid_t pid = fork();
    if (pid == 0) {
        (void)nvmlGpuInstanceDestroy(mine);
        _exit(0);
    }
    int status = 0;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    CHECK_EQ(nvmlGpuInstanceGetInfo(mine, &info), NVML_ERROR_INVALID_ARGUMENT);
    struct sg_node node = peek();
    node.st->devices[0].lost = 1;
    sg_state_close(&node);
    CHECK_EQ(nvmlDeviceCreateGpuInstance(d, P1G, &gi), NVML_ERROR_GPU_IS_LOST);
}

static bool has_cap(const char *name) {
    char path[4096], file[4200];
    struct sg_node node = peek();
    bool found = sg_mig_caps_path(&node, path, sizeof path);
    sg_state_close(&node);
    snprintf(file, sizeof file, "%s/%s", path, name);
    return found && access(file, F_OK) == 0;
}

void test_mig_capabilities(void) {
    CHECK_EQ(sg_mig_minor(0, SOFTGPU_NONE, SOFTGPU_NONE), 1);
    CHECK_EQ(sg_mig_minor(0, 0, SOFTGPU_NONE), 3);
    CHECK_EQ(sg_mig_minor(0, 0, 0), 4);
    CHECK_EQ(sg_mig_minor(0, 1, SOFTGPU_NONE), 12);
    CHECK_EQ(sg_mig_minor(0, 1, 0), 13);
    nvmlDevice_t d = gpu(1);
    CHECK(!has_cap("dev"));
    set_mode(d, 1);
    CHECK(has_cap("dev/nvidia-caps/nvidia-cap1"));
    CHECK(has_cap("proc/driver/nvidia-caps/mig-minors"));
    nvmlGpuInstance_t gi = must_create(d, P3G, 4, 4, 1);
    nvmlComputeInstance_t ci = whole_compute(gi, 2);
    CHECK(has_cap("dev/nvidia-caps/nvidia-cap147"));
    CHECK(has_cap("dev/nvidia-caps/nvidia-cap148"));
    CHECK(has_cap("proc/driver/nvidia/capabilities/gpu1/mig/gi1/ci0/access"));
    CHECK_EQ(nvmlComputeInstanceDestroy(ci), NVML_SUCCESS);
    CHECK(!has_cap("dev/nvidia-caps/nvidia-cap148"));
    CHECK(!has_cap("proc/driver/nvidia/capabilities/gpu1/mig/gi1/ci0"));
    CHECK(has_cap("proc/driver/nvidia/capabilities/gpu1/mig/gi1/access"));
    /* Somebody died between a change and the folder. */
    struct sg_node node = peek();
    sg_state_lock(&node);
    sg_mig_caps_spoil(&node);
    node.st->devices[1].mig[1].state = SOFTGPU_SLOT_FREE;
    sg_state_unlock(&node);
    sg_state_close(&node);
    check_mode(d, 1, 1);
    CHECK(!has_cap("dev/nvidia-caps/nvidia-cap147"));
    CHECK(!has_cap("proc/driver/nvidia/capabilities/gpu1/mig/gi1"));
}

void test_mig_events(void) {
    enum { XID = 0x8, MIG_CHANGE = 0x100, CLOCK = 0x10 };
    nvmlDevice_t d = gpu(0);
    nvmlEventSet_t set = NULL;
    nvmlEventData_t event;
    unsigned long long types = 0;
    CHECK_EQ(nvmlDeviceGetSupportedEventTypes(d, &types), NVML_SUCCESS);
    CHECK_EQ(types, XID | MIG_CHANGE);
    CHECK_EQ(nvmlEventSetCreate(&set), NVML_SUCCESS);
    CHECK_EQ(nvmlDeviceRegisterEvents(d, CLOCK, set), NVML_ERROR_NOT_SUPPORTED);
    CHECK_EQ(nvmlDeviceRegisterEvents(d, types, set), NVML_SUCCESS);
    CHECK_EQ(nvmlDeviceRegisterEvents(d, types, (nvmlEventSet_t)(void *)&event),
             NVML_ERROR_INVALID_ARGUMENT);
    CHECK_EQ(nvmlEventSetWait_v2(set, &event, 1), NVML_ERROR_TIMEOUT);
    set_mode(gpu(1), 1); /* not watched */
    set_mode(d, 1);
    must_create(d, P3G, 4, 4, 1);
    CHECK_EQ(nvmlEventSetWait_v2(set, &event, 1000), NVML_SUCCESS);
    CHECK(event.device == d && event.eventType == MIG_CHANGE &&
          event.gpuInstanceId == NVML_NO_INSTANCE);
    CHECK_EQ(nvmlEventSetWait_v2(set, &event, 0), NVML_ERROR_TIMEOUT);
    struct sg_node node = peek();
    node.st->devices[0].lost = 1;
    CHECK_EQ(nvmlEventSetWait(set, &event, 1000), NVML_SUCCESS);
    CHECK(event.eventType == XID && event.eventData == 79);
    CHECK_EQ(nvmlEventSetWait(set, &event, 0), NVML_ERROR_TIMEOUT);
    node.st->devices[0].lost = 0;
    sg_state_close(&node);
    CHECK_EQ(nvmlEventSetFree(set), NVML_SUCCESS);
    CHECK_EQ(nvmlEventSetFree(set), NVML_ERROR_INVALID_ARGUMENT);
    CHECK_EQ(nvmlEventSetWait_v2(set, &event, 1000), NVML_ERROR_INVALID_ARGUMENT);
}

struct counts {
    unsigned all, maximal, plain;
    bool plain_only;
};

static void count_layout(void *arg, const struct sg_mig_place *places, uint32_t count,
                         bool maximal) {
    struct counts *n = arg;
    uint32_t sms = 0;
    n->all++;
    n->maximal += maximal;
    bool plain = true;
    for (uint32_t i = 0; i < count; i++) {
        plain = plain && strchr(places[i].profile->name, '+') == NULL &&
                places[i].profile->id != P1G_DOUBLE;
        sms += places[i].profile->sm_count;
    }
    n->plain += maximal && plain;
    CHECK(sms <= 132);
}

/* The plain profiles of a seven-slice board have nineteen layouts that nothing can be added to. */
void test_mig_layouts(void) {
    static const char *const seven[] = {"A100-40", "A100-80", "H100", "H200"};
    for (size_t i = 0; i < sizeof seven / sizeof seven[0]; i++) {
        struct counts n = {.all = 0};
        sg_mig_enumerate(softgpu_model_find(seven[i]), count_layout, &n);
        CHECK_EQ(n.plain, 19);
        CHECK(n.all > n.maximal && n.maximal > n.plain);
    }
}

/* Makes and destroys at random until it is killed. */
static void churn(unsigned device, unsigned seed) {
    static const unsigned profiles[] = {P7G, P4G, P3G, P2G, P1G_DOUBLE, P1G, P1G_ME};
    static const unsigned computes[] = {4, 3, 2, 1, 0, 0, 0};
    nvmlDevice_t d = gpu(device);
    for (unsigned i = 0;; i++) {
        unsigned k = (unsigned)rand_r(&seed) % 7;
        nvmlGpuInstance_t gi, list[8];
        nvmlComputeInstance_t ci, inside[8];
        unsigned n = 0, m = 0;
        if (nvmlDeviceCreateGpuInstance(d, profiles[k], &gi) == NVML_SUCCESS) {
            (void)nvmlGpuInstanceCreateComputeInstance(gi, computes[k], &ci);
        }
        k = (unsigned)rand_r(&seed) % 7;
        (void)nvmlDeviceGetGpuInstances(d, profiles[k], list, &n);
        for (unsigned j = 0; j < n; j++) {
            if (nvmlGpuInstanceGetComputeInstances(list[j], computes[k], inside, &m) ==
                    NVML_SUCCESS &&
                m > 0) {
                (void)nvmlComputeInstanceDestroy(inside[0]);
            }
            (void)nvmlGpuInstanceDestroy(list[j]);
        }
    }
}

/* What must be true of a device whatever happened. */
static void check_sound(struct sg_node *node, uint32_t device) {
    struct softgpu_state *st = node->st;
    struct sg_mig_place places[SOFTGPU_MIG_INSTANCES];
    uint32_t computes = 0, units = 0;
    uint32_t count = sg_mig_places(st, device, places);
    CHECK(sg_mig_legal(sg_mig_model(st, device), places, count));
    CHECK_EQ(st->devices[device].mig_changes % 2, 0);
    for (uint32_t i = 0; i < SOFTGPU_MIG_IDS; i++) {
        for (uint32_t c = 0; c < SOFTGPU_MIG_INSTANCES; c++) {
            const struct softgpu_mig_instance *g = &st->devices[device].mig[i];
            bool there = g->state == SOFTGPU_SLOT_USED && g->compute[c].state == SOFTGPU_SLOT_USED;
            computes += there;
            const struct softgpu_unit *u = &st->units[g->compute[c].unit];
            CHECK(!there || (u->state == SOFTGPU_SLOT_USED && u->instance == i && u->compute == c));
        }
    }
    for (uint32_t u = 0; u < SOFTGPU_MAX_UNITS; u++) {
        units += st->units[u].state == SOFTGPU_SLOT_USED && st->units[u].device == device;
    }
    CHECK_EQ(units, computes + 1);
}

/* The nodes of the capabilities are those of the instances, and two. */
static void check_nodes(struct sg_node *node) {
    char path[4096], name[4200];
    unsigned got = 0, want = 2;
    CHECK(sg_mig_caps_path(node, path, sizeof path));
    snprintf(name, sizeof name, "%s/dev/nvidia-caps", path);
    DIR *dir = opendir(name);
    CHECK(dir != NULL);
    for (const struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
        got += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    }
    closedir(dir);
    for (uint32_t i = 0; i < SOFTGPU_MIG_IDS; i++) {
        const struct softgpu_mig_instance *g = &node->st->devices[0].mig[i];
        bool there = g->state == SOFTGPU_SLOT_USED;
        want += there;
        snprintf(name, sizeof name, "%s/proc/driver/nvidia/capabilities/gpu0/mig/gi%u", path, i);
        CHECK_EQ(access(name, F_OK) == 0, there);
        for (uint32_t c = 0; c < SOFTGPU_MIG_INSTANCES; c++) {
            want += there && g->compute[c].state == SOFTGPU_SLOT_USED;
        }
    }
    CHECK_EQ(got, want);
}

void test_mig_permission(void) {
    enum { NOBODY = 65534 };
    nvmlDevice_t d = gpu(0);
    nvmlGpuInstance_t gi, list[8];
    nvmlReturn_t activation;
    if (geteuid() != 0) {
        CHECK_EQ(nvmlDeviceSetMigMode(d, 1, &activation), NVML_ERROR_NO_PERMISSION);
        return;
    }
    set_mode(d, 1);
    nvmlGpuInstance_t made = must_create(d, P3G, 4, 4, 1);
    char path[4096], config[4200];
    struct sg_node node = peek();
    CHECK(sg_mig_caps_path(&node, path, sizeof path));
    sg_state_close(&node);
    snprintf(config, sizeof config, "%s/dev/nvidia-caps/nvidia-cap1", path);
    unsigned n = 0;
    CHECK_EQ(seteuid(NOBODY), 0);
    CHECK_EQ(nvmlDeviceSetMigMode(d, 0, &activation), NVML_ERROR_NO_PERMISSION);
    CHECK_EQ(create_at(d, P1G, 0, 1, &gi), NVML_ERROR_NO_PERMISSION);
    CHECK_EQ(nvmlGpuInstanceDestroy(made), NVML_ERROR_NO_PERMISSION);
    CHECK_EQ(nvmlDeviceGetGpuInstances(d, P3G, list, &n), NVML_SUCCESS); /* "monitor" is for all */
    CHECK_EQ(n, 1);
    CHECK_EQ(seteuid(0), 0);
    /* Whoever is given the capability may; root finds the folder marked, and makes it right. */
    CHECK_EQ(chmod(config, 0444), 0);
    CHECK_EQ(seteuid(NOBODY), 0);
    CHECK_EQ(create_at(d, P1G, 0, 1, &gi), NVML_SUCCESS);
    CHECK_EQ(seteuid(0), 0);
    CHECK(!has_cap("dev/nvidia-caps/nvidia-cap66"));
    check_mode(d, 1, 1);
    CHECK(has_cap("dev/nvidia-caps/nvidia-cap66"));
}

void test_mig_killed(void) {
    enum { ROUNDS = 40, US_MOST = 12000 };
    unsigned seed = 20261201;
    set_mode(gpu(0), 1);
    for (int i = 0; i < ROUNDS; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            churn(0, seed + (unsigned)i);
        }
        usleep((unsigned)rand_r(&seed) % US_MOST);
        client_kill(pid);
        unsigned current, pending;
        CHECK_EQ(nvmlDeviceGetMigMode(gpu(0), &current, &pending), NVML_SUCCESS);
        struct sg_node node = peek();
        sg_state_lock(&node);
        check_sound(&node, 0);
        CHECK_EQ(node.st->header.caps_stale, 0);
        check_nodes(&node);
        sg_state_unlock(&node);
        sg_state_close(&node);
    }
}

static void *change(void *arg) {
    nvmlDevice_t d = gpu(*(unsigned *)arg);
    for (int i = 0; i < 30; i++) {
        nvmlGpuInstance_t gi;
        nvmlComputeInstance_t ci;
        CHECK_EQ(nvmlDeviceCreateGpuInstance(d, P2G, &gi), NVML_SUCCESS);
        CHECK_EQ(nvmlGpuInstanceCreateComputeInstance(gi, 1, &ci), NVML_SUCCESS);
        nvmlDevice_t mig = mig_device_of(ci);
        nvmlMemory_t memory;
        CHECK_EQ(nvmlDeviceGetMemoryInfo(mig, &memory), NVML_SUCCESS);
        CHECK_EQ(nvmlComputeInstanceDestroy(ci), NVML_SUCCESS);
        CHECK_EQ(nvmlGpuInstanceDestroy(gi), NVML_SUCCESS);
    }
    return NULL;
}

void test_mig_threads(void) {
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    unsigned device[THREADS] = {0, 1, 0, 1};
    set_mode(gpu(0), 1);
    set_mode(gpu(1), 1);
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, change, &device[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    }
}
