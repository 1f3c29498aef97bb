/* The end of the process, which other threads may not have noticed yet. */
#define _GNU_SOURCE
#include <time.h>

#include "driver.h"

/* An exit tries for so long to get a lock. Who cannot have it leaves as if it were killed: the slot
 * is found by its lock. */
enum { LEAVE_MS = 100 };

bool sg_leaving(void) {
    return __atomic_load_n(&sg.stopping, __ATOMIC_ACQUIRE) != 0;
}

static bool lock_process(void) {
    const struct timespec pause = {.tv_nsec = 1000000};
    for (int ms = 0; ms < LEAVE_MS; ms++) {
        if (pthread_mutex_trylock(&sg.mutex) == 0) {
            return true;
        }
        nanosleep(&pause, NULL);
    }
    return false;
}

/* Calls that begin from here on answer that the driver is gone. A thread that is inside one goes on:
 * with the memory it has, but no longer on the node, where the slot is free for the next process. */
__attribute__((destructor)) static void leave(void) {
    if (!__atomic_load_n(&sg.initialised, __ATOMIC_ACQUIRE)) {
        return;
    }
    __atomic_store_n(&sg.stopping, 1, __ATOMIC_RELEASE);
    __atomic_store_n(&sg.initialised, 0, __ATOMIC_RELEASE);
    /* A launch without costs looks at this one instead. It is never counted down again. */
    __atomic_add_fetch(&sg.captures, 1, __ATOMIC_RELEASE);
    if (!lock_process()) {
        return;
    }
    if (sg_state_lock_within(&sg.node, LEAVE_MS * UINT64_C(1000000))) {
        sg_proc_release(&sg.node, sg.proc);
        sg_state_part(&sg.node);
        sg_state_unlock(&sg.node);
    }
    pthread_cond_broadcast(&sg.work);
    pthread_mutex_unlock(&sg.mutex);
}
