/*
 * From an address of the driver back to a name. cuGetProcAddress answers with the address of one of
 * the driver's own exports; knowing which, we answer with ours of the same name. So the driver
 * decides about versions and stream flavours, and no table of ours can be wrong about them.
 */
#include "names.h"

#include <stdlib.h>
#include <string.h>

const struct heddle_symbol_name heddle_names[HEDDLE_SYM_COUNT] = {
#define HEDDLE_SYMBOL_PASS(index, name, base) {#name, base},
#define HEDDLE_SYMBOL_GATE(index, name, base) {#name, base},
#define HEDDLE_SYMBOL_HOOK(index, name, base) {#name, base},
#include "../gen/symbols.inc"
#undef HEDDLE_SYMBOL_PASS
#undef HEDDLE_SYMBOL_GATE
#undef HEDDLE_SYMBOL_HOOK
};

static int compare(const void *a, const void *b) {
    const struct heddle_reverse_entry *left = a;
    const struct heddle_reverse_entry *right = b;

    if (left->address != right->address) {
        return left->address < right->address ? -1 : 1;
    }
    return left->index < right->index ? -1 : left->index > right->index;
}

void heddle_reverse_build(struct heddle_reverse *map, const heddle_code *real) {
    map->count = 0;
    for (uint32_t i = 0; i < HEDDLE_SYM_COUNT; i++) {
        if (real[i] != NULL) {
            map->entries[map->count].address = (uintptr_t)real[i];
            map->entries[map->count].index = i;
            map->count++;
        }
    }
    qsort(map->entries, map->count, sizeof(map->entries[0]), compare);
}

static uint32_t first_at(const struct heddle_reverse *map, uintptr_t address) {
    uint32_t low = 0;
    uint32_t high = map->count;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;

        if (map->entries[middle].address < address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Several exports can share one address: the name asked for comes first, then one with a hook. */
static int rank(uint32_t index, const char *asked) {
    const struct heddle_symbol_name *name = &heddle_names[index];
    int rank = heddle_hooks[index] != NULL ? 1 : 0;

    if (asked != NULL && strlen(asked) == name->base &&
        strncmp(asked, name->name, name->base) == 0) {
        rank += 2;
    }
    return rank;
}

int heddle_reverse_find(const struct heddle_reverse *map, const void *address, const char *asked) {
    int best = HEDDLE_REVERSE_UNKNOWN;

    for (uint32_t i = first_at(map, (uintptr_t)address);
         i < map->count && map->entries[i].address == (uintptr_t)address; i++) {
        const uint32_t index = map->entries[i].index;

        if (best < 0 || rank(index, asked) > rank((uint32_t)best, asked)) {
            best = (int)index;
        }
    }
    return best;
}
