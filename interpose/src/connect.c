#include "connect.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "arena.h"
#include "channel.h"
#include "client.h"
#include "device.h"
#include "fork.h"
#include "futex.h"
#include "log.h"
#include "peer.h"
#include "settings.h"

enum {
    ATTACH_WAIT_NS = 1000 * 1000 * 1000, /* the longest that cuInit waits for a daemon's answer */
    DEVICE_WAIT_NS = 500 * 1000 * 1000,
    BACKOFF_MIN_NS = 50 * 1000 * 1000,
    BACKOFF_MAX_NS = 1000 * 1000 * 1000,
    HELPER_STACK = 128 * 1024,
};

#ifndef HEDDLE_BUILD
#define HEDDLE_BUILD "unknown"
#endif

uint32_t heddle_connect_state = HEDDLE_UNINIT;

/* Guards the descriptor against being closed while another thread sends on it, and told. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int channel = -1;
static uint32_t told;   /* bit n: the daemon of this connection knows of device slot n */
static ino_t connected; /* the socket of this connection; changed by the helper alone */
static uint8_t token[HEDDLE_TOKEN_BYTES]; /* the helper's alone */

static void set_state(enum heddle_connect_state state) {
    heddle_store_release32(&heddle_connect_state, (uint32_t)state);
    heddle_futex_wake(&heddle_connect_state);
}

static void pause_ns(uint64_t ns) {
    const struct timespec time = {.tv_sec = (time_t)(ns / 1000000000U),
                                  .tv_nsec = (long)(ns % 1000000000U)};

    (void)nanosleep(&time, NULL);
}

/*
 * A program may close every descriptor that it does not know, ours too, and open others under their
 * numbers. What stands there now is the connection only if it is the same socket.
 */
static bool identify(int connection, ino_t *identity) {
    struct stat status;

    if (fstat(connection, &status) != 0 || !S_ISSOCK(status.st_mode)) {
        return false;
    }
    *identity = status.st_ino;
    return true;
}

static bool is_ours(int connection) {
    ino_t found = 0;

    return identify(connection, &found) && found == connected;
}

/* A connection that was not welcomed never was the channel: nobody may send on it. */
static void close_connection(int connection) {
    pthread_mutex_lock(&lock);
    if (channel == connection) {
        channel = -1;
    }
    if (is_ours(connection)) {
        close(connection);
    }
    pthread_mutex_unlock(&lock);
}

static bool send_hello(int to) {
    const struct heddle_settings *settings = heddle_settings();
    struct heddle_msg_hello hello;

    memset(&hello, 0, sizeof(hello));
    heddle_message_begin(&hello.header, HEDDLE_MSG_HELLO, sizeof(hello));
    hello.abi_version = HEDDLE_ABI_VERSION;
    hello.abi_oldest = HEDDLE_ABI_OLDEST;
    hello.pid = (uint32_t)getpid();
    hello.priority_hint = settings->priority_hint;
    hello.weight_hint = settings->weight_hint;
    memcpy(hello.token, token, sizeof(token));
    memcpy(hello.name, settings->name, sizeof(hello.name));
    memcpy(hello.build, HEDDLE_BUILD, sizeof(HEDDLE_BUILD));
    hello.gang_size = settings->gang_size;
    memcpy(hello.gang, settings->gang, sizeof(hello.gang));
    return heddle_channel_send(to, &hello, sizeof(hello), heddle_client_descriptor());
}

/* Once for a slot on one connection; with the lock held. */
static bool tell_device(int to, uint32_t slot) {
    struct heddle_msg_device device;

    if ((told & 1U << slot) != 0) {
        return true;
    }
    told |= 1U << slot;
    memset(&device, 0, sizeof(device));
    heddle_message_begin(&device.header, HEDDLE_MSG_DEVICE, sizeof(device));
    device.slot = slot;
    memcpy(device.uuid, heddle_client()->devices[slot].uuid, sizeof(device.uuid));
    return heddle_channel_send(to, &device, sizeof(device), -1);
}

