#define _GNU_SOURCE
#include "client.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "state.h"

static void submit_kernel(const struct sg_node *node, uint32_t proc, const struct client *want) {
    struct softgpu_state *st = node->st;
    uint32_t sms = st->units[want->unit].sm_count;
    st->contexts[0] = (struct softgpu_context){.state = SOFTGPU_SLOT_USED,
                                               .proc = proc,
                                               .unit = want->unit,
                                               .sm_cap = sms,
                                               .legacy_stream = SOFTGPU_NONE};
    st->header.context_high = 1;
    st->streams[0] = (struct softgpu_stream){.state = SOFTGPU_SLOT_USED,
                                             .proc = proc,
                                             .unit = want->unit,
                                             .head = SOFTGPU_NONE,
                                             .tail = SOFTGPU_NONE,
                                             .watch_unit = SOFTGPU_NONE};
    st->header.stream_high = 1;
    uint32_t i = sg_op_take(st);
    struct softgpu_op *op = &st->ops[i];
    op->kind = SOFTGPU_OP_KERNEL;
    op->proc = proc;
    op->unit = want->unit;
    op->work_ns = (double)want->kernel_ns;
    op->dram = 0.5;
    op->need = op->want = sms;
    op->waves = 1;
    op->dep_stream = SOFTGPU_NONE;
    sg_engine_submit(st, i, sg_state_now(st));
}

static void enter(const struct sg_node *node, const struct client *want) {
    struct softgpu_state *st = node->st;
    sg_state_lock(node);
    uint32_t proc = sg_proc_claim(node);
    if (proc != SOFTGPU_NONE) {
        struct softgpu_proc *p = &st->procs[proc];
        p->flags = want->mps ? SOFTGPU_PROC_MPS : 0;
        p->contexts[want->unit] = 1;
        p->used_bytes[want->unit] = want->bytes;
        st->units[want->unit].used_bytes += want->bytes;
        st->devices[st->units[want->unit].device].used_bytes += want->bytes;
        if (want->kernel_ns > 0) {
            submit_kernel(node, proc, want);
        }
    }
    sg_state_unlock(node);
}

pid_t client_start(const struct client *want) {
    int ready[2];
    if (pipe(ready) != 0) {
        return -1;
    }
    pid_t pid = fork();
    if (pid == 0) {
        struct sg_node node;
        if (sg_state_open(&node, NULL, NULL) != 0) {
            _exit(1);
        }
        enter(&node, want);
        if (write(ready[1], "r", 1) != 1) {
            _exit(1);
        }
        for (;;) {
            pause();
        }
    }
    close(ready[1]);
    char byte;
    bool entered = pid > 0 && read(ready[0], &byte, 1) == 1;
    close(ready[0]);
    return entered ? pid : -1;
}

void client_kill(pid_t pid) {
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}
