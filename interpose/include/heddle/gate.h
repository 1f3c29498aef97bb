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
    HEDDLE_GATE_HELD_TOKEN = 5,  /* would be open with the gap token of its class */
    HEDDLE_GATE_HELD_LONG = 6,   /* longer than a launch of this client may be */
};

/* Bounds that keep the arithmetic below inside 64 bits whatever was published. */
enum heddle_gate_bounds {
    HEDDLE_GATE_SECONDS_MAX = 1000,    /* longest duration taken seriously */
    HEDDLE_GATE_MARGIN_MAX = 10000000, /* 1000 %, in parts per million */
    HEDDLE_GATE_POLL_MIN_NS = 1000,    /* shortest wait for a peer that goes first */
};

/* What one higher-class peer published, read once. */
struct heddle_gate_peer {
    uint32_t busy;  /* streams with outstanding work */
    uint32_t corun; /* 1 = the daemon lets the two run side by side */
    uint64_t idle_since_ns;
    uint64_t next_launch_ns; /* predicted, 0 = unknown */
    uint64_t want_ns;        /* duration: of its launch that waits for others, 0 = none waits */
};

struct heddle_gate_input {
    uint64_t now_ns;
    uint64_t estimate_ns;    /* predicted device time of the launch in question */
    uint64_t outstanding_ns; /* predicted device time of own unfinished launches */
    uint64_t window_ns;
    uint64_t quiet_ns;
    uint64_t held_since_ns; /* when this caller began to wait, 0 = it has not waited */
    uint64_t max_hold_ns;
    uint64_t corun_ns;     /* bound on outstanding_ns beside a peer with which it may run */
    uint64_t min_gap_ns;   /* shorter gaps are not filled */
    uint64_t max_block_ns; /* longer launches are held, 0 = none are */
    uint32_t gate;         /* enum heddle_gate_bits */
    uint32_t margin_ppm;
    uint32_t has_token; /* 1 = holds the gap token of its class */
    uint32_t beside;    /* 1 = this kernel may run beside peers whose corun is 1 */
};

struct heddle_gate_answer {
    uint32_t result;   /* enum heddle_gate_result */
    uint32_t peer;     /* index of the peer that holds, or whose gap takes the token */
    uint64_t retry_ns; /* earliest time at which the answer can change without an event from
                          the holder; UINT64_MAX = only an event can change it */
};

static inline uint64_t heddle_gate_clamp(uint64_t value, uint64_t max) {
    return value < max ? value : max;
}

