#include "yield.h"

#include <stdbool.h>
#include <stddef.h>

#include "arena.h"
#include "capture.h"
#include "client.h"
#include "clock.h"
#include "connect.h"
#include "device.h"
#include "gate.h"
#include "heddle/gate.h"
#include "peer.h"
#include "share.h"
#include "thread.h"
#include "trace.h"

/* As at the gate: a wake-up that never comes costs a moment and nothing more. */
enum { SLEEP_MAX_NS = 5 * 1000 * 1000 };

struct view {
    struct heddle_gate_input input;
    struct heddle_gate_answer answer;
    uint32_t rings;
    uint32_t slots[HEDDLE_PEERS_MAX];
    struct heddle_gate_peer peers[HEDDLE_PEERS_MAX];
};

/*
 * The device that the caller means. There is none before a context was made, inside a call of ours,
 * and while the process captures, when it is not held either.
 */
static int32_t device_meant(void) {
    if ((heddle_load_relaxed32(&heddle_verdict()->process.gate) & HEDDLE_GATE_YIELD) == 0 ||
        heddle_device_count() == 0 || heddle_thread.depth != 0 || heddle_capture_open()) {
        return HEDDLE_DEVICE_NONE;
    }
    return heddle_device_current();
}

/*
 * Asks the gate about a launch like any other of the class, and leaves out what is not about others:
 * window and token, and bounds of time and length. Beside a peer with which it may run the whole
 * program is taken to run, since what comes next is not known. That the daemon closed the gate is no
 * reason: then launches wait, and show the daemon that there is work.
 */
static bool wanted(uint32_t device, struct view *view) {
    const struct heddle_verdict_device *verdict = &heddle_verdict()->devices[device];
    const uint32_t about_others = HEDDLE_GATE_YIELD | HEDDLE_GATE_FILL;
    const uint32_t gate = heddle_gate_word(device); /* first: what belongs to it is there by then */
    uint32_t count = 0;

    view->input = (struct heddle_gate_input){
        .estimate_ns = heddle_load_relaxed64(&verdict->estimate_ns),
        .quiet_ns = heddle_load_relaxed64(&verdict->quiet_ns),
        .min_gap_ns = heddle_load_relaxed64(&verdict->min_gap_ns),
        .corun_ns = heddle_load_relaxed64(&verdict->corun_ns) != 0 ? UINT64_MAX : 0,
        .margin_ppm = heddle_load_relaxed32(&verdict->margin_ppm),
        .gate = gate & about_others,
        .has_token = 1,
        .beside = 1,
    };
    if ((view->input.gate & HEDDLE_GATE_YIELD) != 0) {
        count = heddle_peer_read_all(verdict, view->slots, view->peers);
    }
    view->input.now_ns = heddle_clock_now();
    heddle_gate_decide(&view->input, view->peers, count, &view->answer);
    return view->answer.result == HEDDLE_GATE_HELD_PEER;
}

/* Says that it sleeps, looks again, and only then sleeps on the doorbell of who wants the device. */
static void sleep_once(uint32_t device, struct view *view, uint64_t longest) {
    const uint32_t slot = view->slots[view->answer.peer];
    const uint32_t *doorbell = heddle_peer_doorbell(slot);
    uint32_t value = 0;

    heddle_arena_sleep(device);
    value = heddle_load_acquire32(doorbell);
    if (wanted(device, view) && view->slots[view->answer.peer] == slot &&
        view->answer.retry_ns > view->input.now_ns) {
        const uint64_t retry = view->answer.retry_ns - view->input.now_ns;

        heddle_peer_sleep(doorbell, value, heddle_gate_clamp(retry, longest), &view->rings);
    }
    heddle_arena_rise(device);
    if (!heddle_connect_alive()) {
        heddle_peer_probe(slot);
    }
}

/* For a timeline: it waits for a peer, or does not any more. */
static void trace(uint32_t device, const struct view *view, bool waits,
                  struct heddle_trace_wait *wait) {
    const struct heddle_trace_wait next = {
        .since_ns = view->input.now_ns,
        .reason = waits ? HEDDLE_GATE_HELD_PEER : HEDDLE_GATE_OPEN,
        .peer = waits ? view->slots[view->answer.peer] : 0,
        .flags = HEDDLE_TRACE_YIELD,
    };

    heddle_trace_turn(wait, &next, device, 0, &view->input);
}

uint64_t heddle_yield_v1(uint64_t timeout_ns) {
    const int32_t meant = device_meant();
    const uint32_t device = (uint32_t)meant;
    struct view view;
    struct heddle_trace_wait traced = {0};
    uint64_t begun = 0;
    uint64_t waited = 0;

    if (meant == HEDDLE_DEVICE_NONE) {
        return 0;
    }
    view.rings = 0;
    while (wanted(device, &view)) {
        const uint64_t now = view.input.now_ns;
        const uint64_t longest = heddle_gate_clamp(
            timeout_ns, heddle_load_relaxed64(&heddle_verdict()->devices[device].max_hold_ns));

        begun = begun == 0 ? now : begun;
        trace(device, &view, true, &traced);
        waited = now > begun ? now - begun : 0;
        heddle_share_note(device, now);
        if (waited >= longest || heddle_share_behind(device, now)) {
            break;
        }
        sleep_once(device, &view, heddle_gate_clamp(longest - waited, SLEEP_MAX_NS));
    }
    trace(device, &view, false, &traced);
    heddle_share_note(device, view.input.now_ns);
    waited = begun != 0 && view.input.now_ns > begun ? view.input.now_ns - begun : 0;
    heddle_add_seq_cst64(&heddle_client()->devices[device].held_ns, waited);
    return waited;
}

int heddle_wanted_v1(void) {
    const int32_t device = device_meant();
    struct view view;

    return device != HEDDLE_DEVICE_NONE && wanted((uint32_t)device, &view);
}
