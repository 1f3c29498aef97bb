#include "message.h"

#include <string.h>

bool heddle_message_header_good(const struct heddle_msg_header *header) {
    return header->magic == HEDDLE_MSG_MAGIC && header->size >= sizeof(*header) &&
           header->size <= HEDDLE_MSG_MAX;
}

/* The part that version 1 has; a shorter message of that type says nothing. */
static size_t known_size(uint16_t type) {
    switch (type) {
    case HEDDLE_MSG_WELCOME:
        return sizeof(struct heddle_msg_welcome);
    case HEDDLE_MSG_PEER:
        return sizeof(struct heddle_msg_peer);
    case HEDDLE_MSG_ARENA:
        return sizeof(struct heddle_msg_arena);
    case HEDDLE_MSG_EVICT:
        return sizeof(struct heddle_msg_evict);
    default:
        return 0;
    }
}

bool heddle_message_complete(union heddle_message *message) {
    const size_t known = known_size(message->header.type);
    const size_t got = message->header.size;

    if (known == 0 || got < known) {
        return false;
    }
    if (message->header.type == HEDDLE_MSG_WELCOME) {
        message->welcome.text[HEDDLE_TEXT_BYTES - 1] = '\0';
    }
    if (message->header.type == HEDDLE_MSG_EVICT) {
        message->evict.text[HEDDLE_TEXT_BYTES - 1] = '\0';
    }
    return true;
}

void heddle_message_begin(struct heddle_msg_header *header, enum heddle_msg_type type,
                          size_t size) {
    memset(header, 0, sizeof(*header));
    header->magic = HEDDLE_MSG_MAGIC;
    header->version = HEDDLE_MSG_VERSION;
    header->type = (uint16_t)type;
    header->size = (uint32_t)size;
}
