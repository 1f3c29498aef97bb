#include "event.h"

#include <string.h>

#include "heddle/atomic.h"
#include "stream.h"

/*
 * Fixed and lossy: an event that finds no place is forgotten, and its completion then proves
 * nothing, which is always safe. A value holds the number of the stream's entry above its mark.
 */
enum { ENTRIES = 4096, PROBES = 8, MARK_BITS = 52 };

static struct {
    uint64_t key;
    uint64_t value;
} table[ENTRIES];

static uint32_t place(uint64_t key) {
    return (uint32_t)((key * 0x9e3779b97f4a7c15U) >> 52);
}

static uint32_t find(uint64_t key, uint64_t otherwise) {
    for (uint32_t i = 0; i < PROBES; i++) {
        const uint32_t at = (place(key) + i) % ENTRIES;
        const uint64_t found = heddle_load_acquire64(&table[at].key);

        if (found == key || found == otherwise) {
            return at;
        }
    }
    return ENTRIES;
}

void heddle_event_set(void *event, const struct heddle_settle *settle) {
    const uint64_t key = (uint64_t)(uintptr_t)event;
    const uint64_t mark_mask = ((uint64_t)1 << MARK_BITS) - 1;
    uint64_t expected = 0;
    uint32_t at = 0;

    if (settle->entry == NULL || settle->mark == 0) {
        heddle_event_forget(event);
        return;
    }
    at = find(key, key);
    if (at == ENTRIES) {
        at = find(key, 0);
        if (at == ENTRIES || !heddle_cas_seq_cst64(&table[at].key, &expected, key)) {
            return;
        }
    }
    heddle_store_release64(&table[at].value, (uint64_t)heddle_stream_number(settle->entry)
                                                     << MARK_BITS |
                                                 (settle->mark & mark_mask));
}

void heddle_event_get(void *event, struct heddle_settle *settle) {
    const uint64_t mark_mask = ((uint64_t)1 << MARK_BITS) - 1;
    const uint64_t key = (uint64_t)(uintptr_t)event;
    uint32_t at = ENTRIES;
    uint64_t value = 0;

    *settle = (struct heddle_settle){0};
    if (key != 0 && heddle_stream_any()) {
        at = find(key, key);
    }
    if (at != ENTRIES) {
        value = heddle_load_acquire64(&table[at].value);
        settle->entry = heddle_stream_at((uint32_t)(value >> MARK_BITS));
        settle->mark = value & mark_mask;
    }
}

void heddle_event_forget(void *event) {
    const uint64_t key = (uint64_t)(uintptr_t)event;
    const uint32_t at = key != 0 ? find(key, key) : ENTRIES;

    if (at != ENTRIES) {
        heddle_store_release64(&table[at].value, 0);
        heddle_store_release64(&table[at].key, 0);
    }
}

void heddle_event_reset(void) {
    memset(table, 0, sizeof(table));
}
