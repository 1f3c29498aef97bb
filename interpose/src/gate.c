#include "gate.h"

#include <stdbool.h>
#include <time.h>

#include "arena.h"
#include "client.h"
#include "clock.h"
#include "connect.h"
#include "futex.h"
#include "heddle/gate.h"
#include "heddle/profile.h"
#include "kernel.h"
#include "log.h"
#include "peer.h"
#include "share.h"
#include "token.h"
#include "trace.h"
#include "window.h"

/*
 * No sleep is longer than these, so that a wake-up that never comes (its sender was killed between
 * the store and the call) costs a moment and nothing more.
 */
enum {
    PEER_WAIT_MAX_NS = 5 * 1000 * 1000,
    CLOSED_WAIT_MAX_NS = 100 * 1000 * 1000,
};

/* For a better launch of the class to take the token; then the gap is better filled by this one. */
enum { GRACE_NS = 20 * 1000 };

/* The peers that hold a launch can be many; slots[i] is the slot of peers[i]. */
struct view {
    struct heddle_gate_input input;
    struct heddle_gate_answer answer;
    uint32_t count;
    uint32_t rings; /* how often a doorbell ended a sleep of this wait */
    bool wants;     /* others know that this launch waits for them */
    bool patient;   /* has left better launches of its class the time to take the token */
    uint64_t token;
    uint64_t room_ns;
    uint64_t key; /* of the kernel, 0 = not known */
    uint32_t slots[HEDDLE_PEERS_MAX];
    struct heddle_gate_peer peers[HEDDLE_PEERS_MAX];
};

static const struct heddle_verdict_device *verdict_of(uint32_t device) {
    return &heddle_verdict()->devices[device];
}

/* What a kernel is taken to need at least, for which a profile says so much, or nothing. */
static uint64_t least_of(uint32_t device, uint64_t key, uint64_t profile_ns) {
    uint64_t proven = 0;

    if (profile_ns != 0) {
        if (heddle_load_relaxed32(&heddle_verdict()->process.measure_every) == 0) {
            return 0; /* nobody tells anything */
        }
        proven = heddle_kernel_proven(key);
    }
    return proven != 0 ? proven : heddle_load_relaxed64(&verdict_of(device)->estimate_ns);
}

struct heddle_prediction heddle_gate_predict(uint32_t device, uint64_t key) {
    struct heddle_prediction prediction = {0};
    struct heddle_profile_entry entry;
    uint64_t least = 0;

    if (key != 0 && heddle_profile_find(heddle_verdict()->profile, key, &entry)) {
        prediction.ns = entry.estimate_ns;
        prediction.flags = entry.flags;
    }
    least = least_of(device, key, prediction.ns);
    if (prediction.ns < least || prediction.ns == 0) {
        prediction.ns = least;
        prediction.flags &= ~(uint32_t)HEDDLE_PROFILE_STEADY;
    }
    return prediction;
}

static void decide(uint32_t device, struct view *view) {
    const struct heddle_verdict_device *verdict = verdict_of(device);
    struct heddle_gate_input *input = &view->input;
    struct heddle_prediction prediction;

    input->gate = heddle_gate_word(device);
    if (heddle_load_relaxed32(&verdict->keep_ppm) != 0 &&
        heddle_share_owed(device, heddle_clock_now())) {
        input->gate &= ~(uint32_t)(HEDDLE_GATE_YIELD | HEDDLE_GATE_FILL);
    }
    prediction = heddle_gate_predict(device, view->key);
    input->estimate_ns = prediction.ns;
    input->beside = (prediction.flags & HEDDLE_PROFILE_CORUN) != 0;
    input->window_ns = heddle_load_relaxed64(&verdict->window_ns);
    input->quiet_ns = heddle_load_relaxed64(&verdict->quiet_ns);
    input->max_hold_ns = heddle_load_relaxed64(&verdict->max_hold_ns);
    input->corun_ns = heddle_load_relaxed64(&verdict->corun_ns);
    input->min_gap_ns = heddle_load_relaxed64(&verdict->min_gap_ns);
    input->max_block_ns = heddle_load_relaxed64(&verdict->max_block_ns);
    input->margin_ppm = heddle_load_relaxed32(&verdict->margin_ppm);
    input->has_token = view->token != 0;
    input->outstanding_ns =
        (input->gate & HEDDLE_GATE_WINDOW) != 0 ? heddle_window_outstanding(device) : 0;
    view->count = 0;
    if ((input->gate & HEDDLE_GATE_YIELD) != 0) {
        view->count = heddle_peer_read_all(verdict, view->slots, view->peers);
    }
    input->now_ns = heddle_clock_now();
    heddle_gate_decide(input, view->peers, view->count, &view->answer);
}

