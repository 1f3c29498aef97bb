/* MIG beside others: who keeps what from changing, who may change it, what is forgotten, what goes wrong. */
#define _GNU_SOURCE
#include "mig_test.h"

#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "client.h"
#include "mig_client.h"

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
    nvmlGpuInstanceInfo_t info;
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
    /* A call is counted once, whatever it does inside. */
    char uuid[96];
    nvmlDevice_t same;
    nvmlReturn_t third[] = {NVML_SUCCESS, NVML_SUCCESS, NVML_ERROR_UNKNOWN, NVML_SUCCESS};
    CHECK_EQ(nvmlDeviceGetUUID(gpu(1), uuid, sizeof uuid), NVML_SUCCESS);
    arm(&(struct softgpu_fault){.entry = "nvml*", .result = NVML_ERROR_UNKNOWN, .after = 2});
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(nvmlDeviceGetHandleByUUID(uuid, &same), third[i]);
    }
    arm(&(struct softgpu_fault){.entry = "nvml*", .result = NVML_ERROR_UNKNOWN, .after = 1});
    CHECK_EQ(create_at(d, P3G, 4, 2, &gi), NVML_ERROR_INVALID_ARGUMENT);
    CHECK_EQ(create_at(d, P3G, 4, 2, &gi), NVML_ERROR_UNKNOWN);
    /* A slow one; nobody else is held up by it. */
    arm(&(struct softgpu_fault){.entry = "nvmlGpuInstanceGetInfo", .delay_ns = 30000000});
    uint64_t began = sg_monotonic_ns();
    CHECK_EQ(nvmlGpuInstanceGetInfo(mine, &info), NVML_SUCCESS);
    CHECK(sg_monotonic_ns() - began >= 30000000);
    arm(&(struct softgpu_fault){
        .entry = "nvml*", .result = NVML_ERROR_GPU_IS_LOST, .flags = SOFTGPU_FAULT_ALWAYS});
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
