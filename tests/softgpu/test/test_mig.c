/* MIG as programs of CUDA see it: what is visible, what it has, and what they keep from changing. */
#define _GNU_SOURCE
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "api.h"
#include "check.h"
#include "mig.h"

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device);
CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device);

/* Profile ids, of GPU instances and of compute instances. */
enum { P3G = 9, P2G = 14, P1G = 19, C1 = 0, C2 = 1, C3 = 2 };

/* What a child answers that found all as it should be. */
enum { FOUND = 42 };

static struct sg_node node;

static void format_uuid(char out[48], const uint8_t *b) {
    char *to = out + sprintf(out, "MIG-");
    for (int i = 0; i < 16; i++) {
        bool dash = i == 4 || i == 6 || i == 8 || i == 10;
        to += sprintf(to, dash ? "-%02x" : "%02x", b[i]);
    }
}

/* An instance of GPU 0, with a compute instance, and what CUDA_VISIBLE_DEVICES calls it. */
static uint32_t make(uint32_t profile, uint32_t start, uint32_t compute_profile, char uuid[48]) {
    uint32_t id = 99;
    uint32_t compute = 99;
    sg_state_lock(&node);
    OK(sg_mig_create(&node, 0, profile, start, &id));
    OK(sg_mig_create_compute(&node, 0, id, compute_profile, SG_MIG_ANYWHERE, &compute));
    format_uuid(uuid, node.st->devices[0].mig[id].compute[compute].uuid);
    sg_state_unlock(&node);
    return id;
}

static int destroy_compute(uint32_t id, uint32_t compute) {
    sg_state_lock(&node);
    int rc = sg_mig_destroy_compute(&node, 0, id, compute);
    sg_state_unlock(&node);
    return rc;
}

static int destroy(uint32_t id) {
    sg_state_lock(&node);
    int rc = sg_mig_destroy(&node, 0, id);
    sg_state_unlock(&node);
    return rc;
}

static int set_mode(uint32_t device, uint32_t mode) {
    enum sg_mig_activation activation = SG_MIG_RESET;
    sg_state_lock(&node);
    OK(sg_mig_set_mode(&node, device, mode, &activation));
    sg_state_unlock(&node);
    return (int)activation;
}

