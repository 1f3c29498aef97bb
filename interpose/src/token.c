#include "token.h"

#include <pthread.h>
#include <stddef.h>

#include "arena.h"
#include "client.h"
#include "heddle/gate.h"

/* The launches of this process that wait for others; the longest speaks for all of them. */
static struct {
    pthread_mutex_t lock;
    uint32_t count;
    uint64_t longest_ns;
} wants[HEDDLE_DEVICES_MAX];

static void publish(uint32_t device) {
    uint32_t member = 0;
    struct heddle_arena_segment *arena = heddle_arena_own(device, &member);

    heddle_store_relaxed64(&heddle_client()->devices[device].want_ns, wants[device].longest_ns);
    if (arena != NULL) {
        heddle_store_relaxed64(&arena->heads[member], wants[device].longest_ns);
    }
}

void heddle_token_want(uint32_t device, uint64_t estimate_ns) {
    const uint64_t estimate = estimate_ns != 0 ? estimate_ns : 1; /* 0 would say that none waits */

    pthread_mutex_lock(&wants[device].lock);
    wants[device].count++;
    if (estimate > wants[device].longest_ns) {
        wants[device].longest_ns = estimate;
        publish(device);
    }
    pthread_mutex_unlock(&wants[device].lock);
}

void heddle_token_unwant(uint32_t device) {
    pthread_mutex_lock(&wants[device].lock);
    if (--wants[device].count == 0) {
        wants[device].longest_ns = 0;
        publish(device);
    }
    pthread_mutex_unlock(&wants[device].lock);
}

bool heddle_token_best(uint32_t device, uint64_t estimate_ns, uint64_t gap_ns,
                       uint32_t margin_ppm) {
    const uint64_t longest = (uint64_t)HEDDLE_GATE_SECONDS_MAX * 1000000000U;
    uint32_t member = 0;
    const struct heddle_arena_segment *arena = heddle_arena_own(device, &member);

    for (uint32_t i = 0; arena != NULL && i < HEDDLE_MEMBERS_MAX; i++) {
        const uint64_t head = heddle_load_relaxed64(&arena->heads[i]);
        const bool longer = head > estimate_ns || (head == estimate_ns && i < member);

        if (i != member && head != 0 && longer &&
            heddle_gate_widen(heddle_gate_clamp(head, longest), margin_ppm) <= gap_ns) {
            return false;
        }
    }
    return true;
}

/*
 * The expiry is the lock: whoever changes it from a time that is over has the token until the time it
 * wrote. One that is absurdly far away was written by no honest member, and is over, too. The bound
 * is wide: the reader's idea of now can be older than the writer's.
 */
uint64_t heddle_token_claim(uint32_t device, uint64_t now_ns, uint64_t length_ns,
                            uint64_t longest_ns) {
    const uint64_t absurd = (uint64_t)HEDDLE_GATE_SECONDS_MAX * 1000000000U;
    const uint64_t length = heddle_gate_clamp(length_ns != 0 ? length_ns : 1, longest_ns);
    uint32_t member = 0;
    struct heddle_arena_segment *arena = heddle_arena_own(device, &member);
    uint64_t expiry = 0;

    if (arena == NULL || length == 0) {
        return 0;
    }
    expiry = heddle_load_seq_cst64(&arena->token_expiry_ns);
    if ((expiry > now_ns && expiry - now_ns <= absurd) ||
        !heddle_cas_seq_cst64(&arena->token_expiry_ns, &expiry, now_ns + length)) {
        return 0;
    }
    (void)heddle_swap_seq_cst64(&arena->token_holder, (uint64_t)member + 1);
    return now_ns + length;
}

/* A later claim never has the same expiry: it began when this one was over. */
void heddle_token_release(uint32_t device, uint64_t claim) {
    uint32_t member = 0;
    struct heddle_arena_segment *arena = heddle_arena_own(device, &member);
    uint64_t self = (uint64_t)member + 1;

    if (arena == NULL || claim == 0) {
        return;
    }
    (void)heddle_cas_seq_cst64(&arena->token_holder, &self, 0);
    (void)heddle_cas_seq_cst64(&arena->token_expiry_ns, &claim, 0);
}

uint64_t heddle_token_expiry(uint32_t device) {
    uint32_t member = 0;
    const struct heddle_arena_segment *arena = heddle_arena_own(device, &member);

    return arena != NULL ? heddle_load_relaxed64(&arena->token_expiry_ns) : UINT64_MAX;
}

void heddle_token_reset(void) {
    for (uint32_t i = 0; i < HEDDLE_DEVICES_MAX; i++) {
        pthread_mutex_init(&wants[i].lock, NULL);
        wants[i].count = 0;
        wants[i].longest_ns = 0;
    }
}
