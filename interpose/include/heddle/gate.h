/*
 * The gate: may this client launch now? A pure function over numbers that others published.
 *
 * runtime/sched holds the same function in Go; tests/testdata/gate-vectors.txt and a differential
 * fuzz test hold the two together. Change both or neither.
 */
#ifndef HEDDLE_GATE_H
#define HEDDLE_GATE_H

#include "abi.h"

enum heddle_gate_result {
    HEDDLE_GATE_OPEN = 0,
    HEDDLE_GATE_HELD_CLOSED = 1, /* the daemon closed the gate */
    HEDDLE_GATE_HELD_WINDOW = 2, /* too much of the client's own work is outstanding */
    HEDDLE_GATE_HELD_PEER = 3,   /* a higher class is busy, or was a moment ago */
    HEDDLE_GATE_OVERRUN = 4,     /* open, because the caller waited for max_hold_ns */
};

/* Bounds that keep the arithmetic below inside 64 bits whatever was published. */
enum heddle_gate_bounds {
    HEDDLE_GATE_SECONDS_MAX = 1000,    /* longest duration taken seriously */
    HEDDLE_GATE_MARGIN_MAX = 10000000, /* 1000 %, in parts per million */
};

/* What one higher-class peer published, read once. */
struct heddle_gate_peer {
    uint32_t busy;  /* streams with outstanding work */
    uint32_t corun; /* 1 = the daemon lets the two run side by side */
    uint64_t idle_since_ns;
    uint64_t next_launch_ns; /* predicted, 0 = unknown */
};

struct heddle_gate_input {
    uint64_t now_ns;
    uint64_t estimate_ns;    /* predicted device time of the launch in question */
    uint64_t outstanding_ns; /* predicted device time of own unfinished launches */
    uint64_t window_ns;
    uint64_t quiet_ns;
    uint64_t held_since_ns; /* when this caller began to wait, 0 = it has not waited */
    uint64_t max_hold_ns;
    uint32_t gate; /* enum heddle_gate_bits */
    uint32_t margin_ppm;
    uint32_t has_token; /* 1 = holds the gap token of its class */
    uint32_t reserved;
};

struct heddle_gate_answer {
    uint32_t result;   /* enum heddle_gate_result */
    uint32_t peer;     /* index of the peer that holds, for HEDDLE_GATE_HELD_PEER */
    uint64_t retry_ns; /* earliest time at which the answer can change without an event from
                          the holder; UINT64_MAX = only an event can change it */
};

static inline uint64_t heddle_gate_clamp(uint64_t value, uint64_t max) {
    return value < max ? value : max;
}

static inline uint64_t heddle_gate_add(uint64_t a, uint64_t b) {
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/*
 * Decides for a launch at in->now_ns. peers are the clients of higher classes to which this one
 * yields, most urgent first. A daemon's CLOSED is final; window and peers are bounded by
 * max_hold_ns, so that a peer that lies, or never synchronises, delays others and cannot stop them.
 */
static inline void heddle_gate_decide(const struct heddle_gate_input *in,
                                      const struct heddle_gate_peer *peers, uint32_t npeers,
                                      struct heddle_gate_answer *out) {
    const uint64_t longest = (uint64_t)HEDDLE_GATE_SECONDS_MAX * 1000000000U;
    const uint64_t estimate = heddle_gate_clamp(in->estimate_ns, longest);
    const uint64_t quiet = heddle_gate_clamp(in->quiet_ns, longest);
    const uint64_t max_hold = heddle_gate_clamp(in->max_hold_ns, longest);
    uint64_t retry = UINT64_MAX;
    uint32_t result = HEDDLE_GATE_OPEN;
    uint32_t holder = 0;

    if ((in->gate & ~(uint32_t)HEDDLE_GATE_KNOWN) != 0 || (in->gate & HEDDLE_GATE_CLOSED) != 0) {
        out->result = HEDDLE_GATE_HELD_CLOSED;
        out->peer = 0;
        out->retry_ns = UINT64_MAX;
        return;
    }
    /* One launch is always allowed when nothing is outstanding, however long it is. */
    if ((in->gate & HEDDLE_GATE_WINDOW) != 0 && in->outstanding_ns != 0 &&
        heddle_gate_add(in->outstanding_ns, estimate) > in->window_ns) {
        result = HEDDLE_GATE_HELD_WINDOW;
    }
    if (result == HEDDLE_GATE_OPEN && (in->gate & HEDDLE_GATE_YIELD) != 0) {
        const uint64_t margin = heddle_gate_clamp(in->margin_ppm, HEDDLE_GATE_MARGIN_MAX);
        const uint64_t end =
            heddle_gate_add(heddle_gate_add(in->now_ns, estimate), estimate * margin / 1000000U);

        for (uint32_t i = 0; i < npeers; i++) {
            const struct heddle_gate_peer *h = &peers[i];
            /* A peer's clock that runs ahead counts as idle only now. */
            const uint64_t since = heddle_gate_clamp(h->idle_since_ns, in->now_ns);

            if (h->corun == 1) {
                continue;
            }
            if (h->busy == 0 && in->now_ns - since >= quiet) {
                continue;
            }
            if (h->busy == 0 && (in->gate & HEDDLE_GATE_FILL) != 0 && in->has_token == 1 &&
                h->next_launch_ns != 0 && end <= h->next_launch_ns) {
                continue;
            }
            result = HEDDLE_GATE_HELD_PEER;
            holder = i;
            retry = h->busy == 0 ? heddle_gate_add(since, quiet) : UINT64_MAX;
            break;
        }
    }
    if (result != HEDDLE_GATE_OPEN && in->held_since_ns != 0) {
        const uint64_t since = heddle_gate_clamp(in->held_since_ns, in->now_ns);

        if (in->now_ns - since >= max_hold) {
            result = HEDDLE_GATE_OVERRUN;
            holder = 0;
            retry = UINT64_MAX;
        } else {
            retry = heddle_gate_clamp(retry, heddle_gate_add(since, max_hold));
        }
    }
    out->result = result;
    out->peer = holder;
    out->retry_ns = result == HEDDLE_GATE_OPEN ? in->now_ns : retry;
}

#endif /* HEDDLE_GATE_H */
