/* The driver's addresses, sorted, with the exports that stand at each. */
#ifndef HEDDLE_NAMES_H
#define HEDDLE_NAMES_H

#include "symbols.h"

enum { HEDDLE_REVERSE_UNKNOWN = -1 };

struct heddle_reverse_entry {
    uintptr_t address;
    uint32_t index;
};

struct heddle_reverse {
    uint32_t count;
    struct heddle_reverse_entry entries[HEDDLE_SYM_COUNT];
};

void heddle_reverse_build(struct heddle_reverse *map, const heddle_code *real);

/* The export that stands for an address, given the name asked for, or HEDDLE_REVERSE_UNKNOWN. */
int heddle_reverse_find(const struct heddle_reverse *map, const void *address, const char *asked);

#endif /* HEDDLE_NAMES_H */
