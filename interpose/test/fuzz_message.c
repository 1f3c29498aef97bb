/* libFuzzer entry for the message parser: clang -fsanitize=fuzzer,address,undefined. */
#include <stdlib.h>
#include <string.h>

#include "message.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
    union heddle_message message;

    memset(&message, 0, sizeof(message));
    memcpy(&message, data, size < sizeof(message) ? size : sizeof(message));
    if (!heddle_message_header_good(&message.header) || !heddle_message_complete(&message)) {
        return 0;
    }
    if (message.header.type == HEDDLE_MSG_EVICT &&
        strlen(message.evict.text) >= sizeof(message.evict.text)) {
        abort();
    }
    return 0;
}