static inline uint64_t heddle_gate_add(uint64_t a, uint64_t b) {
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* A duration of at most HEDDLE_GATE_SECONDS_MAX with the safety margin on it. */
static inline uint64_t heddle_gate_widen(uint64_t duration, uint32_t margin_ppm) {
    return duration + duration * heddle_gate_clamp(margin_ppm, HEDDLE_GATE_MARGIN_MAX) / 1000000U;
}

/* Whether the launch may run beside a peer, whatever that one does. */
static inline uint32_t heddle_gate_beside(const struct heddle_gate_input *in,
                                          const struct heddle_gate_peer *peer, uint64_t estimate) {
    return peer->corun == 1 && in->beside == 1 &&
           heddle_gate_add(in->outstanding_ns, estimate) <= in->corun_ns;
}

static inline void heddle_gate_say(struct heddle_gate_answer *out, uint32_t result, uint32_t peer,
                                   uint64_t retry) {
    out->result = result;
    out->peer = peer;
    out->retry_ns = retry;
}

/*
 * Looks for the first peer that holds the launch. An idle peer lets it pass when it has been quiet
 * for long enough. Where the peer's next launch is predicted and gaps are to be filled, the gap takes
 * the place of the quiet time: inside it the launch passes if it ends in time behind what is
 * outstanding, around its end it waits, and when the peer has not come a quiet time later, the prediction was wrong.
 */
static inline void heddle_gate_yield(const struct heddle_gate_input *in,
                                     const struct heddle_gate_peer *peers, uint32_t npeers,
                                     uint64_t estimate, struct heddle_gate_answer *out) {
    const uint64_t longest = (uint64_t)HEDDLE_GATE_SECONDS_MAX * 1000000000U;
    const uint64_t now = in->now_ns;
    const uint64_t quiet = heddle_gate_clamp(in->quiet_ns, longest);
    const uint64_t pause =
        quiet > HEDDLE_GATE_POLL_MIN_NS ? quiet : (uint64_t)HEDDLE_GATE_POLL_MIN_NS;
    const uint64_t min_gap = heddle_gate_clamp(in->min_gap_ns, longest);
    const uint64_t alone = heddle_gate_widen(estimate, in->margin_ppm);
    /* What is outstanding runs first. */
    const uint64_t work = heddle_gate_clamp(heddle_gate_add(in->outstanding_ns, estimate), longest);
    const uint64_t end = heddle_gate_add(now, heddle_gate_widen(work, in->margin_ppm));
    const uint64_t shortest = min_gap > 1 ? min_gap : 1;
    const uint64_t need = alone > shortest ? alone : shortest;
    uint64_t slack = UINT64_MAX;  /* what is left of the shortest gap that the launch uses */
    uint64_t misfit = UINT64_MAX; /* when a launch that waits for own work fits no more */
    uint64_t token_retry = UINT64_MAX;
    uint32_t token_peer = npeers;

    for (uint32_t i = 0; i < npeers; i++) {
        const struct heddle_gate_peer *h = &peers[i];
        const uint64_t next = h->next_launch_ns;
        /* A peer's clock that runs ahead counts as idle only now. */
        const uint64_t since = heddle_gate_clamp(h->idle_since_ns, now);
        const uint32_t fresh = now - since < quiet;

        if (heddle_gate_beside(in, h, estimate)) {
            continue;
        }
        if (h->busy != 0) {
            heddle_gate_say(out, HEDDLE_GATE_HELD_PEER, i, UINT64_MAX);
            return;
        }
        if ((in->gate & HEDDLE_GATE_FILL) == 0 || next <= since) { /* nothing is predicted */
            if (fresh) {
                heddle_gate_say(out, HEDDLE_GATE_HELD_PEER, i, heddle_gate_add(since, quiet));
                return;
            }
        } else if (now < next && end <= next && next - now >= min_gap) {
            slack = heddle_gate_clamp(next - now, slack);
            if (fresh) {
                token_peer = token_peer == npeers ? i : token_peer;
                token_retry = heddle_gate_clamp(heddle_gate_add(since, quiet), token_retry);
            }
        } else if (now < next && need <= next - now) { /* fits once own work is done */
            slack = heddle_gate_clamp(next - now, slack);
            misfit = heddle_gate_clamp(next - need + 1, misfit);
        } else if (now < next || now - next < quiet) { /* does not fit, or is overdue */
            heddle_gate_say(out, HEDDLE_GATE_HELD_PEER, i, heddle_gate_add(next, quiet));
            return;
        }
    }
    /* A peer that waits for others itself, and whose launch would fit as well, goes first. */
    for (uint32_t i = 0; i < npeers; i++) {
        const uint64_t want =
            heddle_gate_widen(heddle_gate_clamp(peers[i].want_ns, longest), in->margin_ppm);

        if (want != 0 && want <= slack && !heddle_gate_beside(in, &peers[i], estimate)) {
            const uint64_t rest = slack == UINT64_MAX ? UINT64_MAX : slack - want + 1;
            const uint64_t retry = heddle_gate_add(now, heddle_gate_clamp(pause, rest));

            heddle_gate_say(out, HEDDLE_GATE_HELD_PEER, i, heddle_gate_clamp(retry, misfit));
            return;
        }
    }
    if (misfit != UINT64_MAX) {
        heddle_gate_say(out, HEDDLE_GATE_HELD_WINDOW, 0, misfit);
        return;
    }
    if (token_peer != npeers && in->has_token != 1) {
        heddle_gate_say(out, HEDDLE_GATE_HELD_TOKEN, token_peer, token_retry);
        return;
    }
    heddle_gate_say(out, HEDDLE_GATE_OPEN, 0, now);
}

/*
 * Decides for a launch at in->now_ns. peers are the clients of higher classes to which this one
 * yields, most urgent first. A daemon's CLOSED is final, and so is what the administrator said about
 * long launches; window, peers and token are bounded by max_hold_ns, so that a peer that lies, or
 * never synchronises, delays others and cannot stop them.
 */
static inline void heddle_gate_decide(const struct heddle_gate_input *in,
                                      const struct heddle_gate_peer *peers, uint32_t npeers,
                                      struct heddle_gate_answer *out) {
    const uint64_t longest = (uint64_t)HEDDLE_GATE_SECONDS_MAX * 1000000000U;
    const uint64_t estimate = heddle_gate_clamp(in->estimate_ns, longest);
    const uint64_t max_hold = heddle_gate_clamp(in->max_hold_ns, longest);
    const uint64_t max_block = heddle_gate_clamp(in->max_block_ns, longest);
    const uint64_t held_since = heddle_gate_clamp(in->held_since_ns, in->now_ns);

    if ((in->gate & ~(uint32_t)HEDDLE_GATE_KNOWN) != 0 || (in->gate & HEDDLE_GATE_CLOSED) != 0) {
        heddle_gate_say(out, HEDDLE_GATE_HELD_CLOSED, 0, UINT64_MAX);
        return;
    }
    if (max_block != 0 && estimate > max_block) {
        heddle_gate_say(out, HEDDLE_GATE_HELD_LONG, 0, UINT64_MAX);
        return;
    }
    heddle_gate_say(out, HEDDLE_GATE_OPEN, 0, in->now_ns);
    /* One launch is always allowed when nothing is outstanding, however long it is. */
    if ((in->gate & HEDDLE_GATE_WINDOW) != 0 && in->outstanding_ns != 0 &&
        heddle_gate_add(in->outstanding_ns, estimate) > in->window_ns) {
        heddle_gate_say(out, HEDDLE_GATE_HELD_WINDOW, 0, UINT64_MAX);
    } else if ((in->gate & HEDDLE_GATE_YIELD) != 0) {
        heddle_gate_yield(in, peers, npeers, estimate, out);
    }
    if (out->result == HEDDLE_GATE_OPEN || in->held_since_ns == 0) {
        return;
    }
    if (in->now_ns - held_since >= max_hold) {
        heddle_gate_say(out, HEDDLE_GATE_OVERRUN, 0, UINT64_MAX);
        return;
    }
    out->retry_ns = heddle_gate_clamp(out->retry_ns, heddle_gate_add(held_since, max_hold));
}

#endif /* HEDDLE_GATE_H */
