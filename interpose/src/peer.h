/* Higher-class clients, as seen through their segments. */
#ifndef HEDDLE_PEER_H
#define HEDDLE_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "heddle/attach.h"
#include "heddle/gate.h"

/* Takes over the descriptor if it returns true. */
bool heddle_peer_add(const struct heddle_msg_peer *message, int descriptor);
void heddle_peer_remove(uint32_t slot);
void heddle_peer_forget_all(void);
void heddle_peer_reset(void);

/* Reads once what a peer published about its device. A peer known to be dead is quiet. */
void heddle_peer_read(uint32_t slot, struct heddle_gate_peer *peer);

/*
 * Reads once all peers that a verdict says to yield to, in its order, and returns how many. slots and
 * found have HEDDLE_PEERS_MAX places.
 */
uint32_t heddle_peer_read_all(const struct heddle_verdict_device *verdict, uint32_t *slots,
                              struct heddle_gate_peer *found);

/* The word that changes when the peer falls idle. */
const uint32_t *heddle_peer_doorbell(uint32_t slot);

/*
 * Sleeps while the doorbell has this value, at most for so long, and passes a wake-up on. rings
 * counts over one wait how often the doorbell ended a sleep.
 */
void heddle_peer_sleep(const uint32_t *doorbell, uint32_t value, uint64_t timeout_ns,
                       uint32_t *rings);

/* How often a waiter of this process paused because doorbells rang in vain. */
uint64_t heddle_peer_pauses(void);

/* Without a daemon: asks the kernel whether the peer's process lives, marks it dead if not. */
void heddle_peer_probe(uint32_t slot);

#endif /* HEDDLE_PEER_H */
