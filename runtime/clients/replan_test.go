package clients

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/heddle-project/heddle/runtime/abi"
	"github.com/heddle-project/heddle/runtime/wire"
)

func TestAnAdaptingPlannerSeesWhatItsClientsDo(t *testing.T) {
	seen := make(chan []Member, 1000)
	s := serve(t, func(o *Options) {
		o.Planner.(*policy).interval = time.Millisecond
		o.Planner.(*policy).plans = func(m []Member) {
			select {
			case seen <- append([]Member(nil), m...):
			default: // nobody reads any more
			}
		}
	})
	device := wire.UUID{1}
	a, b := attach(t, s.path, hello("a")), attach(t, s.path, hello("b"))
	a.open(0, device)
	b.open(0, device)
	atomic.StoreUint64(&a.seg.Devices[0].DeviceNs, 5_000_000)
	atomic.StoreUint32(&a.seg.Devices[0].BusyStreams, 1)
	atomic.StoreUint64(&b.seg.Devices[0].HeldSinceNs, 7)
	find := func(want ...Observed) func() bool {
		return func() bool {
			for {
				select {
				case members := <-seen:
					if len(members) == 2 && members[0].Observed == want[0] && members[1].Observed == want[1] {
						return true
					}
				default:
					return false
				}
			}
		}
	}
	eventually(t, "a plan that knows of both", find(Observed{Service: 5 * time.Millisecond, Backlogged: true}, Observed{Backlogged: true}))
	atomic.StoreUint64(&a.seg.Devices[0].DeviceNs, 9_000_000)
	eventually(t, "a plan that knows of more work", find(Observed{Service: 9 * time.Millisecond, Backlogged: true}, Observed{Backlogged: true}))
	atomic.StoreUint64(&a.seg.Devices[0].BusyNs, 3_000_000)
	atomic.AddUint32(&a.seg.Devices[0].Doorbell, 2)
	eventually(t, "a plan that knows of two spans", find(
		Observed{Service: 9 * time.Millisecond, Busy: 3 * time.Millisecond, Worked: 3 * time.Millisecond, Spans: 2, Backlogged: true}, Observed{Backlogged: true}))
}

func TestReplanAsksThePlannerAnew(t *testing.T) {
	plans := atomic.Int64{}
	s := serve(t, func(o *Options) { o.Planner.(*policy).plans = func([]Member) { plans.Add(1) } })
	a, b := attach(t, s.path, hello("a")), attach(t, s.path, hello("b"))
	a.open(0, gpu0)
	b.open(0, gpu0)
	atomic.StoreUint32(&a.seg.Devices[0].BusyStreams, 1)
	s.policy.mu.Lock()
	s.policy.pause = map[uint64]bool{a.welcome.ClientID: true}
	s.policy.mu.Unlock()
	s.Replan()
	eventually(t, "what the planner decides now", func() bool { return a.gate(0)&abi.GateClosed != 0 })
	s.policy.mu.Lock()
	s.policy.interval = time.Millisecond
	s.policy.mu.Unlock()
	s.Replan()
	before := plans.Load()
	eventually(t, "it wants to plan again and again", func() bool { return plans.Load() > before+10 })
}

func TestAPlannerMayPauseAClientThatHeddledWatchesFor(t *testing.T) {
	s := serve(t, func(o *Options) { o.Planner.(*policy).interval = time.Millisecond })
	s.policy.grants["strict"] = Grant{Tenant: "t", Priority: 7, MaxPriority: 7, Weight: 100, MaxWeight: 100, Strict: true}
	s.policy.grants["high"] = Grant{Tenant: "t", Priority: 2, MaxPriority: 2, Weight: 100, MaxWeight: 100}
	device := wire.UUID{1}
	high, low := attach(t, s.path, hello("high")), attach(t, s.path, hello("strict"))
	high.open(0, device)
	low.open(0, device)
	closed := func() bool { return atomic.LoadUint32(&low.verdict.Devices[0].Gate)&abi.GateClosed != 0 }
	set := func(busy uint32, paused bool) {
		atomic.StoreUint32(&high.seg.Devices[0].BusyStreams, busy)
		// At work, so that its device is planned anew.
		atomic.StoreUint64(&low.seg.Devices[0].HeldSinceNs, 1)
		s.policy.mu.Lock()
		defer s.policy.mu.Unlock()
		s.policy.pause = map[uint64]bool{low.welcome.ClientID: paused}
	}
	set(1, false)
	eventually(t, "closed for its peer", closed)
	set(0, false)
	eventually(t, "open", func() bool { return !closed() })
	set(0, true)
	eventually(t, "closed by the planner", closed)
	// Its peer falls idle again, which must not open it.
	set(1, true)
	set(0, true)
	for range 20 {
		if s.mediateAll(); !closed() {
			t.Fatal("heddled opened a gate that the planner closed")
		}
	}
	set(0, false)
	eventually(t, "open again", func() bool { return !closed() })
}
