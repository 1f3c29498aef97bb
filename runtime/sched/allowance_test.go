package sched_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/heddle-project/heddle/runtime/sched"
)

// hostBound is a service that pauses for 1 ms, was measured for long and is not slowed down, and
// trainers whose next launch takes so long.
func hostBound(trainers int, launch time.Duration) *node {
	n := newNode(trainers)
	n.service.Demand.Gap = ms
	for range 40 {
		n.step(60*ms, 1)
	}
	for i := range n.view.Clients[1:] {
		n.view.Clients[i+1].Observed.Waiting = launch
	}
	return n
}

// granted returns the clients whose launch may go although it fits no gap: with the next gap, or
// without a margin. 0 = none.
func granted(t *testing.T, verdicts []sched.Verdict) (client sched.ClientID) {
	t.Helper()
	for _, v := range lower(verdicts) {
		if v.Gate&sched.GateClosed != 0 || v.Parameters.Window != 1 {
			continue
		}
		if client != 0 {
			t.Errorf("both %d and %d", client, v.Client)
		}
		if atOnce := v.Gate&sched.GateFill == 0 && v.Parameters.Quiet == 0; !atOnce && v.Parameters.MarginPPM != 0 {
			t.Errorf("neither at once nor without a margin: %+v", v)
		}
		client = v.Client
	}
	return client
}

// launch lets a client's launch go and end.
func (n *node) launch(id sched.ClientID) {
	c := &n.view.Clients[id-1]
	c.Observed.Service += c.Observed.Waiting
	c.Observed.Waiting = 0
}

func TestWhatFitsNoGapGoesNowAndThen(t *testing.T) {
	const launch = 1250 * time.Microsecond
	n := hostBound(3, launch)
	went := map[sched.ClientID]int{}
	worked := time.Duration(0)
	for range 4000 {
		v := n.step(ms, 1)
		worked += ms
		id := granted(t, v)
		if id == 0 {
			continue
		}
		if got := open(v); got != 1 {
			t.Fatalf("while the launch of %d has the gap %d may run", id, got)
		}
		went[id]++
		n.launch(id)
		if again := granted(t, n.step(0, 1)); again != 0 {
			t.Fatalf("right after its launch %d has another", again)
		}
		n.view.Clients[id-1].Observed.Waiting = launch
	}
	total := went[2] + went[3] + went[4]
	// Each puts the service off by 0.25 ms, and a little for reacting.
	if lost := float64(total) * 0.25 / float64(worked/ms); lost > 0.02 || lost < 0.014 {
		t.Errorf("%d launches cost the service %.4f of its time, it accepts 0.02", total, lost)
	}
	for id, k := range went {
		if k < total/3-1 || k > total/3+1 {
			t.Errorf("client %d had %d of %d", id, k, total)
		}
	}
}

func TestWhoHasNoAllowance(t *testing.T) {
	const tooLong = 1250 * time.Microsecond
	for _, tt := range []struct {
		name   string
		launch time.Duration
		change func(*node)
	}{
		{"a launch that fits the gap", 900 * time.Microsecond, func(*node) {}},
		{"nothing waits", 0, func(*node) {}},
		{"a launch that claims to take for ever", math.MaxInt64, func(*node) {}},
		{"a launch that would cost more than can be saved up", 3 * ms, func(*node) {}},
		{"beside a service whose pauses nobody can predict", tooLong, func(n *node) { n.service.Demand.Gap = 0 }},
		{"where programs take turns and it costs a change besides", tooLong, func(n *node) { n.view.Devices = nil }},
		{"in the middle of a gap", tooLong, func(n *node) { n.service.Observed.Backlogged = false }},
		{"beside one of two services that has no objective", tooLong, func(n *node) {
			n.view.Clients[1].Class, n.view.Clients[1].SLO = 2, 1
			n.view.Clients[1].Demand.Gap, n.view.Clients[1].Observed.Waiting = ms, 0
		}},
		{"a client that the daemon mediates for", tooLong, func(n *node) {
			n.view.Clients[1].Strict, n.view.Clients[2].Strict = true, true
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := hostBound(2, tt.launch)
			tt.change(n)
			for range 100 {
				if id := granted(t, n.step(ms, 1)); id != 0 {
					t.Fatalf("client %d", id)
				}
			}
		})
	}
	t.Run("no objective at all", func(t *testing.T) {
		s := sched.DefaultSettings()
		s.SLO = 0
		n := hostBound(1, tooLong)
		n.policy = sched.NewHeddle(s)
		for range 400 {
			if id := granted(t, n.step(60*ms, 1)); id != 0 {
				t.Fatalf("client %d", id)
			}
		}
	})
	t.Run("a service that suffers already", func(t *testing.T) {
		n := hostBound(1, tooLong)
		for range 20 {
			n.step(60*ms, 1.5)
		}
		n.launch(2)
		n.step(0, 1)
		n.view.Clients[1].Observed.Waiting = tooLong
		for range 100 {
			if id := granted(t, n.step(ms, 1.5)); id != 0 {
				t.Fatalf("client %d", id)
			}
		}
	})
}

