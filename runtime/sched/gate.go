package sched

import "math"

// Gate is the gate word of a verdict: a set of the bits below. The numbers are those of the
// shared-memory contract, which this package must not import; a test compares the two.
type Gate uint32

// The bits of the gate word. Zero is open, with nobody to look at before or after a launch.
const (
	GateClosed  Gate = 1 << iota // the daemon holds the client
	GateYield                    // watch the peers before a launch
	GatePublish                  // somebody yields to this client: keep its busy word true
	GateWindow                   // bound the outstanding work
	GateFill                     // may fill predicted gaps while it holds the token
	GateMeasure                  // device time is measured; holds nobody

	gateKnown = GateClosed | GateYield | GatePublish | GateWindow | GateFill | GateMeasure
)

// Result is what the gate answers.
type Result uint32

// The answers.
const (
	Open       Result = iota
	HeldClosed        // the daemon closed the gate
	HeldWindow        // too much of the client's own work is outstanding
	HeldPeer          // a higher class is busy, or was a moment ago
	Overrun           // open, because the caller has waited long enough
	HeldToken         // would be open with the gap token of its class
	HeldLong          // longer than a launch of this client may be
)

// Bounds on what is taken seriously; they keep the arithmetic inside 64 bits.
const (
	durationMaxNs uint64 = 1000 * 1e9
	marginMaxPPM  uint64 = 10_000_000
	pollMinNs     uint64 = 1000 // shortest wait for a peer that goes first
)

// Never is the retry time of an answer that only an event can change.
const Never uint64 = math.MaxUint64

// Peer is what one client of a higher class published.
type Peer struct {
	Busy         uint32 // streams with outstanding work
	CoRun        bool   // the daemon lets the two run side by side
	IdleSinceNs  uint64
	NextLaunchNs uint64 // predicted, 0 = unknown
	WantNs       uint64 // predicted time of its launch that waits for others, 0 = none waits
}

// Input is one launch at the gate. All times are of the common clock; what was published by others
// may be anything, so every field takes all its values.
type Input struct {
	NowNs         uint64
	EstimateNs    uint64 // predicted device time of the launch in question
	OutstandingNs uint64 // predicted device time of own unfinished launches
	WindowNs      uint64
	QuietNs       uint64
	HeldSinceNs   uint64 // when the caller began to wait, 0 = it has not waited
	MaxHoldNs     uint64
	CoRunNs       uint64 // bound on OutstandingNs beside a peer with which it may run
	MinGapNs      uint64 // shorter gaps are not filled
	MaxBlockNs    uint64 // longer launches are held, 0 = none are
	Gate          Gate
	MarginPPM     uint32
	HasToken      bool // holds the gap token of its class
	Beside        bool // this kernel may run beside peers with CoRun
}

// Answer is the gate's decision.
type Answer struct {
	Result  Result
	Peer    int    // index of the peer that holds, or whose gap takes the token
	RetryNs uint64 // earliest time at which the answer can change without an event
}

// Decide answers whether a launch may go now, in front of the peers to which its client yields,
// most urgent first. It is heddle_gate_decide of interpose/include/heddle/gate.h in Go: the shared
// vectors and a differential fuzz test hold the two together. Change both or neither.
func Decide(in *Input, peers []Peer) Answer {
	if in.Gate&^gateKnown != 0 || in.Gate&GateClosed != 0 {
		return Answer{Result: HeldClosed, RetryNs: Never}
	}
	estimate := min(in.EstimateNs, durationMaxNs)
	if maxBlock := min(in.MaxBlockNs, durationMaxNs); maxBlock != 0 && estimate > maxBlock {
		return Answer{Result: HeldLong, RetryNs: Never}
	}
	a := Answer{Result: Open, RetryNs: in.NowNs}
	switch {
	// One launch is always allowed when nothing is outstanding, however long it is.
	case in.Gate&GateWindow != 0 && in.OutstandingNs != 0 && add(in.OutstandingNs, estimate) > in.WindowNs:
		a = Answer{Result: HeldWindow, RetryNs: Never}
	case in.Gate&GateYield != 0:
		a = yield(in, peers, estimate)
	}
	if a.Result == Open || in.HeldSinceNs == 0 {
		return a
	}
	// The wait is bounded: a peer that lies, or never synchronises, can delay and not stop.
	since := min(in.HeldSinceNs, in.NowNs)
	maxHold := min(in.MaxHoldNs, durationMaxNs)
	if in.NowNs-since >= maxHold {
		return Answer{Result: Overrun, RetryNs: Never}
	}
	a.RetryNs = min(a.RetryNs, add(since, maxHold))
	return a
}

