/* The software NVML, called as a client would. */
#define _GNU_SOURCE
#include <ftw.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "client.h"
#include "internal.h"
#include "mig_test.h"
#include "state.h"

_Atomic int check_failures;

static char state_path[] = "/tmp/softgpu-nvml-test-XXXXXX";

static int remove_entry(const char *path, const struct stat *sb, int kind, struct FTW *at) {
    (void)sb;
    (void)kind;
    (void)at;
    return remove(path);
}

static void remove_capabilities(void) {
    char path[sizeof state_path + 8];
    snprintf(path, sizeof path, "%s.caps", state_path);
    nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

/* Every test has a node of its own. */
static void with_node(const char *gpus, void (*test)(void)) {
    strcpy(state_path + sizeof state_path - 7, "XXXXXX");
    int fd = mkstemp(state_path);
    if (fd < 0) {
        perror("mkstemp");
        exit(1);
    }
    close(fd);
    setenv("SOFTGPU_STATE", state_path, 1);
    setenv("SOFTGPU_GPUS", gpus, 1);
    CHECK_EQ(nvmlInit_v2(), NVML_SUCCESS);
    test();
    CHECK_EQ(nvmlShutdown(), NVML_SUCCESS);
    remove_capabilities();
    unlink(state_path);
}

static nvmlDevice_t device(unsigned index) {
    nvmlDevice_t d = NULL;
    CHECK_EQ(nvmlDeviceGetHandleByIndex_v2(index, &d), NVML_SUCCESS);
    return d;
}

static void test_before_init(void) {
    unsigned n;
    char text[8];
    CHECK_EQ(nvmlDeviceGetCount_v2(&n), NVML_ERROR_UNINITIALIZED);
    CHECK_EQ(nvmlSystemGetDriverVersion(text, sizeof text), NVML_ERROR_UNINITIALIZED);
    CHECK_EQ(nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
}

static void test_unusable_state(void) {
    setenv("SOFTGPU_STATE", "/nonexistent/state", 1);
    CHECK_EQ(nvmlInit_v2(), NVML_ERROR_DRIVER_NOT_LOADED);

    /* A file that is something else stays as it is. */
    char path[] = "/tmp/softgpu-nvml-test-XXXXXX";
    int fd = mkstemp(path);
    CHECK(fd >= 0 && write(fd, "notes", 5) == 5);
    setenv("SOFTGPU_STATE", path, 1);
    CHECK_EQ(nvmlInit_v2(), NVML_ERROR_DRIVER_NOT_LOADED);
    CHECK_EQ(lseek(fd, 0, SEEK_END), 5);
    close(fd);
    unlink(path);

    setenv("SOFTGPU_STATE", "/tmp/softgpu-nvml-test-unknown-model", 1);
    setenv("SOFTGPU_GPUS", "Voodoo2", 1);
    CHECK_EQ(nvmlInit_v2(), NVML_ERROR_DRIVER_NOT_LOADED);
    unlink("/tmp/softgpu-nvml-test-unknown-model");
}

static void test_inventory(void) {
    unsigned n = 0;
    CHECK_EQ(nvmlDeviceGetCount_v2(&n), NVML_SUCCESS);
    CHECK_EQ(n, 3);
    nvmlDevice_t d = device(2), same = NULL;
    CHECK_EQ(nvmlDeviceGetHandleByIndex_v2(3, &same), NVML_ERROR_INVALID_ARGUMENT);

    char name[96], uuid[96], serial[30], tight[4];
    CHECK_EQ(nvmlDeviceGetName(d, name, sizeof name), NVML_SUCCESS);
    CHECK(strcmp(name, "NVIDIA A100-SXM4-40GB") == 0);
    CHECK_EQ(nvmlDeviceGetName(d, tight, sizeof tight), NVML_ERROR_INSUFFICIENT_SIZE);

    CHECK_EQ(nvmlDeviceGetUUID(d, uuid, sizeof uuid), NVML_SUCCESS);
    CHECK(strlen(uuid) == 40 && strncmp(uuid, "GPU-", 4) == 0);
    CHECK_EQ(nvmlDeviceGetHandleByUUID(uuid, &same), NVML_SUCCESS);
    CHECK(same == d);
    CHECK_EQ(nvmlDeviceGetHandleByUUID("GPU-0", &same), NVML_ERROR_NOT_FOUND);

    CHECK_EQ(nvmlDeviceGetSerial(d, serial, sizeof serial), NVML_SUCCESS);
    CHECK_EQ(nvmlDeviceGetHandleBySerial(serial, &same), NVML_SUCCESS);
    CHECK(same == d);

    nvmlPciInfo_t pci;
    CHECK_EQ(nvmlDeviceGetPciInfo_v3(d, &pci), NVML_SUCCESS);
    CHECK_EQ(pci.pciDeviceId, 0x20b010de);
    CHECK_EQ(nvmlDeviceGetHandleByPciBusId_v2(pci.busId, &same), NVML_SUCCESS);
    CHECK(same == d);
    CHECK_EQ(nvmlDeviceGetHandleByPciBusId_v2(pci.busIdLegacy, &same), NVML_SUCCESS);
    CHECK(same == d);
    CHECK_EQ(nvmlDeviceGetHandleByPciBusId_v2("none", &same), NVML_ERROR_NOT_FOUND);

    int major = 0, minor = 0;
    unsigned architecture = 0;
    CHECK_EQ(nvmlDeviceGetCudaComputeCapability(d, &major, &minor), NVML_SUCCESS);
    CHECK_EQ(major * 10 + minor, 80);
    CHECK_EQ(nvmlDeviceGetArchitecture(d, &architecture), NVML_SUCCESS);
    CHECK_EQ(architecture, NVML_ARCH_AMPERE);

    CHECK_EQ(nvmlDeviceGetIndex((nvmlDevice_t)(void *)&n, &n), NVML_ERROR_INVALID_ARGUMENT);
    CHECK_EQ(nvmlDeviceGetIndex(d, NULL), NVML_ERROR_INVALID_ARGUMENT);
}

static void test_memory(void) {
    nvmlDevice_t d = device(0);
    enum { BYTES = 64 << 20 };
    pid_t pid = client_start(&(struct client){.unit = 0, .bytes = BYTES});
    nvmlMemory_t v1;
    nvmlMemory_v2_t v2 = {.version = NVML_VERSION_OF(nvmlMemory_v2_t, 2)};
    CHECK_EQ(nvmlDeviceGetMemoryInfo(d, &v1), NVML_SUCCESS);
    CHECK_EQ(nvmlDeviceGetMemoryInfo_v2(d, &v2), NVML_SUCCESS);
    CHECK_EQ(v2.used, BYTES);
    CHECK_EQ(v1.used, v2.used + v2.reserved);
    CHECK_EQ(v1.total, v1.free + v1.used);
    CHECK_EQ(v2.total, v2.free + v2.used + v2.reserved);
    v2.version = 7;
    CHECK_EQ(nvmlDeviceGetMemoryInfo_v2(d, &v2), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    client_kill(pid);
    CHECK_EQ(nvmlDeviceGetMemoryInfo(d, &v1), NVML_SUCCESS);
    CHECK_EQ(v1.used, v2.reserved);
}

static void test_processes(void) {
    nvmlDevice_t d = device(0);
    pid_t plain = client_start(&(struct client){.unit = 0, .bytes = 1 << 20});
    pid_t served = client_start(&(struct client){.unit = 0, .bytes = 2 << 20, .mps = true});
    pid_t elsewhere = client_start(&(struct client){.unit = 1, .bytes = 4 << 20});

    unsigned n = 0;
    CHECK_EQ(nvmlDeviceGetComputeRunningProcesses_v3(d, &n, NULL), NVML_ERROR_INSUFFICIENT_SIZE);
    CHECK_EQ(n, 1);
    nvmlProcessInfo_t list[4];
    n = 4;
    CHECK_EQ(nvmlDeviceGetComputeRunningProcesses_v3(d, &n, list), NVML_SUCCESS);
    CHECK_EQ(n, 1);
    CHECK_EQ(list[0].pid, plain);
    CHECK_EQ(list[0].usedGpuMemory, 1 << 20);
    CHECK_EQ(list[0].gpuInstanceId, NVML_NO_INSTANCE);
    n = 4;
    CHECK_EQ(nvmlDeviceGetMPSComputeRunningProcesses_v3(d, &n, list), NVML_SUCCESS);
    CHECK_EQ(n, 1);
    CHECK_EQ(list[0].pid, served);
    n = 4;
    CHECK_EQ(nvmlDeviceGetGraphicsRunningProcesses_v3(d, &n, list), NVML_SUCCESS);
    CHECK_EQ(n, 0);

    nvmlProcessInfo_v1_t old[4];
    n = 4;
    CHECK_EQ(nvmlDeviceGetComputeRunningProcesses(d, &n, old), NVML_SUCCESS);
    CHECK_EQ(n, 1);
    CHECK_EQ(old[0].pid, plain);

    nvmlProcessDetail_t detail[4];
    nvmlProcessDetailList_t all = {.version = NVML_VERSION_OF(nvmlProcessDetailList_t, 1),
                                   .mode = NVML_PROCESS_MODE_ALL,
                                   .numProcArrayEntries = 4,
                                   .procArray = detail};
    CHECK_EQ(nvmlDeviceGetRunningProcessDetailList(d, &all), NVML_SUCCESS);
    CHECK_EQ(all.numProcArrayEntries, 2);

    char name[64];
    CHECK_EQ(nvmlSystemGetProcessName((unsigned)plain, name, sizeof name), NVML_SUCCESS);
    CHECK(strstr(name, "nvml-test") != NULL);

    client_kill(plain);
    client_kill(served);
    client_kill(elsewhere);
    n = 4;
    CHECK_EQ(nvmlDeviceGetComputeRunningProcesses_v3(d, &n, list), NVML_SUCCESS);
    CHECK_EQ(n, 0);
}

/* Moves the node's clock on, so that a test need not wait. */
static void pass_time(int64_t ns) {
    struct sg_node node;
    CHECK_EQ(sg_state_open(&node, NULL, NULL), 0);
    sg_state_lock(&node);
    node.st->header.epoch_ns -= (uint64_t)ns;
    sg_state_unlock(&node);
    sg_state_close(&node);
}

static void test_utilization(void) {
    enum { MS = 1000000 };
    nvmlDevice_t d = device(0);
    nvmlUtilization_t rates;
    pass_time(2000LL * MS);
    CHECK_EQ(nvmlDeviceGetUtilizationRates(d, &rates), NVML_SUCCESS);
    CHECK_EQ(rates.gpu, 0);

    pid_t pid = client_start(&(struct client){.unit = 0, .kernel_ns = 10000LL * MS});
    pass_time(1000LL * MS);
    CHECK_EQ(nvmlDeviceGetUtilizationRates(d, &rates), NVML_SUCCESS);
    CHECK_EQ(rates.gpu, 100);
    CHECK(rates.memory == 50); /* the kernel's share of the memory bandwidth */

    unsigned watts = 0, limit = 0, celsius = 0;
    CHECK_EQ(nvmlDeviceGetPowerUsage(d, &watts), NVML_SUCCESS);
    CHECK_EQ(nvmlDeviceGetEnforcedPowerLimit(d, &limit), NVML_SUCCESS);
    CHECK_EQ(nvmlDeviceGetTemperature(d, 0, &celsius), NVML_SUCCESS);
    CHECK(watts > limit / 2 && watts <= limit);
    CHECK(celsius > 50 && celsius < 90);

    unsigned n = 0;
    CHECK_EQ(nvmlDeviceGetProcessUtilization(d, NULL, &n, 0), NVML_ERROR_INSUFFICIENT_SIZE);
    CHECK_EQ(n, 1);
    nvmlProcessUtilizationSample_t sample[2];
    n = 2;
    CHECK_EQ(nvmlDeviceGetProcessUtilization(d, sample, &n, 0), NVML_SUCCESS);
    CHECK_EQ(sample[0].pid, pid);
    CHECK(sample[0].smUtil >= 99);
    CHECK_EQ(nvmlDeviceGetProcessUtilization(d, sample, &n, ~0ULL), NVML_ERROR_NOT_FOUND);

    client_kill(pid);
    pass_time(500LL * MS);
    CHECK_EQ(nvmlDeviceGetUtilizationRates(d, &rates), NVML_SUCCESS);
    CHECK(rates.gpu < 100); /* the dead kernel may have run until it was missed just now */
    pass_time(500LL * MS);
    CHECK_EQ(nvmlDeviceGetUtilizationRates(d, &rates), NVML_SUCCESS);
    CHECK_EQ(rates.gpu, 0);
    n = 2;
    CHECK_EQ(nvmlDeviceGetProcessUtilization(d, sample, &n, 0), NVML_ERROR_NOT_FOUND);
}

static void test_mig(void) {
    nvmlDevice_t d = device(0);
    unsigned current = 9, pending = 9, n = 0;
    CHECK_EQ(nvmlDeviceGetMigMode(d, &current, &pending), NVML_SUCCESS);
    CHECK_EQ(current + pending, 0);
    CHECK_EQ(nvmlDeviceGetMaxMigDeviceCount(d, &n), NVML_SUCCESS);
    CHECK_EQ(n, 0);

    /* Counting upwards meets every profile, and "invalid" only past the last number. */
    unsigned profiles = 0;
    nvmlReturn_t err = NVML_SUCCESS;
    for (unsigned i = 0; err != NVML_ERROR_INVALID_ARGUMENT; i++) {
        nvmlGpuInstanceProfileInfo_t info;
        err = nvmlDeviceGetGpuInstanceProfileInfo(d, i, &info);
        profiles += err == NVML_SUCCESS;
    }
    CHECK_EQ(profiles, 7);

    nvmlGpuInstanceProfileInfo_v3_t v3 = {.version =
                                              NVML_VERSION_OF(nvmlGpuInstanceProfileInfo_v3_t, 3)};
    enum { THREE_SLICES = 2, THREE_SLICES_ID = 9 };
    CHECK_EQ(nvmlDeviceGetGpuInstanceProfileInfoV(d, THREE_SLICES, &v3), NVML_SUCCESS);
    CHECK(strcmp(v3.name, "MIG 3g.40gb") == 0);
    CHECK_EQ(v3.id, THREE_SLICES_ID);
    CHECK_EQ(v3.multiprocessorCount, 60);
    nvmlGpuInstanceProfileInfo_v2_t v2 = {.version =
                                              NVML_VERSION_OF(nvmlGpuInstanceProfileInfo_v2_t, 2)};
    CHECK_EQ(nvmlDeviceGetGpuInstanceProfileInfoByIdV(d, THREE_SLICES_ID, &v2), NVML_SUCCESS);
    CHECK_EQ(v2.memorySizeMB, 40448);
    v2.version = 1;
    CHECK_EQ(nvmlDeviceGetGpuInstanceProfileInfoV(d, THREE_SLICES, &v2),
             NVML_ERROR_ARGUMENT_VERSION_MISMATCH);

    nvmlGpuInstancePlacement_t places[8];
    CHECK_EQ(nvmlDeviceGetGpuInstancePossiblePlacements_v2(d, THREE_SLICES_ID, NULL, &n),
             NVML_SUCCESS);
    CHECK_EQ(n, 2);
    CHECK_EQ(nvmlDeviceGetGpuInstancePossiblePlacements_v2(d, THREE_SLICES_ID, places, &n),
             NVML_SUCCESS);
    CHECK_EQ(places[1].start, 4);
    CHECK_EQ(places[1].size, 4);
    n = 1;
    CHECK_EQ(nvmlDeviceGetGpuInstancePossiblePlacements_v2(d, THREE_SLICES_ID, places, &n),
             NVML_ERROR_INSUFFICIENT_SIZE);

    nvmlDevice_t mig = NULL;
    CHECK_EQ(nvmlDeviceGetMigDeviceHandleByIndex(d, 0, &mig), NVML_ERROR_NOT_SUPPORTED);
    unsigned is_mig = 9;
    CHECK_EQ(nvmlDeviceIsMigDeviceHandle(d, &is_mig), NVML_SUCCESS);
    CHECK_EQ(is_mig, 0);
}

/* Declared as its stub is; the real one takes parameters. */
nvmlReturn_t nvmlGpmSampleGet(void);

static void test_stub(void) {
    CHECK_EQ(nvmlGpmSampleGet(), NVML_ERROR_NOT_SUPPORTED);
    CHECK_EQ(nvmlGpmSampleGet(), NVML_ERROR_NOT_SUPPORTED);
    struct sg_node node;
    CHECK_EQ(sg_state_open(&node, NULL, NULL), 0);
    CHECK(strcmp(node.st->stubs[0].name, "nvmlGpmSampleGet") == 0);
    CHECK_EQ(node.st->stubs[0].calls, 2);
    sg_state_close(&node);
}

static void test_lost_device(void) {
    struct sg_node node;
    CHECK_EQ(sg_state_open(&node, NULL, NULL), 0);
    node.st->devices[1].lost = 1;
    sg_state_close(&node);
    unsigned n;
    nvmlMemory_t memory;
    CHECK_EQ(nvmlDeviceGetCount_v2(&n), NVML_SUCCESS);
    CHECK_EQ(nvmlDeviceGetMemoryInfo(device(1), &memory), NVML_ERROR_GPU_IS_LOST);
    CHECK_EQ(nvmlDeviceGetMemoryInfo(device(0), &memory), NVML_SUCCESS);
}

static void test_fields(void) {
    enum { RESETLESS = 184, POWER = 186, UNKNOWN = 9999 };
    nvmlFieldValue_t f[3] = {{.fieldId = RESETLESS}, {.fieldId = POWER}, {.fieldId = UNKNOWN}};
    CHECK_EQ(nvmlDeviceGetFieldValues(device(0), 3, f), NVML_SUCCESS);
    CHECK_EQ(f[0].value.uiVal, 1);
    CHECK(f[1].nvmlReturn == NVML_SUCCESS && f[1].value.uiVal > 0);
    CHECK_EQ(f[2].nvmlReturn, NVML_ERROR_NOT_SUPPORTED);
    CHECK_EQ(nvmlDeviceGetFieldValues(device(0), 0, f), NVML_ERROR_INVALID_ARGUMENT);
}

static void test_compute_mode(void) {
    enum { EXCLUSIVE = 3, NONSENSE = 17 };
    nvmlDevice_t d = device(0);
    unsigned mode = 9;
    nvmlReturn_t err = nvmlDeviceSetComputeMode(d, EXCLUSIVE);
    CHECK_EQ(err, geteuid() == 0 ? NVML_SUCCESS : NVML_ERROR_NO_PERMISSION);
    CHECK_EQ(nvmlDeviceGetComputeMode(d, &mode), NVML_SUCCESS);
    CHECK_EQ(mode, err == NVML_SUCCESS ? EXCLUSIVE : 0);
    CHECK_EQ(nvmlDeviceSetComputeMode(d, NONSENSE), NVML_ERROR_INVALID_ARGUMENT);
    CHECK_EQ(nvmlDeviceGetVirtualizationMode(d, &mode), NVML_SUCCESS);
    CHECK_EQ(mode, 0);
}

static void test_init_counts(void) {
    CHECK_EQ(nvmlInit_v2(), NVML_SUCCESS);
    CHECK_EQ(nvmlShutdown(), NVML_SUCCESS);
    unsigned n;
    CHECK_EQ(nvmlDeviceGetCount_v2(&n), NVML_SUCCESS); /* with_node's own still counts */
    CHECK(strcmp(nvmlErrorString(NVML_ERROR_NOT_FOUND), "Not Found") == 0);
}

/* Monitors ask from many threads, and some of them end while others are at it. */
static void *ask(void *unused) {
    enum { ROUNDS = 50 };
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_EQ(nvmlInit_v2(), NVML_SUCCESS);
        nvmlDevice_t d = device(0);
        nvmlUtilization_t rates;
        nvmlProcessInfo_t list[4];
        nvmlProcessUtilizationSample_t sample[4];
        unsigned n = 4;
        CHECK_EQ(nvmlDeviceGetUtilizationRates(d, &rates), NVML_SUCCESS);
        CHECK_EQ(nvmlDeviceGetComputeRunningProcesses_v3(d, &n, list), NVML_SUCCESS);
        CHECK_EQ(n, 1);
        n = 4;
        CHECK_EQ(nvmlDeviceGetProcessUtilization(d, sample, &n, 0), NVML_SUCCESS);
        CHECK_EQ(nvmlShutdown(), NVML_SUCCESS);
    }
    return unused;
}

static void test_threads(void) {
    enum { THREADS = 4 };
    pid_t pid = client_start(&(struct client){.unit = 0, .bytes = 1 << 20});
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, ask, NULL), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    }
    client_kill(pid);
}