/* What a connection leaves behind. */
enum outcome { TRY_AGAIN, GIVE_UP };

static enum outcome refused(const struct heddle_msg_welcome *welcome) {
    heddle_log(HEDDLE_LOG_WARN, "not attached, status %u: %s", welcome->status, welcome->text);
    return welcome->status == HEDDLE_STATUS_FULL || welcome->status == HEDDLE_STATUS_DRAINING
               ? TRY_AGAIN
               : GIVE_UP;
}

/* Sleepers on the old gate word would not hear of changes to the new one. */
static void wake_held(void) {
    for (uint32_t i = 0; i < HEDDLE_DEVICES_MAX; i++) {
        heddle_futex_wake(&heddle_verdict()->devices[i].gate);
    }
}

/* The devices opened so far are told under the lock, so that none is told twice or never. */
static bool welcomed(int to, const struct heddle_msg_welcome *welcome, int verdict) {
    bool good = true;

    wake_held();
    heddle_peer_forget_all();
    heddle_arena_forget_all();
    if (!heddle_client_adopt_verdict(verdict)) {
        return false;
    }
    memcpy(token, welcome->token, sizeof(token));
    heddle_store_relaxed32(&heddle_client()->process.attach_count,
                           heddle_client()->process.attach_count + 1);
    pthread_mutex_lock(&lock);
    told = 0;
    for (uint32_t i = 0; good && i < heddle_device_count(); i++) {
        good = tell_device(to, i);
    }
    channel = to;
    set_state(HEDDLE_ATTACHED);
    pthread_mutex_unlock(&lock);
    return good;
}

/* Handles one message; the descriptor is closed after it unless it was taken over. */
static bool handle(const union heddle_message *message, int *descriptor) {
    switch (message->header.type) {
    case HEDDLE_MSG_PEER:
        if (message->peer.op == HEDDLE_PEER_REMOVE) {
            heddle_peer_remove(message->peer.slot);
        } else if (message->peer.op == HEDDLE_PEER_ADD &&
                   heddle_peer_add(&message->peer, *descriptor)) {
            *descriptor = -1;
        }
        return true;
    case HEDDLE_MSG_ARENA:
        (void)heddle_arena_adopt(&message->arena, *descriptor);
        return true;
    case HEDDLE_MSG_EVICT:
        heddle_log(HEDDLE_LOG_WARN, "evicted: %s", message->evict.text);
        return false;
    default:
        return true;
    }
}

static void drop_descriptor(int descriptor) {
    if (descriptor >= 0) {
        close(descriptor);
    }
}

/* Reads until the connection ends. */
static enum outcome serve(int from) {
    union heddle_message message;
    int descriptor = -1;

    while (is_ours(from) && heddle_channel_receive(from, &message, &descriptor)) {
        const bool known = heddle_message_complete(&message);
        const bool go_on = !known || handle(&message, &descriptor);

        drop_descriptor(descriptor);
        if (!go_on) {
            return GIVE_UP;
        }
    }
    return TRY_AGAIN;
}

static enum outcome greet(int to) {
    union heddle_message message;
    enum outcome outcome = TRY_AGAIN;
    int descriptor = -1;

    if (!send_hello(to) || !heddle_channel_receive(to, &message, &descriptor)) {
        return TRY_AGAIN;
    }
    if (!heddle_message_complete(&message) || message.header.type != HEDDLE_MSG_WELCOME) {
        drop_descriptor(descriptor);
        return TRY_AGAIN;
    }
    if (message.welcome.status != HEDDLE_STATUS_OK) {
        outcome = refused(&message.welcome);
    } else if (welcomed(to, &message.welcome, descriptor)) {
        drop_descriptor(descriptor);
        return serve(to);
    }
    drop_descriptor(descriptor);
    return outcome;
}

