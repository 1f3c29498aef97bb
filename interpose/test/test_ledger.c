#include "ledger.h"

#include <stdlib.h>

#include "client.h"
#include "test.h"

static const struct heddle_client_device *device(uint32_t slot) {
    return &heddle_client()->devices[slot];
}

static void fresh(void) {
    heddle_ledger_reset();
    heddle_client_reset();
}

TEST("what is freed is what was allocated") {
    fresh();
    heddle_ledger_add(0x1000, 4096, 0, "context");
    heddle_ledger_add(0x2000, 100, 0, "context");
    CHECK_EQUAL(device(0)->memory_bytes, 4196);
    CHECK_EQUAL(heddle_ledger_take(0x1000).bytes, 4096);
    CHECK_EQUAL(device(0)->memory_bytes, 100);
    CHECK_EQUAL(device(0)->memory_peak_bytes, 4196);
    CHECK_EQUAL(device(0)->allocations, 2);
    CHECK_EQUAL(device(0)->frees, 1);
}

TEST("freeing what was never counted changes nothing") {
    fresh();
    CHECK_EQUAL(heddle_ledger_take(0x1000).handle, 0);
    heddle_ledger_add(0x1000, 10, 1, NULL);
    CHECK_EQUAL(heddle_ledger_take(0x3000).handle, 0);
    CHECK_EQUAL(heddle_ledger_take(0).handle, 0);
    CHECK_EQUAL(device(1)->memory_bytes, 10);
    CHECK_EQUAL(device(1)->frees, 0);
}

TEST("a free that the driver refused is undone") {
    struct heddle_allocation taken;

    fresh();
    heddle_ledger_add(0x1000, 10, 0, NULL);
    taken = heddle_ledger_take(0x1000);
    heddle_ledger_put_back(&taken);
    CHECK_EQUAL(device(0)->memory_bytes, 10);
    CHECK_EQUAL(device(0)->frees, 0);
    CHECK_EQUAL(heddle_ledger_take(0x1000).bytes, 10);
}

TEST("a retained handle is counted until its last owner lets go") {
    struct heddle_allocation taken;

    fresh();
    heddle_ledger_add(0x1000, 10, 0, NULL);
    heddle_ledger_retain(0x1000);
    taken = heddle_ledger_take(0x1000);
    CHECK_EQUAL(device(0)->memory_bytes, 10);
    heddle_ledger_put_back(&taken);
    (void)heddle_ledger_take(0x1000);
    (void)heddle_ledger_take(0x1000);
    CHECK_EQUAL(device(0)->memory_bytes, 0);
}

TEST("a context takes its memory with it and leaves the rest") {
    static const char mine[1];
    static const char other[1];

    fresh();
    for (uint64_t i = 1; i <= 1000; i++) {
        heddle_ledger_add(i << 8, 1, 0, i % 2 == 0 ? mine : other);
    }
    heddle_ledger_forget_context(mine);
    CHECK_EQUAL(device(0)->memory_bytes, 500);
    for (uint64_t i = 1; i <= 1000; i++) {
        CHECK((heddle_ledger_take(i << 8).handle != 0) == (i % 2 == 1));
    }
    CHECK_EQUAL(device(0)->memory_bytes, 0);
}

TEST("a graph's memory replaces what it was before") {
    fresh();
    heddle_ledger_add(0x1000, 10, 0, NULL);
    heddle_ledger_graphs(0, 100);
    heddle_ledger_graphs(0, 30);
    CHECK_EQUAL(device(0)->memory_bytes, 40);
}

/* Against a plain array: every operation in random order, with few enough handles to collide. */
TEST("the ledger and a plain array always agree") {
    enum { HANDLES = 600 };
    static uint64_t model[HANDLES];
    uint64_t sum = 0;

    fresh();
    srandom(3);
    for (int i = 0; i < 60000; i++) {
        const uint32_t n = (uint32_t)random() % HANDLES;
        const uint64_t handle = (uint64_t)(n + 1) << 12;

        if (model[n] == 0) {
            model[n] = (uint64_t)random() % 1000 + 1;
            sum += model[n];
            heddle_ledger_add(handle, model[n], 0, NULL);
        } else {
            CHECK_EQUAL(heddle_ledger_take(handle).bytes, model[n]);
            sum -= model[n];
            model[n] = 0;
        }
        CHECK_EQUAL(device(0)->memory_bytes, sum);
    }
}
