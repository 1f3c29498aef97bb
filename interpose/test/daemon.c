#include "daemon.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "channel.h"
#include "futex.h"
#include "heddle/atomic.h"

enum { DEVICES = 16, PATIENCE_MS = 10000 };

struct test_daemon {
    int listener;
    int stop[2]; /* a pipe: closing its writing end stops the thread */
    enum heddle_status status;
    struct sockaddr_un address;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* Guarded by lock. */
    int client;
    struct heddle_msg_hello hello;
    struct heddle_msg_device devices[DEVICES];
    int device_count;
    struct heddle_verdict_segment *verdict;
    const struct heddle_client_segment *segment;
};

void *test_segment(size_t size, int *file) {
    void *mapped = NULL;

    *file = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (*file < 0 || ftruncate(*file, (off_t)size) != 0) {
        abort();
    }
    mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, *file, 0);
    if (mapped == MAP_FAILED || fcntl(*file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
        abort();
    }
    return mapped;
}

static void welcome(struct test_daemon *daemon, int client) {
    struct heddle_msg_welcome answer;
    int file = -1;

    memset(&answer, 0, sizeof(answer));
    heddle_message_begin(&answer.header, HEDDLE_MSG_WELCOME, sizeof(answer));
    answer.status = daemon->status;
    answer.abi_version = HEDDLE_ABI_VERSION;
    answer.generation = 1;
    memset(answer.token, 0x5a, sizeof(answer.token));
    if (daemon->status == HEDDLE_STATUS_OK) {
        daemon->verdict = test_segment(sizeof(*daemon->verdict), &file);
        daemon->verdict->header.magic = HEDDLE_MAGIC_VERDICT;
        daemon->verdict->header.abi_version = HEDDLE_ABI_VERSION;
    }
    (void)heddle_channel_send(client, &answer, sizeof(answer), file);
    if (file >= 0) {
        close(file);
    }
}

static void heard(struct test_daemon *daemon, int client, const union heddle_message *message,
                  int file) {
    pthread_mutex_lock(&daemon->lock);
    if (message->header.type == HEDDLE_MSG_HELLO) {
        memcpy(&daemon->hello, message, sizeof(daemon->hello));
        daemon->segment = mmap(NULL, sizeof(*daemon->segment), PROT_READ, MAP_SHARED, file, 0);
        daemon->client = client;
        welcome(daemon, client);
    } else if (message->header.type == HEDDLE_MSG_DEVICE && daemon->device_count < DEVICES) {
        const struct heddle_msg_device *device = (const void *)message;

        memcpy(&daemon->devices[daemon->device_count++], message, sizeof(*device));
        heddle_store_release32(&daemon->verdict->devices[device->slot].generation, 1);
    }
    pthread_cond_broadcast(&daemon->changed);
    pthread_mutex_unlock(&daemon->lock);
    if (file >= 0) {
        close(file);
    }
}

/* False when the test wants an end. */
static bool readable(const struct test_daemon *daemon, int file) {
    struct pollfd files[2] = {{.fd = daemon->stop[0], .events = POLLIN},
                              {.fd = file, .events = POLLIN}};

    return poll(files, 2, -1) > 0 && files[0].revents == 0;
}

static void *run(void *argument) {
    struct test_daemon *daemon = argument;

    while (readable(daemon, daemon->listener)) {
        const int client = accept4(daemon->listener, NULL, NULL, SOCK_CLOEXEC);
        union heddle_message message;
        int file = -1;

        while (readable(daemon, client) && heddle_channel_receive(client, &message, &file)) {
            heard(daemon, client, &message, file);
        }
        pthread_mutex_lock(&daemon->lock);
        daemon->client = -1;
        close(client);
        pthread_mutex_unlock(&daemon->lock);
    }
    return NULL;
}

struct test_daemon *test_daemon_start(const char *path, enum heddle_status status) {
    struct test_daemon *daemon = calloc(1, sizeof(*daemon));

    daemon->status = status;
    daemon->client = -1;
    daemon->address.sun_family = AF_UNIX;
    strncpy(daemon->address.sun_path, path, sizeof(daemon->address.sun_path) - 1);
    daemon->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    pthread_mutex_init(&daemon->lock, NULL);
    pthread_cond_init(&daemon->changed, NULL);
    if (pipe2(daemon->stop, O_CLOEXEC) != 0 ||
        bind(daemon->listener, (const void *)&daemon->address, sizeof(daemon->address)) != 0 ||
        listen(daemon->listener, 16) != 0 ||
        pthread_create(&daemon->thread, NULL, run, daemon) != 0) {
        abort();
    }
    return daemon;
}

void test_daemon_kill(struct test_daemon *daemon) {
    close(daemon->stop[1]);
    pthread_join(daemon->thread, NULL);
    close(daemon->stop[0]);
    close(daemon->listener);
    unlink(daemon->address.sun_path);
    if (daemon->verdict != NULL) {
        munmap(daemon->verdict, sizeof(*daemon->verdict));
    }
    free(daemon);
}

static void wait_for(struct test_daemon *daemon, bool (*ready)(struct test_daemon *, int), int n) {
    struct timespec limit;

    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += PATIENCE_MS / 1000;
    pthread_mutex_lock(&daemon->lock);
    while (!ready(daemon, n)) {
        if (pthread_cond_timedwait(&daemon->changed, &daemon->lock, &limit) != 0) {
            abort();
        }
    }
    pthread_mutex_unlock(&daemon->lock);
}

static bool attached(struct test_daemon *daemon, int n) {
    (void)n;
    return daemon->segment != NULL;
}

static bool has_device(struct test_daemon *daemon, int n) {
    return daemon->device_count > n;
}

struct heddle_verdict_segment *test_daemon_verdict(struct test_daemon *daemon) {
    wait_for(daemon, attached, 0);
    return daemon->verdict;
}

const struct heddle_client_segment *test_daemon_client(struct test_daemon *daemon) {
    wait_for(daemon, attached, 0);
    return daemon->segment;
}

struct heddle_msg_hello test_daemon_hello(struct test_daemon *daemon) {
    wait_for(daemon, attached, 0);
    return daemon->hello;
}

struct heddle_msg_device test_daemon_device(struct test_daemon *daemon, int number) {
    wait_for(daemon, has_device, number);
    return daemon->devices[number];
}

void test_daemon_send(struct test_daemon *daemon, const void *message, size_t size, int file) {
    wait_for(daemon, attached, 0);
    pthread_mutex_lock(&daemon->lock);
    if (!heddle_channel_send(daemon->client, message, size, file)) {
        abort();
    }
    pthread_mutex_unlock(&daemon->lock);
}

void test_daemon_publish(struct test_daemon *daemon, uint32_t device, uint32_t gate) {
    struct heddle_verdict_segment *verdict = test_daemon_verdict(daemon);

    heddle_store_release32(&verdict->devices[device].gate, gate);
    heddle_store_release32(&verdict->process.gate, gate);
    heddle_futex_wake(&verdict->devices[device].gate);
}
