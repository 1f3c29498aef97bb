/* MIG, as a client of NVML sees it: modes, instances, devices. */
#define _GNU_SOURCE
#include "mig_test.h"

#include <string.h>
#include <unistd.h>

#include "check.h"
#include "client.h"
#include "mig_client.h"

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
