/* Reading the attach protocol; pure, so that it can be fuzzed. */
#ifndef HEDDLE_MESSAGE_H
#define HEDDLE_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "heddle/attach.h"

union heddle_message {
    struct heddle_msg_header header;
    struct heddle_msg_welcome welcome;
    struct heddle_msg_peer peer;
    struct heddle_msg_arena arena;
    struct heddle_msg_evict evict;
    unsigned char bytes[HEDDLE_MSG_MAX];
};

/* Whether a header can be trusted with its size: else the connection ends. */
bool heddle_message_header_good(const struct heddle_msg_header *header);

/*
 * Checks a message of a type we know against the size that version 1 gave it, and ends its text.
 * False if the type is unknown, or the message is too short to be what it says.
 */
bool heddle_message_complete(union heddle_message *message);

/* Fills in the header of a message of ours. */
void heddle_message_begin(struct heddle_msg_header *header, enum heddle_msg_type type, size_t size);

#endif /* HEDDLE_MESSAGE_H */
