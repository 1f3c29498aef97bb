#include "peer.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "client.h"
#include "futex.h"
#include "pages.h"

/*
 * A holder that rings and holds on, over and over, would make its waiters spin. After so many vain
 * rings in one wait they answer no sooner than this.
 */
enum {
    VAIN_RINGS_MAX = 32,
    VAIN_PAUSE_NS = 100 * 1000,
};

/*
 * Address space for every peer slot, for good. A slot without a peer reads as zeroes: idle since
 * ever. So a launch that still looks at a peer that is being removed sees it quiet, and nothing
 * dangles. Mapped is the part of a client's segment that peers may look at, up to its devices.
 */
struct shown {
    struct heddle_segment_header header;
    struct heddle_client_process process;
    struct heddle_client_device devices[HEDDLE_DEVICES_MAX];
};

HEDDLE_ASSERT_LAYOUT(sizeof(struct shown) == offsetof(struct heddle_client_segment, threads));

enum {
    STRIDE = (sizeof(struct shown) + HEDDLE_PAGE_MAX - 1) / HEDDLE_PAGE_MAX * HEDDLE_PAGE_MAX,
};

static union {
    HEDDLE_ALIGNED(HEDDLE_PAGE_MAX) uint8_t bytes[STRIDE];
    struct shown segment;
} peers[HEDDLE_PEERS_MAX];

static struct {
    uint32_t device; /* slot in the peer's own segment */
    uint32_t dead;
    int file; /* descriptor + 1, 0 = none; kept for the probe */
} info[HEDDLE_PEERS_MAX];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards file */

static uint64_t pauses;

bool heddle_peer_add(const struct heddle_msg_peer *message, int descriptor) {
    const uint32_t slot = message->slot;

    if (slot >= HEDDLE_PEERS_MAX || message->peer_slot >= HEDDLE_DEVICES_MAX ||
        !heddle_client_sealed(descriptor, sizeof(struct heddle_client_segment))) {
        return false;
    }
    heddle_peer_remove(slot);
    heddle_store_release32(&info[slot].device, message->peer_slot);
    if (!heddle_pages_show(&peers[slot], sizeof(struct shown), PROT_READ, descriptor)) {
        return false;
    }
    pthread_mutex_lock(&lock);
    info[slot].file = descriptor + 1;
    pthread_mutex_unlock(&lock);
    heddle_store_release32(&info[slot].dead, 0);
    return true;
}

void heddle_peer_remove(uint32_t slot) {
    int file = 0;

    if (slot >= HEDDLE_PEERS_MAX) {
        return;
    }
    heddle_store_release32(&info[slot].dead, 1);
    pthread_mutex_lock(&lock);
    file = info[slot].file;
    info[slot].file = 0;
    pthread_mutex_unlock(&lock);
    if (file != 0) {
        heddle_pages_blank(&peers[slot], STRIDE, PROT_READ);
        close(file - 1);
    }
}

void heddle_peer_forget_all(void) {
    for (uint32_t slot = 0; slot < HEDDLE_PEERS_MAX; slot++) {
        heddle_peer_remove(slot);
    }
}

/* In the child of a fork, where somebody may have held the lock. */
void heddle_peer_reset(void) {
    pthread_mutex_init(&lock, NULL);
    heddle_peer_forget_all();
}

static const struct heddle_client_device *device_of(uint32_t slot) {
    return &peers[slot].segment.devices[heddle_load_acquire32(&info[slot].device)];
}

void heddle_peer_read(uint32_t slot, struct heddle_gate_peer *peer) {
    const struct heddle_client_device *device = device_of(slot);

    *peer = (struct heddle_gate_peer){0};
    if (heddle_load_acquire32(&info[slot].dead) == 0) {
        peer->busy = heddle_load_seq_cst32(&device->busy_streams);
        peer->idle_since_ns = heddle_load_relaxed64(&device->idle_since_ns);
        peer->next_launch_ns = heddle_load_relaxed64(&device->next_launch_ns);
        peer->want_ns = heddle_load_relaxed64(&device->want_ns);
    }
}

uint32_t heddle_peer_read_all(const struct heddle_verdict_device *verdict, uint32_t *slots,
                              struct heddle_gate_peer *found) {
    uint32_t count = 0;

    for (uint32_t word = 0; word < HEDDLE_PEER_WORDS; word++) {
        const uint64_t corun = heddle_load_relaxed64(&verdict->corun[word]);
        uint64_t yields = heddle_load_relaxed64(&verdict->yields[word]);

        while (yields != 0) {
            const uint32_t bit = (uint32_t)__builtin_ctzll(yields);

            slots[count] = word * 64 + bit;
            heddle_peer_read(word * 64 + bit, &found[count]);
            found[count].corun = (corun >> bit & 1U) != 0;
            count++;
            yields &= yields - 1;
        }
    }
    return count;
}

const uint32_t *heddle_peer_doorbell(uint32_t slot) {
    return &device_of(slot)->doorbell;
}

void heddle_peer_sleep(const uint32_t *doorbell, uint32_t value, uint64_t timeout_ns,
                       uint32_t *rings) {
    const struct timespec vain = {.tv_nsec = VAIN_PAUSE_NS};
    const enum heddle_futex_end end = heddle_futex_wait(doorbell, value, timeout_ns);

    if (end == HEDDLE_FUTEX_WOKEN) {
        heddle_futex_wake_few(doorbell); /* the holder itself woke no more than that */
    }
    if (end != HEDDLE_FUTEX_TIMED_OUT && ++*rings > VAIN_RINGS_MAX) {
        heddle_add_seq_cst64(&pauses, 1);
        (void)nanosleep(&vain, NULL);
    }
}

uint64_t heddle_peer_pauses(void) {
    return heddle_load_relaxed64(&pauses);
}

void heddle_peer_probe(uint32_t slot) {
    struct flock held = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
    int file = 0;

    pthread_mutex_lock(&lock);
    file = info[slot].file;
    if (file != 0 && fcntl(file - 1, F_GETLK, &held) == 0 && held.l_type == F_UNLCK) {
        heddle_store_release32(&info[slot].dead, 1);
    }
    pthread_mutex_unlock(&lock);
}
