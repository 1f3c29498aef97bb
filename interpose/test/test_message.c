#include "message.h"

#include <stdlib.h>

#include "test.h"

static union heddle_message message_of(enum heddle_msg_type type, size_t size) {
    union heddle_message message;

    memset(&message, 0, sizeof(message));
    heddle_message_begin(&message.header, type, size);
    return message;
}

TEST("a header needs its magic and a size between itself and the largest") {
    static const struct {
        uint32_t magic;
        uint32_t size;
        bool good;
    } cases[] = {
        {HEDDLE_MSG_MAGIC, sizeof(struct heddle_msg_header), true},
        {HEDDLE_MSG_MAGIC, HEDDLE_MSG_MAX, true},
        {HEDDLE_MSG_MAGIC, HEDDLE_MSG_MAX + 1, false},
        {HEDDLE_MSG_MAGIC, sizeof(struct heddle_msg_header) - 1, false},
        {HEDDLE_MSG_MAGIC, 0, false},
        {HEDDLE_MSG_MAGIC, UINT32_MAX, false},
        {HEDDLE_MSG_MAGIC + 1, sizeof(struct heddle_msg_header), false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct heddle_msg_header header = {.magic = cases[i].magic, .size = cases[i].size};

        CHECK(heddle_message_header_good(&header) == cases[i].good);
    }
}

TEST("a longer message of a known type is read as far as it is known") {
    union heddle_message message =
        message_of(HEDDLE_MSG_PEER, sizeof(struct heddle_msg_peer) + 100);

    CHECK(heddle_message_complete(&message));
}

TEST("a message shorter than version 1 made it, or of an unknown type, says nothing") {
    union heddle_message message =
        message_of(HEDDLE_MSG_WELCOME, sizeof(struct heddle_msg_welcome) - 1);

    CHECK(!heddle_message_complete(&message));
    message = message_of((enum heddle_msg_type)99, sizeof(message));
    CHECK(!heddle_message_complete(&message));
    message = message_of(HEDDLE_MSG_HELLO, sizeof(struct heddle_msg_hello));
    CHECK(!heddle_message_complete(&message));
}

TEST("a text without an end gets one") {
    union heddle_message message = message_of(HEDDLE_MSG_EVICT, sizeof(struct heddle_msg_evict));

    memset(message.evict.text, 'x', sizeof(message.evict.text));
    CHECK(heddle_message_complete(&message));
    CHECK_EQUAL(strlen(message.evict.text), HEDDLE_TEXT_BYTES - 1);
}

/* The sanitized builds make this a test of bounds. */
TEST("any bytes are either a good message or refused") {
    srandom(11);
    for (int i = 0; i < 200000; i++) {
        union heddle_message message = message_of((enum heddle_msg_type)(random() % 9), 16);

        message.header.size = (uint32_t)random() % (HEDDLE_MSG_MAX + 64);
        for (int flips = (int)(random() % 4); flips > 0; flips--) {
            message.bytes[(size_t)random() % 64] = (unsigned char)random();
        }
        if (heddle_message_header_good(&message.header) && heddle_message_complete(&message)) {
            CHECK(message.header.size <= HEDDLE_MSG_MAX);
            CHECK(message.header.size >= sizeof(struct heddle_msg_peer));
        }
    }
}
