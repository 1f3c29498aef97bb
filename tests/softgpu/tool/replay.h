/* Replays a script of operations through the device model, in simulated time. */
#ifndef SOFTGPU_TOOL_REPLAY_H
#define SOFTGPU_TOOL_REPLAY_H

#include <stdio.h>

/* Reads a script, prints one line per operation on `out`; 0, or -1 with a message on `err`. */
int replay_script(FILE *in, FILE *out, FILE *err);

#endif /* SOFTGPU_TOOL_REPLAY_H */