static bool is_open(const struct view *view) {
    return view->answer.result == HEDDLE_GATE_OPEN || view->answer.result == HEDDLE_GATE_OVERRUN;
}

static bool waits_for_others(const struct view *view) {
    return view->answer.result == HEDDLE_GATE_HELD_PEER ||
           view->answer.result == HEDDLE_GATE_HELD_TOKEN;
}

/* Who waits for its window, or for the daemon, gives no reason to others to let it go first. */
static void tell_others(uint32_t device, struct view *view) {
    const bool wants = waits_for_others(view);

    if (wants && !view->wants) {
        heddle_token_want(device, view->input.estimate_ns);
    } else if (!wants && view->wants) {
        heddle_token_unwant(device);
    }
    view->wants = wants;
}

/* What is left of the shortest gap, for a launch that waits for the token only. */
static uint64_t gap_left(const struct view *view) {
    uint64_t gap = UINT64_MAX;

    for (uint32_t i = 0; i < view->count; i++) {
        if (view->peers[i].next_launch_ns > view->input.now_ns) {
            gap = heddle_gate_clamp(view->peers[i].next_launch_ns - view->input.now_ns, gap);
        }
    }
    return gap;
}

/* True if a better launch of the class should have the token, and has not had time to take it. */
static bool defers(uint32_t device, struct view *view) {
    const struct heddle_gate_input *input = &view->input;

    if (view->patient ||
        heddle_token_best(device, input->estimate_ns, gap_left(view), input->margin_ppm)) {
        view->patient = false;
        return false;
    }
    view->patient = true;
    return true;
}

static void claim(uint32_t device, struct view *view) {
    const uint64_t longest = (uint64_t)HEDDLE_GATE_SECONDS_MAX * 1000000000U;
    const uint64_t estimate = heddle_gate_clamp(view->input.estimate_ns, longest);

    view->token = heddle_token_claim(device, view->input.now_ns,
                                     heddle_gate_widen(estimate, view->input.margin_ppm),
                                     heddle_load_relaxed64(&verdict_of(device)->token_ns));
}

/*
 * Between the decision and the launch another thread may decide the same. Who has waited for its
 * longest time goes on in any case.
 */
static void take_room(uint32_t device, struct view *view) {
    const struct heddle_gate_input *input = &view->input;
    const bool overrun = view->answer.result == HEDDLE_GATE_OVERRUN;
    const uint64_t room = input->estimate_ns != 0 ? input->estimate_ns : 1;

    if ((input->gate & HEDDLE_GATE_WINDOW) == 0) {
        return;
    }
    if (heddle_window_reserve(device, room, overrun ? UINT64_MAX : input->window_ns)) {
        view->room_ns = room;
    } else {
        view->answer.result = HEDDLE_GATE_HELD_WINDOW;
    }
}

/* Decides and does what follows: tells others, takes a token that is free, gives back a vain one. */
static void look(uint32_t device, struct view *view) {
    decide(device, view);
    tell_others(device, view);
    if (view->answer.result == HEDDLE_GATE_HELD_TOKEN && !defers(device, view)) {
        claim(device, view);
        if (view->token != 0) {
            decide(device, view);
            tell_others(device, view);
        }
    }
    if (is_open(view)) {
        take_room(device, view);
    }
    if (view->token != 0 && !is_open(view)) {
        heddle_token_release(device, view->token);
        view->token = 0;
    }
}

/* How long to sleep. Nobody rings for the token: who waits for it looks when the claim runs out. */
static uint64_t until(uint32_t device, const struct view *view, uint64_t longest) {
    const uint64_t now = view->input.now_ns;
    uint64_t retry = view->answer.retry_ns;

    if (view->answer.result == HEDDLE_GATE_HELD_TOKEN &&
        heddle_load_relaxed64(&verdict_of(device)->token_ns) != 0) {
        retry = heddle_gate_clamp(retry, heddle_token_expiry(device));
    }
    return retry <= now ? 0 : heddle_gate_clamp(retry - now, longest);
}

/* Says that it sleeps, looks again, and only then sleeps on the holder's doorbell. */
static void wait_for_peer(uint32_t device, struct view *view) {
    const uint32_t slot = view->slots[view->answer.peer];
    const uint32_t *doorbell = heddle_peer_doorbell(slot);
    uint32_t value = 0;

    heddle_arena_sleep(device);
    value = heddle_load_acquire32(doorbell);
    decide(device, view);
    if (waits_for_others(view) && view->slots[view->answer.peer] == slot) {
        heddle_peer_sleep(doorbell, value, until(device, view, PEER_WAIT_MAX_NS), &view->rings);
    }
    heddle_arena_rise(device);
    if (!heddle_connect_alive()) {
        heddle_peer_probe(slot);
    }
}

