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

	gateKnown = GateClosed | GateYield | GatePublish | GateWindow | GateFill
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
)

// Bounds on what is taken seriously; they keep the arithmetic inside 64 bits.
const (
	durationMaxNs uint64 = 1000 * 1e9
	marginMaxPPM  uint64 = 10_000_000
)

// Never is the retry time of an answer that only an event can change.
const Never uint64 = math.MaxUint64

// Peer is what one client of a higher class published.
type Peer struct {
	Busy         uint32 // streams with outstanding work
	CoRun        bool   // the daemon lets the two run side by side
	IdleSinceNs  uint64
	NextLaunchNs uint64 // predicted, 0 = unknown
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
	Gate          Gate
	MarginPPM     uint32
	HasToken      bool // holds the gap token of its class
}

// Answer is the gate's decision.
type Answer struct {
	Result  Result
	Peer    int    // index of the peer that holds, for HeldPeer
	RetryNs uint64 // earliest time at which the answer can change without an event
}

// Decide answers whether a launch may go now, in front of the peers to which its client yields,
// most urgent first. It is heddle_gate_decide of interpose/include/heddle/gate.h in Go: the shared
// vectors and a differential fuzz test hold the two together. Change both or neither.
func Decide(in *Input, peers []Peer) Answer {
	if in.Gate&^gateKnown != 0 || in.Gate&GateClosed != 0 {
		return Answer{Result: HeldClosed, RetryNs: Never}
	}
	a := Answer{Result: Open, RetryNs: Never}
	estimate := min(in.EstimateNs, durationMaxNs)
	switch {
	// One launch is always allowed when nothing is outstanding, however long it is.
	case in.Gate&GateWindow != 0 && in.OutstandingNs != 0 && add(in.OutstandingNs, estimate) > in.WindowNs:
		a.Result = HeldWindow
	case in.Gate&GateYield != 0:
		a = yield(in, peers, estimate)
	}
	if a.Result == Open {
		a.RetryNs = in.NowNs
		return a
	}
	if in.HeldSinceNs == 0 {
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

// yield looks for the first peer that holds the launch.
func yield(in *Input, peers []Peer, estimate uint64) Answer {
	quiet := min(in.QuietNs, durationMaxNs)
	margin := min(uint64(in.MarginPPM), marginMaxPPM)
	end := add(add(in.NowNs, estimate), estimate*margin/1_000_000)
	mayFill := in.Gate&GateFill != 0 && in.HasToken
	for i := range peers {
		h := &peers[i]
		if h.CoRun {
			continue
		}
		if h.Busy != 0 {
			return Answer{Result: HeldPeer, Peer: i, RetryNs: Never}
		}
		// A peer's clock that runs ahead counts as idle only now.
		since := min(h.IdleSinceNs, in.NowNs)
		if in.NowNs-since >= quiet {
			continue
		}
		if mayFill && h.NextLaunchNs != 0 && end <= h.NextLaunchNs {
			continue
		}
		return Answer{Result: HeldPeer, Peer: i, RetryNs: add(since, quiet)}
	}
	return Answer{Result: Open, RetryNs: Never}
}

// add saturates: the sum of two published numbers must not wrap into the past.
func add(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}
