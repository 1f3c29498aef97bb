package sched_test

import (
	"testing"
	"time"

	"github.com/heddle-project/heddle/runtime/sched"
)

// node plays heddle's plans for a service and n trainers on a device of 100 SMs.
type node struct {
	policy  *sched.Heddle
	view    sched.View
	now     time.Duration
	service *sched.Client
}

func newNode(trainers int) *node {
	n := &node{policy: sched.NewHeddle(sched.DefaultSettings())}
	n.view.Clients = inClasses(append([]int{2}, make([]int, trainers)...)...)
	for i := range n.view.Clients {
		c := &n.view.Clients[i]
		c.Observed.Backlogged = true
		c.Demand = sched.Demand{Known: true, PeakSMs: 40, DRAM: 0.3, Longest: ms}
		if i > 0 {
			c.Class = 7
		}
	}
	n.view.Devices = map[sched.DeviceID]sched.Device{"gpu": {Limits: sched.Limits{SMs: 100, ThreadsPerSM: 2048}, Shared: true}}
	n.service = &n.view.Clients[0]
	return n
}

// step lets the service work for a while with a slowdown, and returns the plan after it.
func (n *node) step(work time.Duration, slowdown float64) []sched.Verdict {
	n.now += 2 * ms
	n.view.NowNs = uint64(n.now)
	o := &n.service.Observed
	o.Service += work
	o.Expected += work
	o.Measured += time.Duration(float64(work) * slowdown)
	return n.policy.Plan(n.view)
}

func open(verdicts []sched.Verdict) (n int) {
	for _, v := range verdicts {
		if len(v.Yields) != 0 && v.Gate&sched.GateClosed == 0 {
			n++
		}
	}
	return n
}

func TestTrainersRunOneAtATimeUntilTheServiceAllowsMore(t *testing.T) {
	n := newNode(4)
	if got := open(n.step(0, 1)); got != 1 {
		t.Errorf("before anything was measured %d of 4 may run", got)
	}
	var v []sched.Verdict
	for range 40 {
		v = n.step(60*ms, 1)
	}
	if got := open(v); got != 4 {
		t.Errorf("beside a service that is not slowed down %d of 4 may run", got)
	}
	for range 4 {
		v = n.step(60*ms, 1.05)
	}
	if got := open(v); got != 1 {
		t.Errorf("beside a service that is slowed down %d of 4 may run", got)
	}
}

func TestTrainersTakeTurns(t *testing.T) {
	n := newNode(3)
	turns := map[sched.ClientID]int{}
	for range 300 {
		for _, v := range n.step(0, 1) {
			if len(v.Yields) != 0 && v.Gate&sched.GateClosed == 0 {
				turns[v.Client]++
				n.view.Clients[v.Client-1].Observed.Service += 2 * ms
			}
		}
	}
	for id := sched.ClientID(2); id <= 4; id++ {
		if turns[id] < 98 || turns[id] > 102 {
			t.Errorf("client %d had %d of 300 turns", id, turns[id])
		}
	}
}

func TestAServiceThatIsNotUsedHoldsNobodyBack(t *testing.T) {
	n := newNode(4)
	n.service.Observed.Backlogged = false
	n.step(ms, 1)
	if got := open(n.step(0, 1)); got != 1 {
		t.Errorf("right after a request %d of 4 may run", got)
	}
	n.now += 300 * ms
	if got := open(n.step(0, 1)); got != 4 {
		t.Errorf("long after the last request %d of 4 may run", got)
	}
}

func TestAClientWithoutWorkKeepsItsGateOpen(t *testing.T) {
	n := newNode(3)
	n.view.Clients[3].Observed.Backlogged = false
	for _, v := range n.step(0, 1) {
		if v.Client == 4 && v.Gate&sched.GateClosed != 0 {
			t.Error("its next launch would wait for a plan")
		}
	}
}

func coRuns(verdicts []sched.Verdict) bool {
	for _, v := range verdicts {
		if len(v.CoRun) != 0 {
			return true
		}
	}
	return false
}

func TestRunningBesideIsEarnedAndLost(t *testing.T) {
	n := newNode(1)
	if coRuns(n.step(0, 1)) {
		t.Error("beside a service of which nothing is known")
	}
	var v []sched.Verdict
	for range 40 {
		v = n.step(60*ms, 1)
	}
	if !coRuns(v) {
		t.Fatal("not beside a service that is not slowed down")
	}
	if b := v[1].Beside; b.SMs != 60 || b.DRAM < 0.79 || b.DRAM > 0.81 {
		t.Errorf("beside 40 of 100 SMs and 0.3 of the bandwidth fits %+v", b)
	}
	for range 2 {
		v = n.step(60*ms, 1.2)
	}
	for range 40 {
		v = n.step(60*ms, 1)
	}
	if coRuns(v) {
		t.Error("beside a service that it has hurt twice")
	}
	n.now += 10 * time.Minute
	if v = n.step(60*ms, 1); !coRuns(v) {
		t.Error("not forgiven after ten minutes")
	}
}

func TestNobodyRunsBesideOnADeviceThatTakesTurns(t *testing.T) {
	n := newNode(1)
	n.view.Devices["gpu"] = sched.Device{Limits: sched.Limits{SMs: 100}}
	var v []sched.Verdict
	for range 40 {
		v = n.step(60*ms, 1)
	}
	if coRuns(v) {
		t.Error("kernels of different processes do not run at the same time there")
	}
}

func TestWhatWasMeasuredForbidsRunningBeside(t *testing.T) {
	for _, tt := range []struct {
		name string
		dram float64 // of the trainer
		want bool
	}{{"enough bandwidth for both", 0.3, true}, {"too little for both", 0.6, false}} {
		n := newNode(1)
		high, low := &n.view.Clients[0].Demand, &n.view.Clients[1].Demand
		high.Vector = sched.Vector{Known: true, SMs: 40, Threads: 512, Use: [sched.Channels]float64{sched.DRAM: 0.5}}
		high.Sensitivity[sched.DRAM] = [4]float64{1.1, 1.2, 1.3, 1.4}
		low.Vector = sched.Vector{Known: true, SMs: 40, Threads: 512, Use: [sched.Channels]float64{sched.DRAM: tt.dram}}
		var v []sched.Verdict
		for range 40 {
			v = n.step(60*ms, 1)
		}
		if coRuns(v) != tt.want {
			t.Errorf("%s: beside %v", tt.name, coRuns(v))
		}
	}
}