func TestWhereProgramsTakeTurnsAGapIsFilledNowAndThen(t *testing.T) {
	// 100 us for a change, and 100 us for another should a second gap follow, are 2 % of 10 ms.
	n := hostBound(2, 300*time.Microsecond)
	n.view.Devices["gpu"] = sched.Device{Limits: sched.Limits{SMs: 100}}
	least := sched.DefaultSettings().Classes[7].MinGap
	gaps := 0
	for range 1000 {
		for _, v := range lower(n.step(ms, 1)) {
			if v.Gate&sched.GateClosed != 0 || v.Parameters.MinGap != least {
				continue
			}
			gaps++
			if v.Gate&sched.GateFill == 0 || v.Parameters.Window == 1 || v.Parameters.MarginPPM == 0 {
				t.Fatalf("it is to fill the gap as any other: %+v", v)
			}
			n.launch(v.Client)
			n.step(0, 1)
			n.view.Clients[v.Client-1].Observed.Waiting = 300 * time.Microsecond
		}
	}
	if gaps < 80 || gaps > 101 { // one of what was saved up before
		t.Errorf("%d gaps in a second of the service's work, want 100", gaps)
	}
}

func TestAGrantWaitsForItsLaunch(t *testing.T) {
	n := hostBound(2, 1250*time.Microsecond)
	id := granted(t, n.step(ms, 1))
	if id == 0 {
		t.Fatal("no grant")
	}
	n.service.Observed.Backlogged = false
	for range 10 { // the gap began, and its launch is on the way
		if got := granted(t, n.step(0, 1)); got != id {
			t.Fatalf("client %d has the grant that %d has not used", got, id)
		}
	}
	n.view.Clients[id-1].Observed.Waiting = 0
	if got := granted(t, n.step(0, 1)); got != 0 {
		t.Errorf("client %d has a grant when the launch went", got)
	}
}

func TestWhoNeverLaunchesStopsNobody(t *testing.T) {
	n := hostBound(3, 1250*time.Microsecond)
	stopped := granted(t, n.step(ms, 1))
	went := 0
	for range 2000 {
		id := granted(t, n.step(ms, 1))
		if id == 0 || id == stopped {
			continue
		}
		went++
		n.launch(id)
		n.step(0, 1)
		n.view.Clients[id-1].Observed.Waiting = 1250 * time.Microsecond
	}
	// Each costs 0.3 ms of the 2 % of 2 s.
	if went < 100 {
		t.Errorf("beside client %d, which was stopped before its launch, the others had %d", stopped, went)
	}
	n.launch(stopped)
	n.step(0, 1)
	n.view.Clients[stopped-1].Observed.Waiting = 1250 * time.Microsecond
	for range 200 {
		id := granted(t, n.step(ms, 1))
		if id == stopped {
			return
		}
		if id != 0 {
			n.launch(id)
		}
	}
	t.Error("it never gets another grant")
}

// Whatever the service does and whoever waits, what launches that fit no gap cost stays within the
// objective.
func TestAllowancesStayWithinTheObjective(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	grants := 0
	for range 40 {
		n := hostBound(1+r.IntN(3), 0)
		slo := 1 + r.Float64()*0.1
		n.service.SLO = slo
		n.service.Demand.Gap = time.Duration(1 + r.IntN(int(3*ms)))
		// It may begin with what was saved up of the default objective.
		budget := float64(ms)
		lost := time.Duration(0)
		for range 1000 {
			for i := range n.view.Clients[1:] {
				c := &n.view.Clients[i+1]
				c.Demand.Longest, c.Demand.Spread = 4*ms, 0.05
				if c.Observed.Waiting == 0 && r.IntN(3) == 0 {
					c.Observed.Waiting = time.Duration(1 + r.IntN(int(4*ms)))
				}
			}
			n.service.Observed.Backlogged = r.IntN(4) != 0
			work := time.Duration(r.IntN(int(2 * ms)))
			budget += (slo - 1) * float64(work)
			id := granted(t, n.step(work, 1))
			if id == 0 {
				continue
			}
			grants++
			lost += max(0, n.view.Clients[id-1].Observed.Waiting-n.service.Demand.Gap)
			n.launch(id)
			if float64(lost) > budget {
				t.Fatalf("seed %d: %v lost, the objective of %.3f allows %v", seed, lost, slo, time.Duration(budget))
			}
		}
	}
	if grants < 20 {
		t.Errorf("seed %d: %d grants show nothing", seed, grants)
	}
}
