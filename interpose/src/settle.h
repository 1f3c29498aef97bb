/* Learning from a wait that returned. */
#ifndef HEDDLE_SETTLE_H
#define HEDDLE_SETTLE_H

#include <stdbool.h>
#include <stdint.h>

struct heddle_stream;

struct heddle_settle {
    struct heddle_stream *entry;
    const void *context;
    uint64_t mark;
    bool all;
    bool blocking_only;
};

/* Before waiting for one stream; for a whole context; for all that the legacy stream is ordered
 * with, as a synchronous copy does. */
void heddle_settle_stream(struct heddle_settle *settle, void *stream, bool per_thread);
void heddle_settle_context(struct heddle_settle *settle, const void *context);
void heddle_settle_copy(struct heddle_settle *settle, bool per_thread);

/* After it, with the driver's answer, which is returned. */
int heddle_settle_end(const struct heddle_settle *settle, int result);

#endif /* HEDDLE_SETTLE_H */