// yield looks for the first peer that holds the launch. An idle peer lets it pass when it has been
// quiet for long enough. Where the peer's next launch is predicted and gaps are to be filled, the
// gap takes the place of the quiet time: inside it the launch passes if it ends in time behind what
// is outstanding, around its end it waits, and when the peer has not come a quiet time later, the
// prediction was wrong.
func yield(in *Input, peers []Peer, estimate uint64) Answer {
	now := in.NowNs
	quiet := min(in.QuietNs, durationMaxNs)
	need := max(widen(estimate, in.MarginPPM), min(in.MinGapNs, durationMaxNs), 1)
	work := min(add(in.OutstandingNs, estimate), durationMaxNs) // what is outstanding runs first
	end := add(now, widen(work, in.MarginPPM))
	slack := Never  // what is left of the shortest gap that the launch uses
	misfit := Never // when a launch that waits for own work fits no more
	token := Answer{Result: Open, RetryNs: Never}
	for i := range peers {
		h := &peers[i]
		if beside(in, h, estimate) {
			continue
		}
		if h.Busy != 0 {
			return Answer{Result: HeldPeer, Peer: i, RetryNs: Never}
		}
		next := h.NextLaunchNs
		since := min(h.IdleSinceNs, now) // a peer's clock that runs ahead counts as idle only now
		fresh := now-since < quiet
		switch {
		case in.Gate&GateFill == 0 || next <= since: // nothing is predicted
			if fresh {
				return Answer{Result: HeldPeer, Peer: i, RetryNs: add(since, quiet)}
			}
		case now < next && end <= next && next-now >= min(in.MinGapNs, durationMaxNs):
			slack = min(slack, next-now)
			if fresh && token.Result == Open {
				token.Result, token.Peer = HeldToken, i
			}
			if fresh {
				token.RetryNs = min(token.RetryNs, add(since, quiet))
			}
		case now < next && need <= next-now: // fits once own work is done
			slack = min(slack, next-now)
			misfit = min(misfit, next-need+1)
		case now < next || now-next < quiet: // does not fit, or is overdue
			return Answer{Result: HeldPeer, Peer: i, RetryNs: add(next, quiet)}
		}
	}
	// A peer that waits for others itself, and whose launch would fit as well, goes first.
	for i := range peers {
		want := widen(min(peers[i].WantNs, durationMaxNs), in.MarginPPM)
		if want == 0 || want > slack || beside(in, &peers[i], estimate) {
			continue
		}
		wait := max(quiet, pollMinNs)
		if slack != Never {
			wait = min(wait, slack-want+1) // then it no longer fits
		}
		return Answer{Result: HeldPeer, Peer: i, RetryNs: min(add(now, wait), misfit)}
	}
	if misfit != Never {
		return Answer{Result: HeldWindow, RetryNs: misfit}
	}
	if token.Result == HeldToken && !in.HasToken {
		return token
	}
	return Answer{Result: Open, RetryNs: now}
}

// beside reports whether the launch may run beside a peer, whatever that one does.
func beside(in *Input, h *Peer, estimate uint64) bool {
	return h.CoRun && in.Beside && add(in.OutstandingNs, estimate) <= in.CoRunNs
}

// widen puts the safety margin on a duration of at most durationMaxNs.
func widen(duration uint64, marginPPM uint32) uint64 {
	return duration + duration*min(uint64(marginPPM), marginMaxPPM)/1_000_000
}

// add saturates: the sum of two published numbers must not wrap into the past.
func add(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}