int main(void) {
    test_before_init();
    test_unusable_state();
    with_node("2xH100,A100-40", test_inventory);
    with_node("H100", test_memory);
    with_node("H100,A30", test_processes);
    with_node("H100", test_utilization);
    with_node("H100-80", test_mig);
    with_node("H100", test_stub);
    with_node("2xB200", test_lost_device);
    with_node("H200", test_fields);
    with_node("H100", test_compute_mode);
    with_node("H100", test_init_counts);
    with_node("H100", test_threads);
    with_node("H100,A100-40", test_mig_mode);
    with_node("H100,A100-40", test_mig_busy);
    with_node("H100", test_mig_instances);
    with_node("A100-40,A30,RTX-PRO-6000", test_mig_rules);
    with_node("H100", test_mig_compute);
    with_node("H100", test_mig_devices);
    with_node("H100", test_mig_users);
    with_node("H100,A100-40", test_mig_forgets);
    with_node("2xH100", test_mig_faults);
    with_node("A100-40,H100", test_mig_capabilities);
    with_node("H100", test_mig_permission);
    with_node("2xH100", test_mig_events);
    with_node("H100", test_mig_layouts);
    with_node("H100", test_mig_killed);
    with_node("2xH100", test_mig_threads);
    if (check_failures == 0) {
        printf("nvml: 28 tests passed\n");
    }
    return check_failures == 0 ? 0 : 1;
}
