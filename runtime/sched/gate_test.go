package sched_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/heddle-project/heddle/runtime/abi"
	"github.com/heddle-project/heddle/runtime/sched"
)

// TestNumbersAreThoseOfTheContract holds together what this package may not import and must equal.
func TestNumbersAreThoseOfTheContract(t *testing.T) {
	tests := []struct {
		name      string
		got, want int
	}{
		{"closed", int(sched.GateClosed), abi.GateClosed},
		{"yield", int(sched.GateYield), abi.GateYield},
		{"publish", int(sched.GatePublish), abi.GatePublish},
		{"window", int(sched.GateWindow), abi.GateWindow},
		{"fill", int(sched.GateFill), abi.GateFill},
		{"measure", int(sched.GateMeasure), abi.GateMeasure},
		{"open", int(sched.Open), abi.GateOpen},
		{"held closed", int(sched.HeldClosed), abi.GateHeldClosed},
		{"held by the window", int(sched.HeldWindow), abi.GateHeldWindow},
		{"held by a peer", int(sched.HeldPeer), abi.GateHeldPeer},
		{"overrun", int(sched.Overrun), abi.GateOverrun},
		{"held for the token", int(sched.HeldToken), abi.GateHeldToken},
		{"held as too long", int(sched.HeldLong), abi.GateHeldLong},
		{"classes", sched.Classes, abi.ClassesMax},
		{"peers", sched.PeersMax, abi.PeersMax},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("%s is %d here and %d in the contract", tt.name, tt.got, tt.want)
		}
	}
}

