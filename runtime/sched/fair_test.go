package sched_test

import (
	"math"
	"testing"
	"time"

	"github.com/heddle-project/heddle/runtime/sched"
)

// share plays clients that always have work on a device which gives every open client the same
// part of a step, and returns what part of the device each got.
func share(t *testing.T, policy sched.Policy, clients []sched.Client, speed func(i int, at time.Duration) float64) []float64 {
	t.Helper()
	const step = 2 * time.Millisecond
	const length = 10 * time.Second
	served := make([]float64, len(clients))
	for at := time.Duration(0); at < length; at += step {
		for i := range clients {
			clients[i].Observed = sched.Observed{Service: time.Duration(served[i]), Backlogged: true}
		}
		var open []int
		for _, v := range policy.Plan(sched.View{NowNs: uint64(at), Clients: clients}) {
			if v.Gate&sched.GateClosed == 0 {
				open = append(open, int(v.Client-1))
			}
		}
		if len(open) == 0 {
			t.Fatalf("at %v nobody may run", at)
		}
		total := 0.0
		for _, i := range open {
			total += speed(i, at)
		}
		for _, i := range open {
			served[i] += float64(step) * speed(i, at) / total
		}
	}
	for i := range served {
		served[i] /= float64(length)
	}
	return served
}

func TestOthersDoNotWaitForAClientThatGetsNothingDone(t *testing.T) {
	q := sched.FairQueue{Ahead: 4 * ms}
	clients := same(2, 100)
	clients[0].Observed.Backlogged, clients[1].Observed.Backlogged = true, true
	work := func(plans int) (waits int) {
		for range plans {
			if q.Throttled(0, clients, false).Has("gpu", 2) {
				waits++
			} else {
				clients[1].Observed.Service += ms
			}
		}
		return waits
	}
	if waits := work(2000); waits > 60 {
		t.Errorf("beside a client that was stopped the other waited in %d of 2000 plans", waits)
	}
	clients[0].Observed.Service += ms
	if waits := work(4); waits != 0 {
		t.Errorf("the first comes back with a credit: the other waits for %d plans", waits)
	}
}

func TestWhoIsFarAheadWaitsHoweverLongItTakes(t *testing.T) {
	q := sched.FairQueue{Ahead: 4 * ms}
	clients := same(2, 100)
	clients[0].Observed.Backlogged, clients[1].Observed.Backlogged = true, true
	q.Throttled(0, clients, false)
	clients[0].Observed.Service += 600 * ms // one kernel
	for plan := range 580 {
		clients[1].Observed.Service += ms
		if !q.Throttled(0, clients, false).Has("gpu", 1) {
			t.Fatalf("it goes on after %d ms", plan)
		}
	}
}

func alike(int, time.Duration) float64 { return 1 }

func same(n, weight int) []sched.Client {
	clients := make([]sched.Client, n)
	for i := range clients {
		clients[i] = sched.Client{ID: sched.ClientID(i + 1), Device: "gpu", Class: 7, Weight: weight}
	}
	return clients
}

func TestSharesInsideAClass(t *testing.T) {
	weighted := same(3, 100)
	weighted[1].Weight, weighted[2].Weight = 200, 400
	tests := []struct {
		name    string
		clients []sched.Client
		speed   func(int, time.Duration) float64
		want    []float64
		within  float64
	}{
		{"equal weights share alike", same(4, 100), alike, []float64{.25, .25, .25, .25}, 0.02},
		{"weights of one, two and four share so", weighted, alike, []float64{1. / 7, 2. / 7, 4. / 7}, 0.03},
		{
			"one whose work takes more of the device when both run gains nothing", same(2, 100),
			func(i int, _ time.Duration) float64 { return []float64{1, 9}[i] },
			[]float64{.5, .5}, 0.02,
		},
		{
			"one that changes what it does gains nothing", same(2, 100),
			func(i int, at time.Duration) float64 {
				if i == 1 && at%time.Second < 500*time.Millisecond {
					return 20
				}
				return 1
			},
			[]float64{.5, .5}, 0.02,
		},
	}
	policies := []func() sched.Policy{
		func() sched.Policy { return sched.NewHeddle(sched.DefaultSettings()) },
		func() sched.Policy { return sched.NewFair(sched.DefaultSettings()) },
	}
	for _, tt := range tests {
		for _, policy := range policies {
			p := policy()
			t.Run(tt.name+" under "+p.Name(), func(t *testing.T) {
				for i, got := range share(t, p, tt.clients, tt.speed) {
					if math.Abs(got-tt.want[i]) > tt.within*tt.want[i] {
						t.Errorf("client %d got %.4f of the device, want %.4f within %.0f %%", i, got, tt.want[i], tt.within*100)
					}
				}
			})
		}
	}
}

func TestAClientThatComesBackBringsNoCredit(t *testing.T) {
	q := sched.FairQueue{Ahead: 4 * time.Millisecond}
	clients := same(2, 100)
	closed := func() (first, second bool) {
		set := q.Throttled(0, clients, false)
		return set.Has("gpu", 1), set.Has("gpu", 2)
	}
	// The first works alone for a second; then the second comes.
	for ms := range 500 {
		clients[0].Observed = sched.Observed{Service: time.Duration(ms) * 2 * time.Millisecond, Backlogged: true}
		if first, _ := closed(); first {
			t.Fatalf("after %d ms alone the first is throttled", ms)
		}
	}
	clients[1].Observed.Backlogged = true
	if first, second := closed(); first || second {
		t.Fatalf("throttled on arrival: %v, %v", first, second)
	}
	clients[0].Observed.Service += 3 * time.Millisecond
	if first, _ := closed(); first {
		t.Error("the first is throttled although it is less than Ahead before the second")
	}
	clients[0].Observed.Service += 3 * time.Millisecond
	if first, _ := closed(); !first {
		t.Error("the first is not throttled although it is more than Ahead before the second")
	}
}

func TestAnUrgentClientIsNeverThrottledForALesserOne(t *testing.T) {
	p := sched.NewHeddle(sched.DefaultSettings())
	clients := same(2, 100)
	clients[0].Class = 2
	for ms := range 2000 {
		clients[0].Observed = sched.Observed{Service: time.Duration(ms) * time.Millisecond, Backlogged: true}
		clients[1].Observed = sched.Observed{Backlogged: true}
		for _, v := range p.Plan(sched.View{NowNs: uint64(ms) * 1e6, Clients: clients}) {
			if v.Client == 1 && v.Gate&sched.GateClosed != 0 {
				t.Fatalf("after %d ms the urgent client is closed", ms)
			}
		}
	}
}