/* What a program finds with this list; NULL is none. Its findings are its exit status. */
static int finds(const char *visible, int (*what)(void)) {
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        if (visible == NULL) {
            unsetenv("CUDA_VISIBLE_DEVICES");
        } else {
            setenv("CUDA_VISIBLE_DEVICES", visible, 1);
        }
        int answer = what();
        _exit(check_failures == 0 ? answer : 255);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* How many devices, and 100 more where the first is a MIG device; 200: no device. */
static int devices(void) {
    int count = 0;
    char name[128];
    CUresult rc = cuInit(0);
    if (rc == CUDA_ERROR_NO_DEVICE) {
        return 200;
    }
    OK(rc);
    OK(cuDeviceGetCount(&count));
    OK(cuDeviceGetName(name, sizeof(name), 0));
    return count + (strstr(name, " MIG ") != NULL ? 100 : 0);
}

static void a_divided_gpu_is_its_instances(void) {
    char three[48];
    char one[48];
    char list[160];
    CHECK_EQ(finds(NULL, devices), 2);
    CHECK_EQ(set_mode(0, 1), SG_MIG_ACTIVE);
    CHECK_EQ(finds("0", devices), 200); /* on, and no instance: nothing can be used */
    CHECK_EQ(finds(NULL, devices), 1);
    CHECK_EQ(finds("1,0", devices), 1);
    CHECK_EQ(finds("0,1", devices), 200);

    uint32_t id3 = make(P3G, 4, C3, three);
    uint32_t id1 = make(P1G, 0, C1, one);
    CHECK_EQ(id3, 1);
    CHECK_EQ(finds(three, devices), 101);
    CHECK_EQ(finds("0", devices), 101); /* the first of it */
    CHECK_EQ(finds(NULL, devices), 1);  /* the GPU that is whole */
    snprintf(list, sizeof(list), "%s,%s,1", one, three);
    CHECK_EQ(finds(list, devices), 101); /* one MIG device per process */
    snprintf(list, sizeof(list), "1,%s", three);
    CHECK_EQ(finds(list, devices), 1);
    CHECK_EQ(finds("MIG-00000000-0000-0000-0000-000000000000", devices), 200);
    const uint8_t *g = node.st->devices[0].uuid;
    snprintf(list, sizeof(list), "MIG-GPU-%02x%02x%02x%02x-%02x%02x/%u/0", g[0], g[1], g[2], g[3],
             g[4], g[5], id3);
    CHECK_EQ(finds(list, devices), 101);

    OK(destroy_compute(id3, 0));
    CHECK_EQ(finds(three, devices), 200);
    OK(destroy(id3));
    OK(destroy_compute(id1, 0));
    OK(destroy(id1));
}

/* A 3g.40gb of an H100. */
static int look_at_three(void) {
    int value = 0;
    size_t bytes = 0;
    char name[128];
    CUuuid old;
    CUuuid own;
    CUcontext ctx;
    CUdeviceptr p;
    OK(cuInit(0));
    OK(cuDeviceGetName(name, sizeof(name), 0));
    CHECK(strcmp(name, "NVIDIA H100 80GB HBM3 MIG 3g.40gb") == 0);
    OK(cuDeviceGetAttribute(&value, 16, 0));
    CHECK_EQ(value, 60);
    OK(cuDeviceTotalMem_v2(&bytes, 0));
    CHECK_EQ(bytes, 40448ull << 20);
    OK(cuDeviceGetUuid(&old, 0));
    OK(cuDeviceGetUuid_v2(&own, 0));
    CHECK(memcmp(old.bytes, node.st->devices[0].uuid, 16) == 0);
    CHECK(memcmp(own.bytes, node.st->devices[0].mig[1].compute[0].uuid, 16) == 0);
    OK(cuCtxCreate_v2(&ctx, 0, 0));
    CHECK_EQ(cuMemAlloc_v2(&p, 41ull << 30), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemAlloc_v2(&p, 1 << 20));

    /* It works, and on the instance's unit alone. */
    CUmodule m;
    CUfunction f;
    OK(cuModuleLoad(&m, "tests/softgpu/kernels/basic.ptx"));
    OK(cuModuleGetFunction(&f, m, "fill"));
    unsigned want = 7;
    uint64_t n = 1000;
    void *params[] = {&p, &want, &n};
    OK(cuLaunchKernel(f, 8, 1, 1, 128, 1, 1, 0, NULL, params, NULL));
    unsigned got[1000];
    OK(cuMemcpyDtoH_v2(got, p, sizeof(got)));
    CHECK(got[0] == 7 && got[999] == 7);
    const struct softgpu_mig_compute *c = &node.st->devices[0].mig[1].compute[0];
    CHECK_EQ(node.st->units[c->unit].kernels, 1);
    CHECK_EQ(node.st->units[0].kernels, 0);
    CHECK_EQ(cuMemFree_v2(p), 0);
    return FOUND;
}

static void an_instance_has_what_its_profile_says(void) {
    char uuid[48];
    uint32_t id = make(P3G, 4, C3, uuid);
    CHECK_EQ(finds(uuid, look_at_three), FOUND);
    OK(destroy_compute(id, 0));
    OK(destroy(id));
}

static int allocate_the_rest(void) {
    CUcontext ctx;
    CUdeviceptr p;
    size_t left = 0;
    size_t total = 0;
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&ctx, 0, 0));
    OK(cuMemGetInfo_v2(&left, &total));
    CHECK(left < 12ull << 30 && total == 40448ull << 20);
    CHECK_EQ(cuMemAlloc_v2(&p, 12ull << 30), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemAlloc_v2(&p, 8ull << 30));
    return FOUND;
}

static const char *second_uuid;

static int allocate_most(void) {
    CUcontext ctx;
    CUdeviceptr p;
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&ctx, 0, 0));
    OK(cuMemAlloc_v2(&p, 28ull << 30));
    return finds(second_uuid, allocate_the_rest);
}

static void compute_instances_share_memory(void) {
    char first[48];
    char second[48];
    uint32_t other = 99;
    uint32_t id = make(P3G, 0, C1, first);
    sg_state_lock(&node);
    OK(sg_mig_create_compute(&node, 0, id, C2, 0, &other) == 0 ? 1 : 0);
    OK(sg_mig_create_compute(&node, 0, id, C1, SG_MIG_ANYWHERE, &other));
    format_uuid(second, node.st->devices[0].mig[id].compute[other].uuid);
    sg_state_unlock(&node);
    second_uuid = second;
    CHECK_EQ(finds(first, allocate_most), FOUND);
    OK(destroy_compute(id, 0));
    OK(destroy_compute(id, 1));
    OK(destroy(id));
}

