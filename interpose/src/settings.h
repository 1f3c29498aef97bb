/* What the environment says, read once. */
#ifndef HEDDLE_SETTINGS_H
#define HEDDLE_SETTINGS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "heddle/attach.h"

struct heddle_settings {
    bool disabled;                /* HEDDLE_DISABLE=1 */
    int32_t priority_hint;        /* HEDDLE_PRIORITY, a class or its name */
    uint32_t weight_hint;         /* HEDDLE_WEIGHT */
    char real[PATH_MAX];          /* HEDDLE_REAL_LIBCUDA, empty = search */
    char socket[108];             /* HEDDLE_SOCKET */
    char name[HEDDLE_NAME_BYTES]; /* HEDDLE_NAME */
    char gang[HEDDLE_NAME_BYTES]; /* HEDDLE_GANG, a name and a size; empty = none */
    uint32_t gang_size;
};

const struct heddle_settings *heddle_settings(void);

/*
 * Reads NAME:N: whose rank the process is, and how many ranks there are. name has HEDDLE_NAME_BYTES
 * bytes. False, with an empty name and no size, if it is neither.
 */
bool heddle_settings_gang(const char *text, char *name, uint32_t *size);

/* Reads a class as people write it; HEDDLE_HINT_NONE if it is neither a name nor 0 to 9. */
int32_t heddle_settings_class(const char *text);

#endif /* HEDDLE_SETTINGS_H */
