/* The thread that moves this process's work on while its own threads are elsewhere: it runs host
 * functions, polls awaited values, and applies effects that somebody may be looking at. It exists
 * from the first pending work on and sleeps when there has been none for a while. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "driver.h"

static const int64_t SG_PERIOD_NS = 2000000;
static const int64_t SG_IDLE_NS = 100000000; /* between two looks without any work */
static const int64_t SG_POLL_NS = 50000;     /* between two looks at an awaited value */

static void answer(struct sg_work *w) {
    sg_state_lock(&sg.node);
    sg_engine_answer(sg.node.st, w->op, sg_state_now(sg.node.st));
    __atomic_add_fetch(&sg.node.st->procs[sg.proc].wake, 1, __ATOMIC_RELEASE);
    sg_state_unlock(&sg.node);
    syscall(SYS_futex, &sg.node.st->procs[sg.proc].wake, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* Runs what the head of a stream asks for, without any lock. */
static void run_host(struct sg_stream *s, struct sg_work *w) {
    w->asked = true;
    CUresult status = sg_ctx_error(s->ctx);
    sg_count(SOFTGPU_COUNT_HOST, 1);
    sg_unlock();
    sg_self.in_callback = true;
    if (w->kind == SG_WORK_CALLBACK) {
        w->host.callback(s, status, w->host.user);
    } else if (status == CUDA_SUCCESS) {
        w->host.fn(w->host.user);
    }
    sg_self.in_callback = false;
    sg_lock();
}

static bool is_asked(const struct sg_stream *s, const struct sg_work *w) {
    const struct softgpu_op *op = &sg.node.st->ops[w->op];
    return !w->asked && __atomic_load_n(&op->state, __ATOMIC_ACQUIRE) == SOFTGPU_OP_ASKED &&
           op->stream == s->slot && op->pos == w->pos;
}

/* One step; true if something was done, false if there is nothing but waiting. */
static bool serve_one(bool *polling) {
    *polling = false;
    for (struct sg_ctx *c = sg.contexts; c != NULL; c = c->next) {
        for (struct sg_stream *s = c->streams; s != NULL; s = s->next) {
            struct sg_work *w = s->first;
            if (w == NULL || !sg_is_host_work(w) || !is_asked(s, w)) {
                continue;
            }
            if (w->kind == SG_WORK_WAIT_VALUE) {
                if (!sg_value_reached(w)) {
                    *polling = true;
                    continue;
                }
                w->asked = true;
                answer(w);
                return true;
            }
            run_host(s, w);
            if (!sg_leaving() && s->magic == SG_STREAM && s->first == w) {
                answer(w);
            }
            return true;
        }
    }
    return false;
}

static int64_t pause_ns(bool polling) {
    if (polling) {
        return SG_POLL_NS;
    }
    if (sg.prompt == 0) {
        return SG_PERIOD_NS;
    }
    int64_t now = sg_state_now(sg.node.st);
    int64_t pause = SG_PERIOD_NS;
    for (struct sg_ctx *c = sg.contexts; c != NULL; c = c->next) {
        int64_t next = sg.node.st->units[c->unit].next_event_ns;
        if (next != SG_NEVER) {
            int64_t d = (int64_t)((double)(next - now) / sg.node.st->header.speed);
            pause = d < pause ? d : pause;
        }
    }
    return pause < 5000 ? 5000 : pause;
}

static void sleep_for(int64_t ns) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    ts.tv_nsec += (long)ns;
    ts.tv_sec += ts.tv_nsec / 1000000000;
    ts.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&sg.work, &sg.mutex, &ts);
}

static void *progress(void *unused) {
    (void)unused;
    prctl(PR_SET_NAME, "softgpu");
    prctl(PR_SET_TIMERSLACK, 1ul);
    int idle = 0;
    sg_lock();
    while (!sg_leaving()) {
        bool polling;
        sg_settle();
        if (serve_one(&polling)) {
            idle = 0;
        } else if (sg.pending != 0 || ++idle < 50) {
            idle = sg.pending != 0 ? 0 : idle;
            sleep_for(pause_ns(polling));
        } else {
            sg.progress_asleep = true;
            while (sg.pending == 0 && !sg_leaving()) {
                sleep_for(SG_IDLE_NS); /* a wake that is lost costs no more than this */
            }
            sg.progress_asleep = false;
            idle = 0;
        }
    }
    sg_unlock();
    return NULL;
}

static void start_thread(void) {
    sigset_t all;
    sigset_t old;
    pthread_attr_t attr;
    pthread_t thread;
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&sg.work, &clock);
    pthread_condattr_destroy(&clock);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sg.progress_started = pthread_create(&thread, &attr, progress, NULL) == 0;
    pthread_attr_destroy(&attr);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void sg_progress_poke(bool prompt) {
    if (!sg.progress_started) {
        start_thread();
    } else if (prompt || sg.progress_asleep) {
        pthread_cond_signal(&sg.work);
    }
}