// newRand prints its seed: a failure can be repeated by writing the seed here.
func newRand(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// someTime favours the values at which comparisons turn.
func someTime(r *rand.Rand, near uint64) uint64 {
	switch r.IntN(8) {
	case 0:
		return 0
	case 1:
		return math.MaxUint64 - uint64(r.IntN(3))
	case 2:
		return r.Uint64()
	case 3:
		return 1000*1e9 + uint64(r.IntN(3)) - 1
	default:
		return near + uint64(r.IntN(20)) - min(near, 10)
	}
}

func someInput(r *rand.Rand) (sched.Input, []sched.Peer) {
	now := 100 + uint64(r.IntN(50))
	sometimes := func(value uint64) uint64 {
		if r.IntN(4) != 0 {
			return 0
		}
		return value
	}
	in := sched.Input{
		NowNs: someTime(r, now), EstimateNs: someTime(r, 5), OutstandingNs: someTime(r, 5), WindowNs: someTime(r, 10),
		QuietNs: someTime(r, 20), HeldSinceNs: someTime(r, now), MaxHoldNs: someTime(r, 30),
		CoRunNs: someTime(r, 20), MinGapNs: sometimes(someTime(r, 5)), MaxBlockNs: sometimes(someTime(r, 15)),
		Gate: sched.Gate(r.IntN(32)), MarginPPM: uint32(r.IntN(3) * 400_000),
		HasToken: r.IntN(2) == 0, Beside: r.IntN(2) == 0,
	}
	if r.IntN(2) == 0 { // the rules for gaps are most of the rules
		in.Gate = sched.GateYield | sched.GateFill
	}
	peers := make([]sched.Peer, r.IntN(4))
	for i := range peers {
		peers[i] = sched.Peer{
			Busy: uint32(max(0, r.IntN(4)-2)), CoRun: r.IntN(5) == 0,
			IdleSinceNs: someTime(r, now), NextLaunchNs: someTime(r, now+5), WantNs: sometimes(someTime(r, 5)),
		}
	}
	return in, peers
}

const rounds = 20_000

func held(a sched.Answer) bool { return a.Result != sched.Open && a.Result != sched.Overrun }

// property runs check on many random inputs, until one fails.
func property(t *testing.T, check func(in sched.Input, peers []sched.Peer, a sched.Answer) error) {
	t.Helper()
	r := newRand(t)
	for range rounds {
		in, peers := someInput(r)
		if err := check(in, peers, sched.Decide(&in, peers)); err != nil {
			t.Fatalf("%v\ninput %+v, peers %+v", err, in, peers)
		}
	}
}

func TestGateProperties(t *testing.T) {
	t.Run("closed is final whatever else is given", func(t *testing.T) {
		property(t, func(in sched.Input, peers []sched.Peer, _ sched.Answer) error {
			in.Gate |= sched.GateClosed
			if a := sched.Decide(&in, peers); a.Result != sched.HeldClosed || a.RetryNs != sched.Never {
				return fmt.Errorf("got %+v", a)
			}
			return nil
		})
	})
	t.Run("held answers stay as they are until their retry time", func(t *testing.T) {
		property(t, func(in sched.Input, peers []sched.Peer, a sched.Answer) error {
			if !held(a) || a.RetryNs <= in.NowNs {
				return nil
			}
			later := in
			for _, at := range []uint64{in.NowNs + 1, in.NowNs + (a.RetryNs-in.NowNs)/2, a.RetryNs - 1} {
				// A time stamp from the future moves with the reader's clock: it is no event, but it
				// is no promise either.
				if at < in.NowNs || at >= a.RetryNs || future(&in, peers) {
					continue
				}
				later.NowNs = at
				// While time goes by, the gap of another peer may close: then that one is named.
				b := sched.Decide(&later, peers)
				same := b.Result == a.Result && b.Peer == a.Peer
				closing := in.Gate&sched.GateFill != 0 && a.Result != sched.HeldWindow && held(b)
				if !same && !closing {
					return fmt.Errorf("at %d: %+v, at %d already %+v", in.NowNs, a, at, b)
				}
			}
			return nil
		})
	})
	t.Run("at the retry time the holder holds no longer", func(t *testing.T) {
		property(t, func(in sched.Input, peers []sched.Peer, a sched.Answer) error {
			if !held(a) || a.RetryNs == sched.Never || future(&in, peers) {
				return nil
			}
			later := in
			later.NowNs = a.RetryNs
			b := sched.Decide(&later, peers)
			switch {
			case !held(b) || b.Result != a.Result || b.Peer != a.Peer:
				return nil
			case a.Result == sched.HeldPeer && peers[a.Peer].WantNs != 0:
				return nil // until it has gone, or wants nothing any more
			case a.Result != sched.HeldPeer && b.RetryNs > a.RetryNs:
				return nil // for the gap of another peer
			}
			return fmt.Errorf("%+v, and at its retry time %+v", a, b)
		})
	})
	t.Run("open stays open as time goes by, filling aside", func(t *testing.T) {
		property(t, func(in sched.Input, peers []sched.Peer, _ sched.Answer) error {
			in.Gate &^= sched.GateFill
			a := sched.Decide(&in, peers)
			if held(a) || in.NowNs > math.MaxUint64/2 || future(&in, peers) {
				return nil
			}
			for _, step := range []uint64{1, 10, 1e9, 1e18} {
				later := in
				later.NowNs += step
				if b := sched.Decide(&later, peers); held(b) {
					return fmt.Errorf("open at %d, %+v at %d", in.NowNs, b, later.NowNs)
				}
			}
			return nil
		})
	})
	t.Run("nobody waits longer than max_hold, closed and long aside", func(t *testing.T) {
		property(t, func(in sched.Input, peers []sched.Peer, _ sched.Answer) error {
			in.Gate &^= sched.GateClosed
			in.MaxBlockNs = 0
			in.HeldSinceNs = max(1, min(in.HeldSinceNs, math.MaxUint64/2))
			in.NowNs = in.HeldSinceNs + min(in.MaxHoldNs, 1000*1e9)
			if a := sched.Decide(&in, peers); held(a) {
				return fmt.Errorf("held after %d: %+v", in.NowNs-in.HeldSinceNs, a)
			}
			return nil
		})
	})
	t.Run("an idle peer that was never busy holds nobody", func(t *testing.T) {
		property(t, func(in sched.Input, peers []sched.Peer, a sched.Answer) error {
			in.NowNs = max(in.NowNs, 1000*1e9)
			a = sched.Decide(&in, peers)
			with := slices.Insert(slices.Clone(peers), 0, sched.Peer{})
			b := sched.Decide(&in, with)
			if b.Result != a.Result || (a.Result == sched.HeldPeer || a.Result == sched.HeldToken) && b.Peer != a.Peer+1 {
				return fmt.Errorf("%+v without it, %+v with it", a, b)
			}
			return nil
		})
	})
	t.Run("one peer less never turns open into held", func(t *testing.T) {
		property(t, func(in sched.Input, peers []sched.Peer, _ sched.Answer) error {
			a := withoutWants(&in, peers)
			for i := range peers {
				fewer := slices.Delete(slices.Clone(peers), i, i+1)
				if b := sched.Decide(&in, fewer); !held(a) && held(b) {
					return fmt.Errorf("%+v with peer %d, %+v without", a, i, b)
				}
			}
			return nil
		})
	})
	t.Run("a falling estimate, outstanding time or quiet time never turns open into held", func(t *testing.T) {
		property(t, func(in sched.Input, peers []sched.Peer, _ sched.Answer) error {
			a := withoutWants(&in, peers)
			in.EstimateNs /= 2
			in.OutstandingNs /= 2
			in.QuietNs /= 2
			if b := sched.Decide(&in, peers); !held(a) && held(b) {
				return fmt.Errorf("%+v, and with half of everything %+v", a, b)
			}
			return nil
		})
	})
	t.Run("the window never holds the only launch", func(t *testing.T) {
		property(t, func(in sched.Input, peers []sched.Peer, _ sched.Answer) error {
			in.OutstandingNs = 0
			if a := sched.Decide(&in, peers); a.Result == sched.HeldWindow {
				return fmt.Errorf("got %+v", a)
			}
			return nil
		})
	})
	t.Run("the order of the peers decides who is named, not whether one holds", func(t *testing.T) {
		property(t, func(in sched.Input, peers []sched.Peer, a sched.Answer) error {
			other := slices.Clone(peers)
			slices.Reverse(other)
			if b := sched.Decide(&in, other); b.Result != a.Result {
				return fmt.Errorf("%+v, reversed %+v", a, b)
			}
			return nil
		})
	})
}

// withoutWants decides for peers that wait for nobody: one that does may fit into the longer gap that
// is left when another peer is gone.
func withoutWants(in *sched.Input, peers []sched.Peer) sched.Answer {
	for i := range peers {
		peers[i].WantNs = 0
	}
	return sched.Decide(in, peers)
}

func TestGatePropertiesOfGaps(t *testing.T) {
	t.Run("the token matters only where a gap is filled", func(t *testing.T) {
		property(t, func(in sched.Input, peers []sched.Peer, _ sched.Answer) error {
			in.HasToken, in.HeldSinceNs = false, 0
			without := sched.Decide(&in, peers)
			in.HasToken = true
			with := sched.Decide(&in, peers)
			switch {
			case without.Result == sched.HeldToken && with.Result == sched.Open && in.Gate&sched.GateFill != 0:
				return nil
			case without != with || with.Result == sched.HeldToken:
				return fmt.Errorf("%+v without the token, %+v with it", without, with)
			}
			return nil
		})
	})
	t.Run("without gaps and wants the first peer that is busy or not yet quiet holds", func(t *testing.T) {
		property(t, func(in sched.Input, peers []sched.Peer, _ sched.Answer) error {
			in.Gate, in.HeldSinceNs, in.MaxBlockNs = sched.GateYield, 0, 0
			a := withoutWants(&in, peers)
			first := slices.IndexFunc(peers, func(p sched.Peer) bool {
				quiet := p.Busy == 0 && in.NowNs-min(p.IdleSinceNs, in.NowNs) >= min(in.QuietNs, 1000*1e9)
				return !quiet && !runsBeside(&in, p)
			})
			if (a.Result == sched.HeldPeer) != (first >= 0) || held(a) && a.Peer != first {
				return fmt.Errorf("%+v, want peer %d", a, first)
			}
			return nil
		})
	})
	t.Run("what passes a predicted gap ends in it", func(t *testing.T) {
		property(t, func(in sched.Input, peers []sched.Peer, _ sched.Answer) error {
			in.Gate, in.HeldSinceNs, in.MarginPPM = sched.GateYield|sched.GateFill, 0, 0
			in.NowNs = min(in.NowNs, math.MaxUint64/2)
			if held(sched.Decide(&in, peers)) {
				return nil
			}
			for _, p := range peers {
				ahead := p.NextLaunchNs > max(in.NowNs, min(p.IdleSinceNs, in.NowNs))
				if !ahead || runsBeside(&in, p) {
					continue
				}
				left := p.NextLaunchNs - in.NowNs
				if p.Busy != 0 || min(in.EstimateNs, 1000*1e9) > left || min(in.MinGapNs, 1000*1e9) > left {
					return fmt.Errorf("open, and %d until the launch of %+v", left, p)
				}
			}
			return nil
		})
	})
	t.Run("who goes first wants something", func(t *testing.T) {
		property(t, func(in sched.Input, peers []sched.Peer, _ sched.Answer) error {
			in.HeldSinceNs = 0
			a := sched.Decide(&in, peers)
			if b := withoutWants(&in, slices.Clone(peers)); a != b && (a.Result != sched.HeldPeer || peers[a.Peer].WantNs == 0) {
				return fmt.Errorf("%+v, and without wants %+v", a, b)
			}
			return nil
		})
	})
	t.Run("a launch that is too long is held for ever", func(t *testing.T) {
		property(t, func(in sched.Input, peers []sched.Peer, _ sched.Answer) error {
			in.Gate &^= sched.GateClosed
			in.MaxBlockNs = max(1, min(in.MaxBlockNs, 1e9))
			in.EstimateNs = in.MaxBlockNs + 1
			if a := sched.Decide(&in, peers); a != (sched.Answer{Result: sched.HeldLong, RetryNs: sched.Never}) {
				return fmt.Errorf("got %+v", a)
			}
			in.EstimateNs = in.MaxBlockNs
			if a := sched.Decide(&in, peers); a.Result == sched.HeldLong {
				return fmt.Errorf("got %+v for one that is just not too long", a)
			}
			return nil
		})
	})
	t.Run("only a kernel that may run beside others does", func(t *testing.T) {
		property(t, func(in sched.Input, peers []sched.Peer, _ sched.Answer) error {
			in.Beside = false
			a := sched.Decide(&in, peers)
			for i := range peers {
				peers[i].CoRun = !peers[i].CoRun
			}
			if b := sched.Decide(&in, peers); a != b {
				return fmt.Errorf("%+v, with other corun bits %+v", a, b)
			}
			return nil
		})
	})
}

func runsBeside(in *sched.Input, p sched.Peer) bool {
	sum := in.OutstandingNs + min(in.EstimateNs, 1000*1e9)
	if sum < in.OutstandingNs {
		sum = math.MaxUint64
	}
	return p.CoRun && in.Beside && sum <= in.CoRunNs
}

// future reports whether a time stamp that the decision uses lies ahead of the reader's clock.
func future(in *sched.Input, peers []sched.Peer) bool {
	return in.HeldSinceNs > in.NowNs ||
		slices.ContainsFunc(peers, func(p sched.Peer) bool { return p.IdleSinceNs > in.NowNs })
}

func TestDecideAllocatesNothing(t *testing.T) {
	in := sched.Input{NowNs: 10, Gate: sched.GateYield | sched.GateWindow, QuietNs: 5}
	peers := []sched.Peer{{IdleSinceNs: 1}, {IdleSinceNs: 9}}
	if n := testing.AllocsPerRun(100, func() { sched.Decide(&in, peers) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
