#include "channel.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { DESCRIPTORS_MAX = 4 };

int heddle_channel_open(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct timeval patience = {.tv_sec = 1};
    const int channel = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (channel < 0) {
        return -1;
    }
    strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
    /* Bounds a connect that waits for a full queue of connections, and every send. */
    (void)setsockopt(channel, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    if (connect(channel, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        close(channel);
        return -1;
    }
    return channel;
}

bool heddle_channel_send(int channel, const void *message, size_t size, int descriptor) {
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.bytes = {0}};
    struct iovec part = {.iov_base = (void *)(uintptr_t)message, .iov_len = size};
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
    ssize_t sent = 0;

    if (descriptor >= 0) {
        header.msg_control = control.bytes;
        header.msg_controllen = sizeof(control.bytes);
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(&control.header), &descriptor, sizeof(descriptor));
    }
    do {
        sent = sendmsg(channel, &header, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)size; /* our messages are far smaller than the socket's buffer */
}

/* Keeps the first descriptor, closes what nobody asked for. */
static void take_descriptors(struct msghdr *header, int *descriptor) {
    for (struct cmsghdr *part = CMSG_FIRSTHDR(header); part != NULL;
         part = CMSG_NXTHDR(header, part)) {
        int received[DESCRIPTORS_MAX];
        size_t count = 0;

        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        count = count < DESCRIPTORS_MAX ? count : DESCRIPTORS_MAX;
        memcpy(received, CMSG_DATA(part), count * sizeof(int));
        for (size_t i = 0; i < count; i++) {
            if (*descriptor < 0) {
                *descriptor = received[i];
            } else {
                close(received[i]);
            }
        }
    }
}

static bool receive_exactly(int channel, void *buffer, size_t size, int *descriptor) {
    char *to = buffer;

    while (size > 0) {
        union {
            struct cmsghdr header;
            char bytes[CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int))];
        } control;
        struct iovec part = {.iov_base = to, .iov_len = size};
        struct msghdr header = {.msg_iov = &part,
                                .msg_iovlen = 1,
                                .msg_control = control.bytes,
                                .msg_controllen = sizeof(control.bytes)};
        const ssize_t got = recvmsg(channel, &header, MSG_CMSG_CLOEXEC);

        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return false;
        }
        take_descriptors(&header, descriptor);
        to += got;
        size -= (size_t)got;
    }
    return true;
}

/*
 * The header alone first: the descriptor comes with a message's first byte, and a read that ends at
 * the header's end can only have met this message's.
 */
bool heddle_channel_receive(int channel, union heddle_message *message, int *descriptor) {
    const size_t head = sizeof(message->header);

    *descriptor = -1;
    memset(message, 0, sizeof(*message));
    if (receive_exactly(channel, message, head, descriptor) &&
        heddle_message_header_good(&message->header) &&
        receive_exactly(channel, message->bytes + head, message->header.size - head, descriptor)) {
        return true;
    }
    if (*descriptor >= 0) {
        close(*descriptor);
        *descriptor = -1;
    }
    return false;
}
