/* Opening the state file, the robust lock, and time. */
#define _GNU_SOURCE
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(pthread_mutex_t) <= sizeof(((struct softgpu_header *)0)->lock),
               "the C library's mutex fits");

/* A waiter for the lock looks again this often, whether or not it is woken. */
static const uint64_t SG_LOCK_LOOK_NS = 50000000;
/* And says who holds it when it has waited for so long. */
static const uint64_t SG_LOCK_TELL_NS = 5000000000u;

static pthread_mutex_t *mutex_of(const struct sg_node *node) {
    return (pthread_mutex_t *)(uintptr_t)node->lock_page->lock;
}

uint64_t sg_monotonic_ns(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

int64_t sg_state_now(const struct softgpu_state *st) {
    return (int64_t)((double)(sg_monotonic_ns() - st->header.epoch_ns) * st->header.speed);
}

const char *sg_state_path(const char *path, char *buf, size_t size) {
    if (path == NULL || *path == '\0') {
        path = getenv("SOFTGPU_STATE");
    }
    if (path == NULL || *path == '\0') {
        snprintf(buf, size, "/dev/shm/softgpu-%u", (unsigned)getuid());
        path = buf;
    }
    return path;
}

/* Whole-file locks around creation; separate from the robust mutex, which does not exist yet. */
static int lock_file(int fd, short type) {
    struct flock fl = {.l_type = type, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
    int rc;
    do {
        rc = fcntl(fd, F_OFD_SETLKW, &fl);
    } while (rc != 0 && errno == EINTR);
    return rc == 0 ? 0 : -errno;
}

static int init_mutex(const struct sg_node *node) {
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    int rc = pthread_mutex_init(mutex_of(node), &attr);
    pthread_mutexattr_destroy(&attr);
    return -rc;
}

static uint64_t hash_of(const char *s) {
    uint64_t h = 14695981039346656037u;
    for (; *s != '\0'; s++) {
        h = (h ^ (uint8_t)*s) * 1099511628211u;
    }
    return h;
}

static int check(const struct softgpu_header *h) {
    return h->magic == SOFTGPU_MAGIC && h->version == SOFTGPU_VERSION &&
                   h->size == sizeof(struct softgpu_state)
               ? 0
               : -EPROTO;
}

static void *map_shared(int fd, size_t size) {
    void *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return map == MAP_FAILED ? NULL : map;
}

/* With the creation lock held: makes the file complete, or checks that it is. */
static int complete(struct sg_node *node, const char *path, const char *gpus) {
    struct stat sb;
    if (fstat(node->fd, &sb) != 0) {
        return -errno;
    }
    if (sb.st_size != 0 && sb.st_size != (off_t)sizeof(struct softgpu_state)) {
        return -EPROTO;
    }
    if (sb.st_size == 0 && ftruncate(node->fd, (off_t)sizeof(struct softgpu_state)) != 0) {
        return -errno;
    }
    node->st = map_shared(node->fd, sizeof(struct softgpu_state));
    node->lock_page = map_shared(node->fd, sizeof(struct softgpu_header));
    if (node->st == NULL || node->lock_page == NULL) {
        return -errno;
    }
    if (__atomic_load_n(&node->st->header.ready, __ATOMIC_ACQUIRE) == 1) {
        return check(&node->st->header);
    }
    if (gpus == NULL) {
        gpus = getenv("SOFTGPU_GPUS");
    }
    int rc = sg_state_fill(node->st, gpus, sg_monotonic_ns(), hash_of(path));
    if (rc == 0) {
        rc = init_mutex(node);
    }
    if (rc == 0) {
        __atomic_store_n(&node->st->header.ready, 1, __ATOMIC_RELEASE);
    }
    return rc;
}

int sg_state_open(struct sg_node *node, const char *path, const char *gpus) {
    char buf[64];
    path = sg_state_path(path, buf, sizeof(buf));
    node->st = NULL;
    node->lock_page = NULL;
    node->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (node->fd < 0) {
        return -errno;
    }
    int rc = lock_file(node->fd, F_WRLCK);
    if (rc == 0) {
        rc = complete(node, path, gpus);
        if (rc == -EINVAL && node->st != NULL && node->st->header.ready == 0) {
            unlink(path); /* the models are not known: it never became a node */
        }
        lock_file(node->fd, F_UNLCK);
    }
    if (rc != 0) {
        sg_state_close(node);
    }
    return rc;
}

void sg_state_close(struct sg_node *node) {
    if (node->st != NULL) {
        munmap(node->st, sizeof(struct softgpu_state));
    }
    if (node->lock_page != NULL) {
        munmap(node->lock_page, sizeof(struct softgpu_header));
    }
    if (node->fd >= 0) {
        close(node->fd);
    }
    node->st = NULL;
    node->lock_page = NULL;
    node->fd = -1;
}

void sg_state_part(const struct sg_node *node) {
    /* Where it fails, what a late thread does is seen by others, as without this. */
    (void)mmap(node->st, sizeof(struct softgpu_state), PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_FIXED, node->fd, 0);
}

/* The C library keeps the holder's thread id in the first word, for the kernel. */
static uint32_t holder_of(const struct sg_node *node) {
    return (uint32_t)__atomic_load_n(node->lock_page->lock, __ATOMIC_RELAXED) & FUTEX_TID_MASK;
}

/* A stopped process that holds the lock stops the node. Nothing can be done about it, as the state
 * may be half changed; but whoever looks for the reason shall find it. */
static void say_who_holds(const struct sg_node *node) {
    char path[64];
    char stat[128] = "";
    uint32_t holder = holder_of(node);
    snprintf(path, sizeof(path), "/proc/%u/stat", holder);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, stat, sizeof(stat) - 1);
    if (fd >= 0) {
        close(fd);
    }
    const char *state = n > 0 ? strrchr(stat, ')') : NULL;
    fprintf(stderr, "softgpu: the lock of the node has been held for 5 s by thread %u, state %c\n",
            holder, state != NULL && state[1] == ' ' ? state[2] : '?');
}

/* A robust mutex wakes one waiter. If that one is killed before it takes the lock, and a newcomer
 * has taken it meanwhile without seeing anybody wait, nobody wakes the others: so none of them
 * sleeps for good. */
static int lock_at_last(const struct sg_node *node, uint64_t give_up_ns) {
    int rc = pthread_mutex_trylock(mutex_of(node));
    uint64_t began = rc == EBUSY ? sg_monotonic_ns() : 0;
    for (bool said = false; rc == EBUSY || rc == ETIMEDOUT;) {
        uint64_t now = sg_monotonic_ns();
        if (now - began >= give_up_ns) {
            return ETIMEDOUT;
        }
        if (now - began >= SG_LOCK_TELL_NS && !said) {
            said = true;
            say_who_holds(node);
        }
        uint64_t left = give_up_ns - (now - began);
        uint64_t until = now + (left < SG_LOCK_LOOK_NS ? left : SG_LOCK_LOOK_NS);
        struct timespec ts = {.tv_sec = (time_t)(until / 1000000000u),
                              .tv_nsec = (long)(until % 1000000000u)};
        rc = pthread_mutex_clocklock(mutex_of(node), CLOCK_MONOTONIC, &ts);
    }
    return rc;
}

bool sg_state_lock_within(const struct sg_node *node, uint64_t ns) {
    int rc = lock_at_last(node, ns);
    if (rc == EOWNERDEAD) {
        sg_engine_repair(node->st, sg_state_now(node->st));
        pthread_mutex_consistent(mutex_of(node));
    }
    return rc != ETIMEDOUT;
}

void sg_state_lock(const struct sg_node *node) {
    (void)sg_state_lock_within(node, UINT64_MAX);
}

void sg_state_unlock(const struct sg_node *node) {
    pthread_mutex_unlock(mutex_of(node));
}
