/*
 * Keys of kernels, and the table in which a client finds what is known of them.
 *
 * A key says which kernel was launched and in which shape: the device time of the same code with
 * another grid is another one. Keys are kept over the life of a daemon, so this must not change.
 */
#ifndef HEDDLE_PROFILE_H
#define HEDDLE_PROFILE_H

#include <stddef.h>

#include "abi.h"
#include "atomic.h"

/* Folds a word into a hash, every bit of it into every bit. */
static inline uint64_t heddle_profile_mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15U;
    hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93U;
    return hash ^ hash >> 32;
}

/* The part of a key that is the same for all launches of one function, to be kept with it. */
static inline uint64_t heddle_profile_name(const char *name, size_t length) {
    uint64_t hash = length;

    for (size_t i = 0; i < length; i++) {
        hash = heddle_profile_mix(hash, (unsigned char)name[i]);
    }
    return hash;
}

/* The key of a launch; never 0. name is that of heddle_profile_name. */
static inline uint64_t heddle_profile_key(uint64_t name, const uint32_t grid[3],
                                          const uint32_t block[3], uint32_t dynamic_shared) {
    uint64_t hash = heddle_profile_mix(name, (uint64_t)grid[1] << 32 | grid[0]);

    hash = heddle_profile_mix(hash, (uint64_t)block[0] << 32 | grid[2]);
    hash = heddle_profile_mix(hash, (uint64_t)block[2] << 32 | block[1]);
    hash = heddle_profile_mix(hash, dynamic_shared);
    return hash != 0 ? hash : 1;
}

/* The key of a kernel that comes after another; never 0. */
static inline uint64_t heddle_profile_pair(uint64_t previous, uint64_t kernel) {
    const uint64_t hash = heddle_profile_mix(heddle_profile_mix(1, previous), kernel);

    return hash != 0 ? hash : 1;
}

/* Copies the entry of a key, and tells whether there is one. Takes no lock and never waits. */
static inline bool heddle_profile_find(const struct heddle_profile_entry *table, uint64_t key,
                                       struct heddle_profile_entry *out) {
    const uint64_t home = key >> HEDDLE_PROFILE_SHIFT;

    for (uint64_t i = 0; i < HEDDLE_PROFILE_PROBES; i++) {
        const struct heddle_profile_entry *entry = &table[(home + i) % HEDDLE_PROFILE_ENTRIES];
        const uint64_t found = heddle_load_acquire64(&entry->key);

        if (found == 0) {
            return false;
        }
        if (found == key) {
            /* Acquire, so that the key is read again after them: it may stand for others by then. */
            out->key = key;
            out->estimate_ns = heddle_load_acquire64(&entry->estimate_ns);
            out->gap_ns = heddle_load_acquire64(&entry->gap_ns);
            out->flags = heddle_load_acquire32(&entry->flags);
            out->sm_need = heddle_load_acquire32(&entry->sm_need);
            return heddle_load_relaxed64(&entry->key) == key;
        }
    }
    return false;
}

#endif /* HEDDLE_PROFILE_H */