static int ready[2];

static void stay(void) {
    CHECK_EQ(write(ready[1], "r", 1), 1);
    for (;;) {
        pause();
    }
}

static int only_initialise(void) {
    OK(cuInit(0));
    stay();
    return 0;
}

static int keep_a_context(void) {
    CUcontext ctx;
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&ctx, 0, 0));
    stay();
    return 0;
}

static pid_t start(const char *visible, int (*what)(void)) {
    char byte;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        setenv("CUDA_VISIBLE_DEVICES", visible, 1);
        _exit(what());
    }
    struct pollfd p = {.fd = ready[0], .events = POLLIN};
    CHECK(poll(&p, 1, 20000) == 1 && read(ready[0], &byte, 1) == 1);
    return pid;
}

static void end(pid_t pid) {
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void a_process_keeps_what_it_runs_on(void) {
    char uuid[48];
    OK(pipe(ready));
    uint32_t id = make(P2G, 0, C2, uuid);
    char other_uuid[48];
    uint32_t other = make(P1G, 6, C1, other_uuid);
    int (*const kinds[])(void) = {only_initialise, keep_a_context};
    for (int i = 0; i < 2; i++) {
        uint32_t pids[2] = {0};
        pid_t pid = start(uuid, kinds[i]);
        CHECK_EQ(destroy_compute(id, 0), -16); /* EBUSY */
        CHECK_EQ(destroy(id), -16);
        sg_state_lock(&node);
        CHECK_EQ(sg_mig_users(&node, 0, id, 0, pids, 2), 1);
        CHECK_EQ(sg_mig_users(&node, 0, other, 0, pids + 1, 1), 0);
        CHECK_EQ(sg_mig_users(&node, 1, SOFTGPU_NONE, SOFTGPU_NONE, pids + 1, 1), 0);
        CHECK_EQ(sg_mig_reset(&node, 0), -16);
        sg_state_unlock(&node);
        CHECK_EQ(pids[0], pid);
        end(pid);
    }
    /* Killed: free at once, and the next one there begins with nothing used. */
    OK(destroy_compute(id, 0));
    OK(destroy(id));
    id = make(P2G, 0, C2, uuid);
    CHECK_EQ(node.st->units[node.st->devices[0].mig[id].compute[0].unit].used_bytes, 0);
    CHECK_EQ(finds(uuid, devices), 101);
    OK(destroy_compute(id, 0));
    OK(destroy(id));
    OK(destroy_compute(other, 0));
    OK(destroy(other));

    pid_t pid = start("1", only_initialise);
    CHECK_EQ(set_mode(1, 1), SG_MIG_IN_USE);
    end(pid);
    CHECK_EQ(set_mode(1, 1), SG_MIG_ACTIVE);
    CHECK_EQ(set_mode(1, 0), SG_MIG_ACTIVE);
}

/* Divides GPU 0 anew all the time, as far as it is let. */
static void divide_for_ever(unsigned seed) {
    static const uint32_t profiles[] = {P3G, P2G, P1G};
    static const uint32_t computes[] = {C3, C2, C1};
    struct sg_node own;
    OK(sg_state_open(&own, NULL, NULL));
    for (;;) {
        uint32_t k = (uint32_t)rand_r(&seed) % 3;
        uint32_t id = (uint32_t)rand_r(&seed) % SOFTGPU_MIG_IDS;
        uint32_t compute;
        sg_state_lock(&own);
        (void)sg_mig_destroy_compute(&own, 0, id, 0);
        (void)sg_mig_destroy(&own, 0, id);
        if (sg_mig_create(&own, 0, profiles[k], SG_MIG_ANYWHERE, &id) == 0) {
            (void)sg_mig_create_compute(&own, 0, id, computes[k], SG_MIG_ANYWHERE, &compute);
        }
        sg_state_unlock(&own);
        usleep((useconds_t)rand_r(&seed) % 500);
    }
}

/* Works on whichever MIG device it finds; what it computes there must be right. */
static void work_for_ever(void) {
    CUcontext ctx;
    CUmodule m;
    CUfunction f;
    CUdeviceptr p;
    unsigned value = (unsigned)getpid();
    uint64_t n = 256;
    void *params[] = {&p, &value, &n};
    setenv("CUDA_VISIBLE_DEVICES", "0", 1);
    while (cuInit(0) != CUDA_SUCCESS) {
        usleep(200); /* it is not divided at this moment */
    }
    OK(cuCtxCreate_v2(&ctx, 0, 0));
    OK(cuModuleLoad(&m, "tests/softgpu/kernels/basic.ptx"));
    OK(cuModuleGetFunction(&f, m, "fill"));
    for (;;) {
        unsigned got[256] = {0};
        OK(cuMemAlloc_v2(&p, sizeof(got)));
        OK(cuLaunchKernel(f, 2, 1, 1, 128, 1, 1, 0, NULL, params, NULL));
        OK(cuMemcpyDtoH_v2(got, p, sizeof(got)));
        if (got[0] != value || got[255] != value) {
            _exit(9);
        }
        OK(cuMemFree_v2(p));
    }
}

static void check_nothing_is_left(void) {
    sg_state_lock(&node);
    sg_reap(&node, SOFTGPU_NONE, true);
    const struct softgpu_state *st = node.st;
    struct sg_mig_place places[SOFTGPU_MIG_INSTANCES];
    uint32_t count = sg_mig_places(st, 0, places);
    CHECK(sg_mig_legal(sg_mig_model(st, 0), places, count));
    for (uint32_t i = 0; i < SOFTGPU_MIG_IDS; i++) {
        if (st->devices[0].mig[i].state == SOFTGPU_SLOT_USED) {
            (void)sg_mig_destroy_compute(&node, 0, i, 0);
            CHECK_EQ(sg_mig_destroy(&node, 0, i), 0);
        }
    }
    CHECK_EQ(st->devices[0].used_bytes, 0);
    for (uint32_t u = st->header.device_count; u < SOFTGPU_MAX_UNITS; u++) {
        CHECK_EQ(st->units[u].state, SOFTGPU_SLOT_FREE);
        CHECK_EQ(st->units[u].used_bytes, 0);
    }
    for (uint32_t c = 0; c < st->header.context_high; c++) {
        CHECK_EQ(st->contexts[c].state, SOFTGPU_SLOT_FREE);
    }
    sg_state_unlock(&node);
}

static void whoever_dies_leaves_nothing(void) {
    uint64_t launches = node.st->header.calls[SOFTGPU_COUNT_LAUNCH];
    enum { PLACES = 5, DEATHS = 120 };
    unsigned seed = 42;
    pid_t pids[PLACES] = {0};
    for (int i = 0; i < DEATHS + PLACES; i++) {
        pid_t *pid = &pids[i % PLACES];
        if (*pid != 0) {
            int status = 0;
            usleep((useconds_t)rand_r(&seed) % 10000);
            kill(*pid, SIGKILL);
            waitpid(*pid, &status, 0);
            CHECK(WIFSIGNALED(status)); /* and not because something was wrong */
            *pid = 0;
        }
        if (i < DEATHS) {
            fflush(NULL);
            *pid = fork();
            if (*pid == 0) {
                if (i % PLACES < 2) {
                    divide_for_ever(seed + (unsigned)i);
                }
                work_for_ever();
            }
        }
    }
    check_nothing_is_left();
    CHECK(node.st->header.calls[SOFTGPU_COUNT_LAUNCH] > launches); /* work was done meanwhile */
}

static int remove_entry(const char *path, const struct stat *sb, int kind, struct FTW *at) {
    (void)sb;
    (void)kind;
    (void)at;
    return remove(path);
}

static void remove_capabilities(void) {
    char path[80];
    snprintf(path, sizeof(path), "%s.caps", check_state);
    if (getpid() == check_owner) {
        nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    }
}

int main(void) {
    check_node("2xH100", "real-like");
    atexit(remove_capabilities);
    OK(sg_state_open(&node, NULL, NULL));
    RUN("a divided GPU is its instances", a_divided_gpu_is_its_instances);
    RUN("an instance has what its profile says", an_instance_has_what_its_profile_says);
    RUN("compute instances share memory", compute_instances_share_memory);
    RUN("a process keeps what it runs on", a_process_keeps_what_it_runs_on);
    RUN("whoever dies leaves nothing", whoever_dies_leaves_nothing);
    sg_state_close(&node);
    return finish("test_mig");
}
