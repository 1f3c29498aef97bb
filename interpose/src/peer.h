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

/* The word that changes when the peer falls idle. */
const uint32_t *heddle_peer_doorbell(uint32_t slot);

/* Without a daemon: asks the kernel whether the peer's process lives, marks it dead if not. */
void heddle_peer_probe(uint32_t slot);

#endif /* HEDDLE_PEER_H */
