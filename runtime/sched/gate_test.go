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
		{"open", int(sched.Open), abi.GateOpen},
		{"held closed", int(sched.HeldClosed), abi.GateHeldClosed},
		{"held by the window", int(sched.HeldWindow), abi.GateHeldWindow},
		{"held by a peer", int(sched.HeldPeer), abi.GateHeldPeer},
		{"overrun", int(sched.Overrun), abi.GateOverrun},
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
	in := sched.Input{
		NowNs: someTime(r, now), EstimateNs: someTime(r, 5), OutstandingNs: someTime(r, 5), WindowNs: someTime(r, 10),
		QuietNs: someTime(r, 20), HeldSinceNs: someTime(r, now), MaxHoldNs: someTime(r, 30),
		Gate: sched.Gate(r.IntN(32)), MarginPPM: uint32(r.IntN(3) * 400_000), HasToken: r.IntN(2) == 0,
	}
	peers := make([]sched.Peer, r.IntN(4))
	for i := range peers {
		peers[i] = sched.Peer{
			Busy: uint32(max(0, r.IntN(4)-2)), CoRun: r.IntN(5) == 0,
			IdleSinceNs: someTime(r, now), NextLaunchNs: someTime(r, now),
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
				// While time goes by, the gap of a peer before the holder may close: then that peer is named.
				b := sched.Decide(&later, peers)
				if b.Result != a.Result || b.Peer != a.Peer && in.Gate&sched.GateFill == 0 {
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
			if b := sched.Decide(&later, peers); held(b) && b.Result == a.Result && b.Peer == a.Peer {
				return fmt.Errorf("%+v, and at its retry time %+v", a, b)
			}
			return nil
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
	t.Run("nobody waits longer than max_hold, closed aside", func(t *testing.T) {
		property(t, func(in sched.Input, peers []sched.Peer, _ sched.Answer) error {
			in.Gate &^= sched.GateClosed
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
			if b.Result != a.Result || a.Result == sched.HeldPeer && b.Peer != a.Peer+1 {
				return fmt.Errorf("%+v without it, %+v with it", a, b)
			}
			return nil
		})
	})
	t.Run("one peer less never turns open into held", func(t *testing.T) {
		property(t, func(in sched.Input, peers []sched.Peer, a sched.Answer) error {
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
		property(t, func(in sched.Input, peers []sched.Peer, a sched.Answer) error {
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
