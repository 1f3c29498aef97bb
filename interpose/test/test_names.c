#include "names.h"

#include <stdlib.h>

#include "test.h"

static heddle_code at(uintptr_t address) {
    heddle_code code = NULL;

    memcpy(&code, &address, sizeof(code));
    return code;
}

static void *address(uintptr_t value) {
    return (void *)value;
}

static struct heddle_reverse *build(heddle_code *real) {
    struct heddle_reverse *map = malloc(sizeof(*map));

    heddle_reverse_build(map, real);
    return map;
}

TEST("every address leads back to its own name") {
    heddle_code real[HEDDLE_SYM_COUNT];
    struct heddle_reverse *map = NULL;

    for (uint32_t i = 0; i < HEDDLE_SYM_COUNT; i++) {
        real[i] = at(0x100000 - 16 * i);
    }
    map = build(real);
    for (uint32_t i = 0; i < HEDDLE_SYM_COUNT; i++) {
        CHECK_EQUAL(heddle_reverse_find(map, address(0x100000 - 16 * i), NULL), i);
    }
    free(map);
}

TEST("an address between, before or behind the exports has no name") {
    heddle_code real[HEDDLE_SYM_COUNT] = {NULL};
    struct heddle_reverse *map = NULL;

    real[HEDDLE_SYM_cuInit] = at(0x1000);
    real[HEDDLE_SYM_cuMemAlloc_v2] = at(0x3000);
    map = build(real);
    CHECK_EQUAL(map->count, 2);
    CHECK(heddle_reverse_find(map, address(0x0fff), "cuInit") == HEDDLE_REVERSE_UNKNOWN);
    CHECK(heddle_reverse_find(map, address(0x2000), "cuInit") == HEDDLE_REVERSE_UNKNOWN);
    CHECK(heddle_reverse_find(map, address(0x3001), "cuInit") == HEDDLE_REVERSE_UNKNOWN);
    free(map);
}

TEST("of several names at one address the one asked for comes first") {
    heddle_code real[HEDDLE_SYM_COUNT] = {NULL};
    struct heddle_reverse *map = NULL;

    real[HEDDLE_SYM_cuDeviceGetUuid] = at(0x1000);
    real[HEDDLE_SYM_cuMemAlloc_v2] = at(0x1000);
    real[HEDDLE_SYM_cuMemGetInfo_v2] = at(0x1000);
    map = build(real);
    CHECK_EQUAL(heddle_reverse_find(map, address(0x1000), "cuDeviceGetUuid"),
                HEDDLE_SYM_cuDeviceGetUuid);
    CHECK_EQUAL(heddle_reverse_find(map, address(0x1000), "cuMemGetInfo"),
                HEDDLE_SYM_cuMemGetInfo_v2);
    free(map);
}

TEST("of several names at one address one with a hook comes before one without") {
    heddle_code real[HEDDLE_SYM_COUNT] = {NULL};
    struct heddle_reverse *map = NULL;

    real[HEDDLE_SYM_cuDeviceGetUuid] = at(0x1000);
    real[HEDDLE_SYM_cuMemAlloc_v2] = at(0x1000);
    map = build(real);
    CHECK_EQUAL(heddle_reverse_find(map, address(0x1000), "cuSomethingElse"),
                HEDDLE_SYM_cuMemAlloc_v2);
    CHECK_EQUAL(heddle_reverse_find(map, address(0x1000), NULL), HEDDLE_SYM_cuMemAlloc_v2);
    free(map);
}

TEST("a name's base has neither version nor stream suffix") {
    CHECK_EQUAL(heddle_names[HEDDLE_SYM_cuStreamGetCaptureInfo_v3_ptsz].base,
                strlen("cuStreamGetCaptureInfo"));
    CHECK_EQUAL(heddle_names[HEDDLE_SYM_cuMemcpyDtoH_v2_ptds].base, strlen("cuMemcpyDtoH"));
    CHECK_EQUAL(heddle_names[HEDDLE_SYM_cuTexRefSetAddress2D].base, strlen("cuTexRefSetAddress2D"));
}
