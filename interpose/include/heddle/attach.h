/*
 * The attach protocol, version 1: messages over a unix stream socket between a client and heddled.
 *
 * Every message is a struct heddle_msg_header followed by the body of its type, natural byte order
 * (both ends are on one machine). Descriptors travel with the first byte of the message that needs
 * them (SCM_RIGHTS). A reader skips a message of unknown type by its size, and reads as much of a
 * known body as both sides know: bodies only grow at the end. A header with a wrong magic, or a
 * size below the header or above HEDDLE_MSG_MAX, ends the connection.
 *
 * Life of a connection:
 *   client                                   heddled
 *   HELLO (+ client segment)            ->   credentials, pidfd, seals and header are checked
 *                                       <-   WELCOME (+ verdict segment), or WELCOME with a status
 *   DEVICE per device it opens          ->   verdict.devices[slot] is filled, generation != 0
 *                                       <-   PEER (+ that peer's client segment) add or remove
 *                                       <-   ARENA (+ arena segment)
 *                                       <-   EVICT, then the connection is closed
 *   BYE or close                        ->   all state of the client is dropped
 */
#ifndef HEDDLE_ATTACH_H
#define HEDDLE_ATTACH_H

#include "abi.h"

enum heddle_msg_limits {
    HEDDLE_MSG_MAGIC = 0x47534d48, /* "HMSG" */
    HEDDLE_MSG_VERSION = 1,
    HEDDLE_MSG_MAX = 4096,
    HEDDLE_NAME_BYTES = 64,
    HEDDLE_TEXT_BYTES = 160,
    HEDDLE_TOKEN_BYTES = 16,
    HEDDLE_GANG_MAX = 1024, /* ranks of one gang */
};

enum heddle_msg_type {
    HEDDLE_MSG_HELLO = 1,
    HEDDLE_MSG_WELCOME = 2,
    HEDDLE_MSG_DEVICE = 3,
    HEDDLE_MSG_PEER = 4,
    HEDDLE_MSG_ARENA = 5,
    HEDDLE_MSG_EVICT = 6,
    HEDDLE_MSG_BYE = 7,
};

enum heddle_status {
    HEDDLE_STATUS_OK = 0,
    HEDDLE_STATUS_VERSION = 1,  /* no common ABI version; do not come back */
    HEDDLE_STATUS_REFUSED = 2,  /* by policy; do not come back */
    HEDDLE_STATUS_FULL = 3,     /* too many clients; try again */
    HEDDLE_STATUS_INVALID = 4,  /* a message or the segment was malformed; do not come back */
    HEDDLE_STATUS_DRAINING = 5, /* heddled is stopping; try again */
};

enum heddle_hint {
    HEDDLE_HINT_NONE = -1,
};

enum heddle_peer_op {
    HEDDLE_PEER_REMOVE = 0,
    HEDDLE_PEER_ADD = 1,
};

enum heddle_member {
    HEDDLE_MEMBER_NONE = -1, /* the receiver only reads this arena */
};

struct heddle_msg_header {
    uint32_t magic;
    uint16_t version;
    uint16_t type;
    uint32_t size; /* bytes, header included */
    uint32_t reserved;
};

/* One descriptor: the client segment, sealed. */
struct heddle_msg_hello {
    struct heddle_msg_header header;
    uint32_t abi_version;
    uint32_t abi_oldest;
    uint32_t pid;                      /* in the client's namespace, for people only */
    int32_t priority_hint;             /* class asked for, HEDDLE_HINT_NONE = the grant's default */
    uint32_t weight_hint;              /* 0 = the grant's default */
    uint32_t gang_size;                /* ranks of the gang, 0 = the client is in none */
    uint8_t token[HEDDLE_TOKEN_BYTES]; /* of an earlier WELCOME after a daemon restart, or zero */
    char name[HEDDLE_NAME_BYTES];      /* workload name, NUL-padded, may be empty */
    char build[HEDDLE_NAME_BYTES];     /* version of the interposer, NUL-padded */
    char gang[HEDDLE_NAME_BYTES]; /* its name, NUL-padded: letters, digits, '.', '_', '-', empty
                                     if gang_size is 0 */
};

/* One descriptor if status is OK: the verdict segment, sealed. */
struct heddle_msg_welcome {
    struct heddle_msg_header header;
    uint32_t status;      /* enum heddle_status */
    uint32_t abi_version; /* the version both sides use from here on */
    uint64_t generation;  /* of heddled */
    uint64_t client_id;
    uint8_t token[HEDDLE_TOKEN_BYTES];
    char text[HEDDLE_TEXT_BYTES]; /* why not, NUL-padded */
};

/* The client opened this device under this slot. Never sent twice for a slot on one connection. */
struct heddle_msg_device {
    struct heddle_msg_header header;
    uint32_t slot; /* index into devices[] of the client's and the verdict segment */
    uint32_t reserved;
    uint8_t uuid[HEDDLE_UUID_BYTES]; /* of the GPU, or of the MIG device */
};

/* With ADD one descriptor: the peer's client segment. */
struct heddle_msg_peer {
    struct heddle_msg_header header;
    uint32_t op;          /* enum heddle_peer_op */
    uint32_t slot;        /* index into yields[] and corun[]; reused only after REMOVE */
    uint32_t device_slot; /* of the receiver */
    uint32_t peer_slot;   /* device slot in the peer's own segment */
};

/* One descriptor: the arena; mapped for writing only if member is not HEDDLE_MEMBER_NONE. */
struct heddle_msg_arena {
    struct heddle_msg_header header;
    uint32_t device_slot; /* of the receiver */
    uint32_t priority;    /* class that the arena belongs to */
    int32_t member;       /* index of the receiver's sleeper bit, or HEDDLE_MEMBER_NONE */
    uint32_t reserved;
};

struct heddle_msg_evict {
    struct heddle_msg_header header;
    char text[HEDDLE_TEXT_BYTES];
};

HEDDLE_ASSERT_LAYOUT(sizeof(struct heddle_msg_header) == 16);
HEDDLE_ASSERT_LAYOUT(sizeof(struct heddle_msg_hello) == 248);
HEDDLE_ASSERT_LAYOUT(sizeof(struct heddle_msg_welcome) == 216);
HEDDLE_ASSERT_LAYOUT(sizeof(struct heddle_msg_device) == 40);
HEDDLE_ASSERT_LAYOUT(sizeof(struct heddle_msg_peer) == 32);
HEDDLE_ASSERT_LAYOUT(sizeof(struct heddle_msg_arena) == 32);
HEDDLE_ASSERT_LAYOUT(sizeof(struct heddle_msg_evict) == 176);

#endif /* HEDDLE_ATTACH_H */
