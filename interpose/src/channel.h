/* Whole messages over the attach socket, each with at most one descriptor. */
#ifndef HEDDLE_CHANNEL_H
#define HEDDLE_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>

#include "message.h"

/* Connects; -1 if there is nobody. */
int heddle_channel_open(const char *path);

bool heddle_channel_send(int channel, const void *message, size_t size, int descriptor);

/* Waits for a message; *descriptor is -1 or the caller's. False when the connection is over. */
bool heddle_channel_receive(int channel, union heddle_message *message, int *descriptor);

#endif /* HEDDLE_CHANNEL_H */
