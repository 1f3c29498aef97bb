/* MIG under every layout, by processes that are killed, and by many threads. */
#define _GNU_SOURCE
#include "mig_test.h"

#include <dirent.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "client.h"
#include "mig_client.h"

struct counts {
    const struct softgpu_model *model;
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
    CHECK(sms <= n->model->sm_count);
}

/* The plain profiles of a seven-slice board have nineteen layouts that nothing can be added to. On an empty board as
 * many of a profile fit as the driver lists, and no layout needs more SMs than there are. */
void test_mig_layouts(void) {
    const struct softgpu_model *m;
    for (uint32_t i = 0; (m = softgpu_model_at(i)) != NULL; i++) {
        struct counts n = {.model = m};
        sg_mig_enumerate(m, count_layout, &n);
        CHECK(n.all > n.maximal && n.maximal > n.plain && n.plain > 0);
        if (m->mig_compute_slices == 7) {
            CHECK_EQ(n.plain, 19);
        }
        for (uint32_t k = 0; k < m->mig_profile_count; k++) {
            CHECK_EQ(sg_mig_room(m, &m->mig_profiles[k], NULL, 0), m->mig_profiles[k].instances);
        }
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
