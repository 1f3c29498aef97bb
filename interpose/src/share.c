#include "share.h"

#include "client.h"
#include "heddle/atomic.h"

/*
 * One mark for each half second in which somebody looked: when that was, and how much device time the
 * client had consumed by then. The marks lie in a ring that reaches further back than is asked for.
 * Several threads may look at the same time, and none waits for another.
 */
enum { MARKS = 32, NS = 1000 * 1000 * 1000, STEP_NS = NS / 2, MILLION = 1000000 };

static const uint64_t span_ns = (uint64_t)HEDDLE_SHARE_SECONDS * NS;
static const uint64_t being_written = UINT64_MAX;

static struct mark {
    uint64_t number; /* of the half second, + 1; 0 = none */
    uint64_t at_ns;
    uint64_t consumed_ns;
} marks[HEDDLE_DEVICES_MAX][MARKS];

static uint64_t consumed(uint32_t device) {
    return heddle_load_relaxed64(&heddle_client()->devices[device].device_ns);
}

void heddle_share_note(uint32_t device, uint64_t now_ns) {
    const uint64_t number = now_ns / STEP_NS + 1;
    struct mark *mark = &marks[device][number % MARKS];
    uint64_t old = heddle_load_acquire64(&mark->number);

    if (old != number && old != being_written &&
        heddle_cas_seq_cst64(&mark->number, &old, being_written)) {
        heddle_store_relaxed64(&mark->at_ns, now_ns);
        heddle_store_relaxed64(&mark->consumed_ns, consumed(device));
        heddle_store_release64(&mark->number, number);
    }
}

/* The oldest mark of the last seconds; a mark that changes meanwhile is of another time. */
static bool oldest(uint32_t device, uint64_t now_ns, struct mark *out) {
    bool found = false;

    for (int i = 0; i < MARKS; i++) {
        const struct mark *mark = &marks[device][i];
        const uint64_t number = heddle_load_acquire64(&mark->number);
        const uint64_t at = heddle_load_acquire64(&mark->at_ns);
        const uint64_t had = heddle_load_acquire64(&mark->consumed_ns);

        if (number == 0 || number == being_written ||
            heddle_load_relaxed64(&mark->number) != number || at > now_ns ||
            now_ns - at > span_ns + STEP_NS || (found && at >= out->at_ns)) {
            continue;
        }
        *out = (struct mark){.number = number, .at_ns = at, .consumed_ns = had};
        found = true;
    }
    return found;
}

/*
 * In any ten seconds a client may go without the device for so long as leaves it its share. Time of
 * which nothing is known counts as served, so a client that has just come waits like any other.
 */
static bool behind(uint32_t device, uint64_t now_ns, uint32_t ppm) {
    const uint64_t share = ppm < MILLION ? ppm : MILLION;
    const uint64_t without = span_ns / MILLION * (MILLION - share);
    const uint64_t now_consumed = consumed(device);
    uint64_t passed = 0;
    uint64_t had = 0;
    struct mark since = {0};

    if (share == 0 || !oldest(device, now_ns, &since)) {
        return false;
    }
    passed = now_ns - since.at_ns;
    had = now_consumed > since.consumed_ns ? now_consumed - since.consumed_ns : 0;
    return passed > had && passed - had > without;
}

static uint32_t to_keep(uint32_t device) {
    return heddle_load_relaxed32(&heddle_verdict()->devices[device].keep_ppm);
}

bool heddle_share_behind(uint32_t device, uint64_t now_ns) {
    const uint32_t worth = heddle_load_relaxed32(&heddle_verdict()->devices[device].time_share_ppm);
    const uint32_t keep = to_keep(device);

    return behind(device, now_ns, worth > keep ? worth : keep);
}

bool heddle_share_owed(uint32_t device, uint64_t now_ns) {
    return behind(device, now_ns, to_keep(device));
}

void heddle_share_reset(void) {
    for (uint32_t device = 0; device < HEDDLE_DEVICES_MAX; device++) {
        for (int i = 0; i < MARKS; i++) {
            marks[device][i] = (struct mark){0};
        }
    }
}