/* One connection from beginning to end; *lived tells whether it was ever welcomed. */
static enum outcome connect_once(bool *lived) {
    const uint32_t before = heddle_client()->process.attach_count;
    const int to = heddle_channel_open(heddle_settings()->socket);
    enum outcome outcome = TRY_AGAIN;

    if (to >= 0 && identify(to, &connected)) {
        outcome = greet(to);
    }
    *lived = heddle_client()->process.attach_count != before;
    set_state(outcome == GIVE_UP ? HEDDLE_OFF : HEDDLE_DETACHED);
    if (*lived && outcome == TRY_AGAIN) { /* else the daemon is there, and may have more to say */
        wake_held();
        heddle_client_keep_verdict();
    }
    if (to >= 0) {
        close_connection(to);
    }
    wake_held();
    return outcome;
}

/* The pid spreads the clients that all lost their daemon at the same moment. */
static void *help(void *unused) {
    const uint64_t spread = (uint64_t)((uint32_t)getpid() % 16U) * 1000 * 1000;
    uint64_t backoff = BACKOFF_MIN_NS;
    bool lived = false;

    while (connect_once(&lived) != GIVE_UP) {
        backoff = lived ? BACKOFF_MIN_NS : backoff;
        pause_ns(backoff + spread);
        backoff = backoff * 2 < BACKOFF_MAX_NS ? backoff * 2 : BACKOFF_MAX_NS;
    }
    return unused;
}

/* With every signal blocked: the program's handlers run on the program's threads. */
static bool start_helper(void) {
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all;
    sigset_t old;
    bool started = false;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, HELPER_STACK);
    started = pthread_create(&thread, &attributes, help, NULL) == 0;
    if (!started) {
        /* A program with much thread-local data needs larger stacks. */
        pthread_attr_setstacksize(&attributes, (size_t)8 << 20);
        started = pthread_create(&thread, &attributes, help, NULL) == 0;
    }
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return started;
}

static void await_result(void) {
    struct timespec begin;
    struct timespec now;
    int64_t left = ATTACH_WAIT_NS;

    clock_gettime(CLOCK_MONOTONIC, &begin);
    while (left > 0 && heddle_load_acquire32(&heddle_connect_state) == HEDDLE_ATTACHING) {
        heddle_futex_wait(&heddle_connect_state, HEDDLE_ATTACHING, (uint64_t)left);
        clock_gettime(CLOCK_MONOTONIC, &now);
        left = ATTACH_WAIT_NS -
               ((int64_t)(now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec - begin.tv_nsec);
    }
}

void heddle_connect_begin(void) {
    uint32_t expected = HEDDLE_UNINIT;

    if (heddle_cas_seq_cst32(&heddle_connect_state, &expected, HEDDLE_ATTACHING)) {
        heddle_fork_watch();
        if (!heddle_client_create() || !start_helper()) {
            set_state(HEDDLE_OFF);
            heddle_log(HEDDLE_LOG_ERROR, "no segment or no helper thread: not attached");
        }
    }
    await_result();
}

static bool bound(uint32_t slot) {
    return heddle_load_acquire32(&heddle_verdict()->devices[slot].generation) != 0;
}

void heddle_connect_device(uint32_t slot) {
    uint64_t waited = 0;
    uint64_t step = 20 * 1000;

    pthread_mutex_lock(&lock);
    if (channel >= 0 && is_ours(channel)) {
        (void)tell_device(channel, slot);
    }
    pthread_mutex_unlock(&lock);
    while (heddle_connect_alive() && !bound(slot) && waited < DEVICE_WAIT_NS) {
        pause_ns(step);
        waited += step;
        step = step < 2 * 1000 * 1000 ? step * 2 : step;
    }
}

void heddle_connect_reset(void) {
    pthread_mutex_init(&lock, NULL);
    if (channel >= 0 && is_ours(channel)) {
        close(channel);
    }
    channel = -1;
    memset(token, 0, sizeof(token));
    heddle_store_release32(&heddle_connect_state, HEDDLE_UNINIT);
}
