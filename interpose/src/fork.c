#include "fork.h"

#include <pthread.h>
#include <stdbool.h>

#include "arena.h"
#include "busy.h"
#include "capture.h"
#include "client.h"
#include "connect.h"
#include "device.h"
#include "event.h"
#include "kernel.h"
#include "ledger.h"
#include "measure.h"
#include "peer.h"
#include "share.h"
#include "stream.h"
#include "thread.h"
#include "token.h"
#include "window.h"

/*
 * In the child only the calling thread is left, and any lock of ours may have been held by another:
 * everything is made anew, the connection last. The child attaches at its next cuInit or launch.
 */
static void in_child(void) {
    heddle_thread_reset();
    heddle_client_reset();
    heddle_busy_reset();
    heddle_stream_reset();
    heddle_event_reset();
    heddle_window_reset();
    heddle_kernel_reset();
    heddle_measure_reset();
    heddle_capture_reset();
    heddle_ledger_reset();
    heddle_device_reset();
    heddle_peer_reset();
    heddle_arena_forget_all();
    heddle_token_reset();
    heddle_share_reset();
    heddle_connect_reset();
}

static void watch(void) {
    (void)pthread_atfork(NULL, NULL, in_child);
}

void heddle_fork_watch(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, watch);
}
