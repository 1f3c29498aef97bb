#include "window.h"

#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "capture.h"
#include "client.h"
#include "clock.h"
#include "device.h"
#include "driver.h"
#include "heddle/gate.h"
#include "launch.h"
#include "symbols.h"
#include "token.h"

enum { EVENTS = 64, POLL_NS = 15 * 1000, SLEEP_MAX_NS = 1000 * 1000 };

/*
 * Who does not know when the oldest launch ends looks each time that it may have run for this part
 * longer than the last time, though not more rarely than every LATE_MAX_NS: the device stands still
 * for no longer than that part, and a long launch does not cost a processor.
 */
enum { LATER_PART = 8, LATE_MAX_NS = 200 * 1000 };

typedef heddle_result (*event_create)(void **, unsigned);
typedef heddle_result (*event_record)(void *, void *);
typedef heddle_result (*event_call)(void *);

struct event {
    void *handle;
    void *context;
    uint64_t estimate_ns;
    uint64_t token; /* held by the launch, 0 = none */
    bool measured;  /* its time is counted when it was measured */
    bool steady;    /* ends when predicted */
};

/* A ring of launches in the order they were made, each with the event behind it. */
struct window {
    pthread_mutex_t lock;
    uint32_t first; /* oldest not known to be complete */
    uint32_t count;
    uint64_t outstanding_ns;
    uint64_t reserved_ns; /* by launches that are being made */
    uint64_t since_ns;    /* when the oldest is thought to have begun */
    struct event events[EVENTS];
};

static struct window windows[HEDDLE_DEVICES_MAX];

static void take_oldest(struct window *window) {
    const struct event *oldest = &window->events[window->first];

    const uint32_t device = (uint32_t)(window - windows);

    heddle_token_release(device, oldest->token);
    if (!oldest->measured) {
        heddle_add_seq_cst64(&heddle_client()->devices[device].device_ns, oldest->estimate_ns);
    }
    window->since_ns = heddle_clock_now();
    window->outstanding_ns -= oldest->estimate_ns;
    window->first = (window->first + 1) % EVENTS;
    window->count--;
}

/* An event that fails for another reason than time is as good as complete: its work is lost. */
static void collect(struct window *window) {
    const int mode = heddle_capture_exchange(HEDDLE_CAPTURE_MODE_RELAXED);

    while (window->count > 0) {
        void *handle = window->events[window->first].handle;

        if (handle != NULL &&
            HEDDLE_DRIVER(event_call, cuEventQuery)(handle) == HEDDLE_CUDA_NOT_READY) {
            break;
        }
        take_oldest(window);
    }
    (void)heddle_capture_exchange(mode);
}

/* However short they are said to be, no more launches are let out than there are events to watch. */
static uint64_t total(const struct window *window) {
    return window->count < EVENTS ? heddle_gate_add(window->outstanding_ns, window->reserved_ns)
                                  : UINT64_MAX;
}

uint64_t heddle_window_outstanding(uint32_t device) {
    struct window *window = &windows[device];
    uint64_t outstanding = 0;

    pthread_mutex_lock(&window->lock);
    collect(window);
    outstanding = total(window);
    pthread_mutex_unlock(&window->lock);
    return outstanding;
}

bool heddle_window_reserve(uint32_t device, uint64_t room_ns, uint64_t window_ns) {
    struct window *window = &windows[device];
    uint64_t outstanding = 0;
    bool room = false;

    pthread_mutex_lock(&window->lock);
    outstanding = total(window);
    room = outstanding == 0 || heddle_gate_add(outstanding, room_ns) <= window_ns;
    window->reserved_ns += room ? room_ns : 0;
    pthread_mutex_unlock(&window->lock);
    return room;
}

void heddle_window_leave(uint32_t device, uint64_t room_ns) {
    struct window *window = &windows[device];

    pthread_mutex_lock(&window->lock);
    window->reserved_ns -= room_ns;
    pthread_mutex_unlock(&window->lock);
}

