/* cuInit, and what a fork leaves behind. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "driver.h"

struct sg_driver sg = {.mutex = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER};
__thread struct sg_thread sg_self __attribute__((tls_model("initial-exec")));

static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t init_mutex = PTHREAD_MUTEX_INITIALIZER;

static void before_fork(void) {
    pthread_mutex_lock(&init_mutex);
    pthread_mutex_lock(&sg.mutex);
}

static void after_fork_parent(void) {
    pthread_mutex_unlock(&sg.mutex);
    pthread_mutex_unlock(&init_mutex);
}

/* The child has none of the parent's contexts, and its copy of the descriptor must go: the
 * parent's slot is held by the open file, which would outlive the parent here. A real driver
 * refuses to work in such a child; this one begins afresh at the child's cuInit. */
static void after_fork_child(void) {
    if (sg.initialised) {
        sg_state_close(&sg.node);
    }
    memset(&sg, 0, sizeof(sg));
    memset(&sg_self, 0, sizeof(sg_self));
    sg_memory_forget();
    pthread_mutex_init(&sg.mutex, NULL);
    pthread_cond_init(&sg.work, NULL);
    pthread_mutex_init(&init_mutex, NULL);
}

static void watch_forks(void) {
    pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

static bool any_mps_device(const struct softgpu_state *st) {
    for (uint32_t d = 0; d < st->header.device_count; d++) {
        if (st->devices[d].mps) {
            return true;
        }
    }
    return false;
}

/* A process is a client of MPS where the control pipe is there when it starts. */
static void join_mps(struct softgpu_proc *p) {
    const char *dir = getenv("CUDA_MPS_PIPE_DIRECTORY");
    char pipe[4096];
    snprintf(pipe, sizeof(pipe), "%s/control", dir != NULL ? dir : "/tmp/nvidia-mps");
    if (access(pipe, F_OK) != 0 && !any_mps_device(sg.node.st)) {
        return;
    }
    p->flags |= SOFTGPU_PROC_MPS;
    const char *share = getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
    double percent = share != NULL ? strtod(share, NULL) : 100;
    if (percent > 0 && percent < 100) {
        p->sm_percent = (uint32_t)(percent < 1 ? 1 : percent);
    }
}

static CUresult start(void) {
    int rc = sg_state_open(&sg.node, NULL, NULL);
    if (rc != 0) {
        return rc == -EACCES ? CUDA_ERROR_NO_DEVICE : CUDA_ERROR_OPERATING_SYSTEM;
    }
    sg_state_lock(&sg.node);
    sg_reap(&sg.node, SOFTGPU_NONE, false);
    sg_find_visible();
    sg.proc = sg.device_count == 0 ? SOFTGPU_NONE : sg_proc_claim(&sg.node);
    if (sg.proc != SOFTGPU_NONE) {
        /* In the same moment as it was found, so that nobody takes it away in between. */
        sg_hold_visible(&sg.node.st->procs[sg.proc]);
        join_mps(&sg.node.st->procs[sg.proc]);
    }
    sg_state_unlock(&sg.node);
    if (sg.proc == SOFTGPU_NONE) {
        sg_state_close(&sg.node);
        return sg.device_count == 0 ? CUDA_ERROR_NO_DEVICE : CUDA_ERROR_OUT_OF_MEMORY;
    }
    sg.null_profile = sg.node.st->header.profile == SOFTGPU_PROFILE_NULL;
    __atomic_store_n(&sg.initialised, 1, __ATOMIC_RELEASE);
    return CUDA_SUCCESS;
}

SG_API(cuInit, (unsigned flags)) {
    if (flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    pthread_once(&fork_once, watch_forks);
    pthread_mutex_lock(&init_mutex);
    CUresult rc = sg_leaving() ? CUDA_ERROR_DEINITIALIZED : CUDA_SUCCESS;
    if (rc == CUDA_SUCCESS && !sg.initialised) {
        rc = start();
    }
    pthread_mutex_unlock(&init_mutex);
    return rc == CUDA_SUCCESS ? sg_fault("cuInit") : rc;
}

SG_API(cuDriverGetVersion, (int *version)) {
    if (version == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *version = SG_DRIVER_VERSION;
    return CUDA_SUCCESS;
}
