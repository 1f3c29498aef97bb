/* Processes: claiming a slot, noticing the dead, giving back what they had. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "state.h"

static const int64_t SG_REAP_PERIOD_NS = 2000000;

static int slot_lock(int fd, uint32_t proc, int command, short *type) {
    struct flock fl = {.l_type = *type,
                       .l_whence = SEEK_SET,
                       .l_start = (off_t)(SOFTGPU_LOCK_BASE + proc),
                       .l_len = 1};
    int rc = fcntl(fd, command, &fl);
    *type = fl.l_type;
    return rc == 0 ? 0 : -errno;
}

static uint64_t pid_namespace(void) {
    struct stat sb;
    return stat("/proc/self/ns/pid", &sb) == 0 ? sb.st_ino : 0;
}

/* A child that was made around the C library's fork still has the owner's open file, and with it
 * the lock. In the owner's PID namespace its pid says that it is gone. */
static bool pid_gone(const struct softgpu_proc *p) {
    return p->state == SOFTGPU_SLOT_USED && p->pid != 0 && kill((pid_t)p->pid, 0) != 0 &&
           errno == ESRCH && p->pid_ns != 0 && p->pid_ns == pid_namespace();
}

bool sg_proc_alive(const struct sg_node *node, uint32_t proc) {
    short type = F_WRLCK;
    bool locked = slot_lock(node->fd, proc, F_OFD_GETLK, &type) != 0 || type != F_UNLCK;
    return locked && !pid_gone(&node->st->procs[proc]);
}

static void read_name(char *out, size_t size) {
    out[0] = '\0';
    int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return;
    }
    ssize_t n = read(fd, out, size - 1);
    close(fd);
    if (n > 0) {
        out[n] = '\0';
        out[strcspn(out, "\n")] = '\0';
    }
}

static void fill_slot(const struct sg_node *node, struct softgpu_proc *p) {
    uint64_t generation = p->generation;
    memset(p, 0, sizeof(*p));
    p->generation = generation + 1;
    p->pid = (uint32_t)getpid();
    p->uid = (uint32_t)getuid();
    p->started_ns = (uint64_t)sg_state_now(node->st);
    p->sm_percent = 100;
    p->done_head = SOFTGPU_NONE;
    p->done_tail = SOFTGPU_NONE;
    p->pid_ns = pid_namespace();
    p->mig_device = SOFTGPU_NONE;
    p->mig_instance = SOFTGPU_NONE;
    p->mig_compute = SOFTGPU_NONE;
    read_name(p->name, sizeof(p->name));
    __atomic_store_n(&p->state, SOFTGPU_SLOT_USED, __ATOMIC_RELEASE);
}

uint32_t sg_proc_claim(const struct sg_node *node) {
    struct softgpu_state *st = node->st;
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < SOFTGPU_MAX_PROCS; i++) {
            short type = F_WRLCK;
            if (st->procs[i].state == SOFTGPU_SLOT_FREE &&
                slot_lock(node->fd, i, F_OFD_SETLK, &type) == 0) {
                if (i >= st->header.proc_high) {
                    st->header.proc_high = i + 1;
                }
                fill_slot(node, &st->procs[i]);
                return i;
            }
        }
        sg_reap(node, SOFTGPU_NONE, true);
    }
    return SOFTGPU_NONE;
}

static void fold_tallies(struct softgpu_state *st, uint32_t proc) {
    for (uint32_t i = 0; i < SOFTGPU_MAX_TALLIES; i++) {
        struct softgpu_tally *t = &st->tallies[i];
        if (__atomic_load_n(&t->proc, __ATOMIC_ACQUIRE) == proc) {
            /* Its thread may be at work to the end of its process. */
            uint64_t *calls = st->procs[proc].calls;
            __atomic_add_fetch(&calls[SOFTGPU_COUNT_LAUNCH],
                               __atomic_exchange_n(&t->launches, 0, __ATOMIC_RELAXED),
                               __ATOMIC_RELAXED);
            __atomic_add_fetch(&calls[SOFTGPU_COUNT_OPAQUE],
                               __atomic_exchange_n(&t->opaque, 0, __ATOMIC_RELAXED),
                               __ATOMIC_RELAXED);
            __atomic_store_n(&t->proc, SOFTGPU_NONE, __ATOMIC_RELEASE);
        }
    }
}

void sg_proc_release(const struct sg_node *node, uint32_t proc) {
    struct softgpu_state *st = node->st;
    struct softgpu_proc *p = &st->procs[proc];
    int64_t now = sg_state_now(st);
    sg_engine_drop_proc(st, proc);
    fold_tallies(st, proc);
    for (uint32_t c = 0; c < SOFTGPU_COUNTERS; c++) {
        st->header.calls[c] += __atomic_exchange_n(&p->calls[c], 0, __ATOMIC_RELAXED);
    }
    for (uint32_t u = 0; u < st->header.unit_count; u++) {
        if (st->units[u].state != SOFTGPU_SLOT_USED) {
            continue;
        }
        st->units[u].used_bytes -= p->used_bytes[u];
        st->devices[st->units[u].device].used_bytes -= p->used_bytes[u];
        p->used_bytes[u] = 0;
        p->contexts[u] = 0;
        sg_engine_kick(st, u, now);
    }
    __atomic_store_n(&p->state, SOFTGPU_SLOT_FREE, __ATOMIC_RELEASE);
}

void sg_reap(const struct sg_node *node, uint32_t self, bool at_once) {
    struct softgpu_state *st = node->st;
    int64_t now = sg_state_now(st);
    if (!at_once && now - st->header.reap_ns < SG_REAP_PERIOD_NS) {
        return;
    }
    st->header.reap_ns = now;
    for (uint32_t i = 0; i < st->header.proc_high; i++) {
        if (i != self && st->procs[i].state != SOFTGPU_SLOT_FREE && !sg_proc_alive(node, i)) {
            sg_proc_release(node, i);
            st->header.reaped++;
        }
    }
}

void sg_stub_count(struct softgpu_state *st, const char *name) {
    for (uint32_t i = 0; i < SOFTGPU_MAX_STUBS; i++) {
        struct softgpu_stub *s = &st->stubs[i];
        if (s->name[0] == '\0') {
            snprintf(s->name, sizeof(s->name), "%s", name);
        }
        if (strcmp(s->name, name) == 0) {
            __atomic_add_fetch(&s->calls, 1, __ATOMIC_RELAXED);
            return;
        }
    }
}