static void wait_for_token(uint32_t device, struct view *view) {
    const struct timespec grace = {.tv_nsec = GRACE_NS};

    if (view->patient) {
        (void)nanosleep(&grace, NULL);
    } else {
        wait_for_peer(device, view);
    }
}

static void wait_once(uint32_t device, struct view *view) {
    switch (view->answer.result) {
    case HEDDLE_GATE_HELD_CLOSED:
    case HEDDLE_GATE_HELD_LONG: /* another verdict can have another bound */
        (void)heddle_futex_wait(&verdict_of(device)->gate, view->input.gate, CLOSED_WAIT_MAX_NS);
        break;
    case HEDDLE_GATE_HELD_WINDOW:
        heddle_window_wait(device);
        break;
    case HEDDLE_GATE_HELD_TOKEN:
        wait_for_token(device, view);
        break;
    default:
        wait_for_peer(device, view);
        break;
    }
}

static uint32_t waiting[HEDDLE_DEVICES_MAX];

/* What a caller waits for; it can change while it waits. */
enum waits_for { NOTHING, OTHERS, WINDOW };

struct wait {
    enum waits_for what;
    uint64_t since_ns;
    bool held; /* for others, at any time */
    struct heddle_trace_wait traced;
};

static enum waits_for reason(const struct view *view) {
    if (is_open(view)) {
        return NOTHING;
    }
    return view->answer.result == HEDDLE_GATE_HELD_WINDOW ? WINDOW : OTHERS;
}

static void begin_hold(struct heddle_client_device *self, uint32_t device, struct wait *wait) {
    if (heddle_add_seq_cst32(&waiting[device], 1) == 1) {
        heddle_store_relaxed64(&self->held_since_ns, wait->since_ns);
    }
    if (!wait->held) {
        heddle_add_seq_cst64(&self->holds, 1);
    }
    wait->held = true;
}

static void end_hold(struct heddle_client_device *self, uint32_t device) {
    if (heddle_add_seq_cst32(&waiting[device], (uint32_t)-1) == 0) {
        heddle_store_relaxed64(&self->held_since_ns, 0);
    }
}

static void trace(uint32_t device, const struct view *view, struct wait *wait) {
    const bool of_peer = waits_for_others(view);
    const struct heddle_trace_wait next = {.since_ns = view->input.now_ns,
                                           .reason = view->answer.result,
                                           .peer = of_peer ? view->slots[view->answer.peer] : 0};

    heddle_trace_turn(&wait->traced, &next, device, view->key, &view->input);
}

/* Books the time since the last call under what it was spent for. */
static void book(uint32_t device, const struct view *view, struct wait *wait) {
    struct heddle_client_device *self = &heddle_client()->devices[device];
    const uint64_t now = view->input.now_ns;
    const uint64_t passed = now > wait->since_ns ? now - wait->since_ns : 0;
    const enum waits_for before = wait->what;

    trace(device, view, wait);
    wait->what = reason(view);
    if (before == WINDOW) {
        heddle_add_seq_cst64(&self->paced_ns, passed);
    } else if (before == OTHERS && wait->what == OTHERS) {
        return; /* one hold, booked when it ends */
    } else if (before == OTHERS) {
        heddle_add_seq_cst64(&self->held_ns, passed);
        end_hold(self, device);
    }
    wait->since_ns = now;
    if (wait->what == OTHERS) {
        begin_hold(self, device, wait);
    }
}

/* All but what a look fills in, which is large. */
static void begin(struct view *view, uint64_t key) {
    view->input.held_since_ns = 0;
    view->rings = 0;
    view->wants = false;
    view->patient = false;
    view->token = 0;
    view->room_ns = 0;
    view->key = key;
}

struct heddle_turn heddle_gate_pass(uint32_t device, uint64_t key) {
    struct view view;
    struct wait wait = {.what = NOTHING};

    begin(&view, key);
    look(device, &view);
    if (is_open(&view)) {
        return (struct heddle_turn){.token = view.token, .room_ns = view.room_ns};
    }
    view.input.held_since_ns = view.input.now_ns;
    book(device, &view, &wait);
    do {
        wait_once(device, &view);
        look(device, &view);
        book(device, &view, &wait);
    } while (!is_open(&view));
    if (view.answer.result == HEDDLE_GATE_OVERRUN &&
        heddle_add_seq_cst64(&heddle_client()->devices[device].overruns, 1) == 1) {
        heddle_log(HEDDLE_LOG_WARN, "a launch was held for its longest time and went on");
    }
    return (struct heddle_turn){.token = view.token, .room_ns = view.room_ns};
}
