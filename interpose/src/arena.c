#include "arena.h"

#include <sys/mman.h>

#include "client.h"
#include "futex.h"
#include "pages.h"

/*
 * One page of address space per device and class, for good: a page that is not an arena reads as
 * zeroes, so a pointer into it never dangles. In .bss, where unused pages cost nothing.
 */
static union {
    HEDDLE_ALIGNED(HEDDLE_PAGE_MAX) uint8_t bytes[HEDDLE_PAGE_MAX];
    struct heddle_arena_segment segment;
} pages[HEDDLE_DEVICES_MAX][HEDDLE_CLASSES_MAX];

static uint32_t mapped[HEDDLE_DEVICES_MAX];   /* bit n: the arena of class n is there */
static uint32_t own[HEDDLE_DEVICES_MAX];      /* class + 1 and member << 8 of the own bit; 0 none */
static uint32_t sleeping[HEDDLE_DEVICES_MAX]; /* threads of this process that sleep */

bool heddle_arena_adopt(const struct heddle_msg_arena *message, int descriptor) {
    const uint32_t device = message->device_slot;
    const uint32_t class = message->priority;
    const bool member = message->member != HEDDLE_MEMBER_NONE;
    void *page = NULL;

    if (device >= HEDDLE_DEVICES_MAX || class >= HEDDLE_CLASSES_MAX ||
        message->member < HEDDLE_MEMBER_NONE || message->member >= HEDDLE_MEMBERS_MAX ||
        !heddle_client_sealed(descriptor, sizeof(struct heddle_arena_segment))) {
        return false;
    }
    page = &pages[device][class];
    if (!heddle_pages_show(page, sizeof(struct heddle_arena_segment),
                           member ? PROT_READ | PROT_WRITE : PROT_READ, descriptor)) {
        return false;
    }
    if (member) {
        heddle_store_release32(&own[device], (class + 1) | (uint32_t)message->member << 8);
    } else if ((heddle_load_relaxed32(&own[device]) & 0xffU) == class + 1) {
        heddle_store_release32(&own[device], 0);
    }
    __atomic_or_fetch(&mapped[device], 1U << class, __ATOMIC_SEQ_CST);
    return true;
}

void heddle_arena_wake(uint32_t device, const uint32_t *doorbell) {
    uint32_t classes = heddle_load_acquire32(&mapped[device]);
    uint64_t sleepers = 0;

    while (classes != 0) {
        const struct heddle_arena_segment *arena =
            &pages[device][(uint32_t)__builtin_ctz(classes)].segment;

        for (uint32_t i = 0; i < HEDDLE_PEER_WORDS; i++) {
            sleepers |= heddle_load_seq_cst64(&arena->sleepers[i]);
        }
        classes &= classes - 1;
    }
    if (sleepers != 0) {
        heddle_futex_wake_few(doorbell);
    }
}

static void set_bit(uint32_t device, bool on) {
    const uint32_t where = heddle_load_acquire32(&own[device]);
    const uint32_t member = where >> 8;
    uint64_t *word = NULL;

    if (where == 0) {
        return;
    }
    word = &pages[device][(where & 0xffU) - 1].segment.sleepers[member / 64];
    if (on) {
        __atomic_or_fetch(word, (uint64_t)1 << (member % 64), __ATOMIC_SEQ_CST);
    } else {
        __atomic_and_fetch(word, ~((uint64_t)1 << (member % 64)), __ATOMIC_SEQ_CST);
    }
}

void heddle_arena_sleep(uint32_t device) {
    heddle_add_seq_cst32(&sleeping[device], 1);
    set_bit(device, true);
}

void heddle_arena_rise(uint32_t device) {
    if (heddle_add_seq_cst32(&sleeping[device], (uint32_t)-1) != 0) {
        return;
    }
    set_bit(device, false);
    /* Another thread may have gone to sleep between the two. */
    if (heddle_load_acquire32(&sleeping[device]) != 0) {
        set_bit(device, true);
    }
}

struct heddle_arena_segment *heddle_arena_own(uint32_t device, uint32_t *member) {
    const uint32_t where = heddle_load_acquire32(&own[device]);

    *member = where >> 8;
    return where != 0 ? &pages[device][(where & 0xffU) - 1].segment : NULL;
}

void heddle_arena_forget_all(void) {
    for (uint32_t device = 0; device < HEDDLE_DEVICES_MAX; device++) {
        const uint32_t old = heddle_swap_seq_cst32(&mapped[device], 0);

        heddle_store_release32(&own[device], 0);
        for (uint32_t class = 0; class < HEDDLE_CLASSES_MAX; class ++) {
            if ((old & 1U << class) != 0) {
                /* Writable: a thread may still be about to clear its bit in it. */
                heddle_pages_blank(&pages[device][class], HEDDLE_PAGE_MAX, PROT_READ | PROT_WRITE);
            }
        }
    }
}
