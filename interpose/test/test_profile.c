/* Keys, and the table as heddled wrote it into the saved dump of version 1. */
#include "test.h"

#include <stdint.h>
#include <stdlib.h>

#include "heddle/profile.h"

static const uint32_t grid[3] = {108, 2, 1};
static const uint32_t block[3] = {128, 4, 1};

static uint64_t key_of(const char *name) {
    return heddle_profile_key(heddle_profile_name(name, strlen(name)), grid, block, 49152);
}

TEST("a key is the same for ever, as it is kept on disk") {
    CHECK_EQUAL(key_of("saxpy"), 0xf8856a5e4a6d70dbU);
    CHECK_EQUAL(key_of(""), 0x8a62130398752b14U);
    CHECK_EQUAL(heddle_profile_pair(1, 2), 0xc99d164addff6dc2U);
}

TEST("each part of a launch changes its key") {
    const uint64_t name = heddle_profile_name("saxpy", 5);
    const uint64_t key = key_of("saxpy");

    CHECK(key != key_of("saxpy2"));
    CHECK(key != key_of("saxp"));
    CHECK(key != heddle_profile_key(name, grid, block, 49153));
    for (int i = 0; i < 3; i++) {
        uint32_t other[3] = {grid[0], grid[1], grid[2]};

        other[i]++;
        CHECK(key != heddle_profile_key(name, other, block, 49152));
        memcpy(other, block, sizeof(other));
        other[i]++;
        CHECK(key != heddle_profile_key(name, grid, other, 49152));
    }
    CHECK(key != heddle_profile_key(name, block, grid, 49152));
}

TEST("a pair is none of its kernels, nor the pair the other way round") {
    CHECK(heddle_profile_pair(1, 2) != heddle_profile_pair(2, 1));
    CHECK(heddle_profile_pair(1, 1) != 1);
    CHECK(heddle_profile_pair(0, 7) != 7);
}

TEST("keys spread over the whole table") {
    static uint32_t hits[HEDDLE_PROFILE_ENTRIES];
    uint32_t most = 0;

    for (uint32_t i = 0; i < HEDDLE_PROFILE_ENTRIES; i++) {
        const uint32_t shape[3] = {i + 1, 1, 1};
        const uint64_t key = heddle_profile_key(heddle_profile_name("k", 1), shape, block, 0);
        const uint32_t n = ++hits[key >> HEDDLE_PROFILE_SHIFT];

        most = n > most ? n : most;
    }
    CHECK(most <= 8); /* of a good hash one place in ten thousand has more */
}

TEST("a reader finds what heddled wrote, round the end of the table") {
    static struct heddle_verdict_segment verdict;
    struct heddle_profile_entry entry = {0};
    const uint64_t home = (uint64_t)(HEDDLE_PROFILE_ENTRIES - 2) << HEDDLE_PROFILE_SHIFT;
    FILE *file = fopen("tests/testdata/abi-v1/verdict.bin", "rb");

    CHECK(file != NULL && fread(&verdict, sizeof(verdict), 1, file) == 1);
    for (uint64_t i = 0; i < 3; i++) {
        CHECK(heddle_profile_find(verdict.profile, home | (i + 1), &entry));
        CHECK_EQUAL(entry.key, home | (i + 1));
        CHECK_EQUAL(entry.estimate_ns, 0x100000 * (i + 1) + 21);
        CHECK_EQUAL(entry.gap_ns, 0x100000 * (i + 1) + 22);
        CHECK_EQUAL(entry.flags, i == 0 ? HEDDLE_PROFILE_CORUN : 0);
        CHECK_EQUAL(entry.sm_need, i);
    }
    CHECK(!heddle_profile_find(verdict.profile, home | 4, &entry));
    CHECK(!heddle_profile_find(verdict.profile, 5, &entry));
    if (file != NULL) {
        (void)fclose(file);
    }
}

TEST("a search ends in a table without a free place") {
    static struct heddle_profile_entry full[HEDDLE_PROFILE_ENTRIES];
    struct heddle_profile_entry entry = {0};

    for (uint64_t i = 0; i < HEDDLE_PROFILE_ENTRIES; i++) {
        full[i].key = i << HEDDLE_PROFILE_SHIFT | 1;
    }
    CHECK(!heddle_profile_find(full, 7, &entry));
    CHECK(heddle_profile_find(full, (uint64_t)2047 << HEDDLE_PROFILE_SHIFT | 1, &entry));
}
