/*
 * The client's own segment, and the verdict about it.
 *
 * Both are always there: before a daemon was met the segment is private memory and the verdict a
 * page of zeroes, which says that the gate is open. A new verdict is mapped over the old one in
 * place, so nobody ever holds a pointer to one that went away.
 */
#ifndef HEDDLE_CLIENT_H
#define HEDDLE_CLIENT_H

#include <stdbool.h>

#include "heddle/abi.h"
#include "heddle/atomic.h"

enum heddle_pages {
#if defined(__x86_64__)
    HEDDLE_PAGE_MAX = 4096,
#else
    HEDDLE_PAGE_MAX = 65536, /* kernels differ; the largest page serves all */
#endif
};

enum {
    HEDDLE_VERDICT_BYTES = (sizeof(struct heddle_verdict_segment) + HEDDLE_PAGE_MAX - 1) /
                           HEDDLE_PAGE_MAX * HEDDLE_PAGE_MAX,
};

/* Whole pages: only such can be exchanged. */
union heddle_verdict_page {
    HEDDLE_ALIGNED(HEDDLE_PAGE_MAX) uint8_t bytes[HEDDLE_VERDICT_BYTES];
    struct heddle_verdict_segment segment;
};

extern union heddle_verdict_page heddle_verdict_page;

static inline const struct heddle_verdict_segment *heddle_verdict(void) {
    return &heddle_verdict_page.segment;
}

extern struct heddle_client_segment *heddle_client_now;

static inline struct heddle_client_segment *heddle_client(void) {
    return __atomic_load_n(&heddle_client_now, __ATOMIC_ACQUIRE);
}

/* Makes the shared segment, sealed and locked. False leaves the private one in place. */
bool heddle_client_create(void);

/* The segment's descriptor, -1 if it is private. */
int heddle_client_descriptor(void);

/* Maps a verdict in place of the present one; closes nothing. False if it is not a verdict. */
bool heddle_client_adopt_verdict(int descriptor);

/*
 * Keeps the verdict of a daemon that is gone, but for what only a daemon has a use for: nobody reads
 * what launches would be measured and told for.
 */
void heddle_client_keep_verdict(void);

/* In the child of a fork: back to private memory and zeroes. */
void heddle_client_reset(void);

/* Whether a descriptor is a segment of at least this size that nobody can shrink. */
bool heddle_client_sealed(int descriptor, uint64_t size);

#endif /* HEDDLE_CLIENT_H */