/* The event belongs to one context; the slot gets another if the program moved on to another. */
static bool prepare(struct event *event, void *context) {
    if (event->handle != NULL && event->context == context) {
        return true;
    }
    if (event->handle != NULL) {
        (void)HEDDLE_DRIVER(event_call, cuEventDestroy_v2)(event->handle);
        event->handle = NULL;
    }
    event->context = context;
    return HEDDLE_DRIVER(event_create, cuEventCreate)(
               &event->handle, HEDDLE_EVENT_DISABLE_TIMING) == HEDDLE_CUDA_SUCCESS;
}

static bool record(void *event, void *stream, bool per_thread) {
    const heddle_result result =
        per_thread ? HEDDLE_DRIVER(event_record, cuEventRecord_ptsz)(event, stream)
                   : HEDDLE_DRIVER(event_record, cuEventRecord)(event, stream);

    return result == HEDDLE_CUDA_SUCCESS;
}

void heddle_window_add(const struct heddle_launch *launch, uint64_t estimate_ns, bool steady) {
    struct window *window = &windows[launch->device];
    void *context = heddle_device_context();
    struct event *event = NULL;
    int mode = 0;

    pthread_mutex_lock(&window->lock);
    window->reserved_ns -= launch->room_ns;
    if (window->count == EVENTS) {
        collect(window);
    }
    if (window->count == EVENTS) {
        take_oldest(
            window); /* this launch waited for its longest time, or others were in between */
    }
    event = &window->events[(window->first + window->count) % EVENTS];
    mode = heddle_capture_exchange(HEDDLE_CAPTURE_MODE_RELAXED);
    if (prepare(event, context) && record(event->handle, launch->handle, launch->per_thread)) {
        event->estimate_ns = estimate_ns;
        event->token = launch->token;
        event->measured = launch->pair != 0;
        event->steady = steady;
        if (window->count == 0) {
            window->since_ns = heddle_clock_now();
        }
        window->outstanding_ns += estimate_ns;
        window->count++;
    }
    (void)heddle_capture_exchange(mode);
    pthread_mutex_unlock(&window->lock);
}

/* The kernel lets a sleep be late by a slack that is longer than a short kernel runs. */
static void sleep_exactly(uint64_t ns) {
    const struct timespec time = {.tv_nsec = (long)ns};
    const int slack = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);

    (void)prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    (void)nanosleep(&time, NULL);
    if (slack > 0) {
        (void)prctl(PR_SET_TIMERSLACK, slack, 0, 0, 0);
    }
}

uint64_t heddle_window_pause(uint64_t elapsed_ns, uint64_t left_ns, bool steady) {
    uint64_t pause = heddle_gate_clamp(elapsed_ns / LATER_PART, LATE_MAX_NS);

    if (left_ns > POLL_NS && (steady || pause > left_ns)) {
        pause = heddle_gate_clamp(left_ns, SLEEP_MAX_NS);
    }
    return pause > POLL_NS ? pause : POLL_NS;
}

/*
 * Asking now and then rather than waiting for the oldest event: that one may stand behind a wait
 * that only this thread can end, and then the gate's longest hold must end ours.
 */
void heddle_window_wait(uint32_t device) {
    struct window *window = &windows[device];
    const uint64_t now = heddle_clock_now();
    uint64_t since = now;
    uint64_t end = 0;
    bool steady = false;

    pthread_mutex_lock(&window->lock);
    if (window->count > 0) {
        const struct event *oldest = &window->events[window->first];

        since = heddle_gate_clamp(window->since_ns, now);
        end = heddle_gate_add(since, oldest->estimate_ns);
        steady = oldest->steady;
    }
    pthread_mutex_unlock(&window->lock);
    sleep_exactly(heddle_window_pause(now - since, end > now ? end - now : 0, steady));
}

void heddle_window_forget_context(const void *context) {
    for (uint32_t device = 0; device < HEDDLE_DEVICES_MAX; device++) {
        struct window *window = &windows[device];

        pthread_mutex_lock(&window->lock);
        for (uint32_t i = 0; i < EVENTS; i++) {
            if (window->events[i].context == context) {
                window->events[i].handle = NULL;
                window->events[i].context = NULL;
            }
        }
        pthread_mutex_unlock(&window->lock);
    }
}

void heddle_window_reset(void) {
    memset(windows, 0, sizeof(windows));
    for (uint32_t i = 0; i < HEDDLE_DEVICES_MAX; i++) {
        pthread_mutex_init(&windows[i].lock, NULL);
    }
}
