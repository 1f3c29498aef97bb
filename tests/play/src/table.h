/*
 * The kernel table: one row per launch, in launch order.
 *
 * CSV with a header line. The columns Name, SM_usage and Duration must be there, Profile may be;
 * others (Memory_footprint) are read past. Quoting as in RFC 4180. Kernel names are C++ signatures,
 * full of commas, and the profilers that write such tables do not always quote them: an unquoted
 * row with too many fields gives the surplus to the name.
 */
#ifndef PLAY_TABLE_H
#define PLAY_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "error.h"

enum play_profile {
    PLAY_PROFILE_UNKNOWN = -1,
    PLAY_PROFILE_MEMORY = 0,
    PLAY_PROFILE_COMPUTE = 1,
};

struct play_kernel {
    char *name;
    enum play_profile profile;
    uint32_t sms;     /* SMs that the grid needs, may be more than the device has */
    uint64_t time_ns; /* alone on the device */
    size_t entry;     /* index into the entries of the PTX module, set by play_ptx_build */
};

struct play_table {
    struct play_kernel *kernels;
    size_t count;
};

/* Parses size bytes of text; name is for messages. On false *out holds nothing to free. */
bool play_table_parse(const char *text, size_t size, const char *name, struct play_table *out,
                      struct play_error *err);
bool play_table_load(const char *path, struct play_table *out, struct play_error *err);
void play_table_free(struct play_table *table);

/* Device time of one pass through the table. */
uint64_t play_table_time_ns(const struct play_table *table);

#endif /* PLAY_TABLE_H */
