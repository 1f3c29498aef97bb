package sched_test

import (
	"math"
	"testing"
	"time"

	"github.com/heddle-project/heddle/runtime/sched"
)

// lower returns the verdicts of those that yield.
func lower(verdicts []sched.Verdict) (out []sched.Verdict) {
	for _, v := range verdicts {
		if len(v.Yields) != 0 {
			out = append(out, v)
		}
	}
	return out
}

func TestMarginFollowsTheMeasuredSpread(t *testing.T) {
	for _, tt := range []struct {
		name    string
		known   bool
		spread  float64
		trusted bool // the service was measured for long and is not slowed down
		want    uint32
	}{
		{"nothing is known: the class's", false, 0.01, true, 300_000},
		{"not measured yet: the class's", true, math.Inf(1), true, 300_000},
		{"known exactly: the least", true, 0, true, 30_000},
		{"spread by 2 %: three deviations", true, 0.02, true, 60_000},
		{"rounded up to a percent", true, 0.021, true, 70_000},
		{"spread by a quarter: no more than the class's", true, 0.25, true, 300_000},
		{"known exactly, before the service allows anything", true, 0, false, 60_000},
		{"spread by 2 %, before that", true, 0.02, false, 120_000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(1)
			d := &n.view.Clients[1].Demand
			d.Known, d.Spread = tt.known, tt.spread
			v := n.step(0, 1)
			for range 40 {
				if tt.trusted {
					v = n.step(60*ms, 1)
				}
			}
			if got := lower(v)[0].Parameters.MarginPPM; got != tt.want {
				t.Errorf("margin of %d ppm, want %d", got, tt.want)
			}
		})
	}
}

func TestAMarginGrowsWhenTheServiceSuffers(t *testing.T) {
	n := newNode(1)
	n.view.Clients[1].Demand.Spread = 0.03
	var v []sched.Verdict
	for range 40 {
		v = n.step(60*ms, 1)
	}
	before := lower(v)[0].Parameters.MarginPPM
	v = n.step(60*ms, 1.5)
	if after := lower(v)[0].Parameters.MarginPPM; before != 90_000 || after != 140_000 {
		t.Errorf("margin of %d ppm, and after a breach %d", before, after)
	}
}

func TestPredictableGapsAreFilledByToken(t *testing.T) {
	const gap = 1500 * time.Microsecond
	quiet := sched.DefaultSettings().Classes[7].Quiet
	n := newNode(4)
	n.service.Demand.Gap = gap
	v := n.step(ms, 1)
	if got := open(v); got != 4 {
		t.Errorf("%d of 4 may fill gaps that are predicted", got)
	}
	for _, v := range lower(v) {
		if v.Gate&sched.GateFill == 0 || v.Parameters.Quiet != gap {
			t.Errorf("client %d needs the token for %v of a gap of %v", v.Client, v.Parameters.Quiet, gap)
		}
	}
	n.service.Demand.Gap = 0
	if v = n.step(ms, 1); open(v) != 1 || lower(v)[0].Parameters.Quiet != quiet {
		t.Errorf("in gaps that nobody can predict %d go at once, after %v", open(v), lower(v)[0].Parameters.Quiet)
	}
	n.service.Demand.Gap, n.service.Observed.Backlogged = gap, false
	n.now += 300 * ms
	if v = n.step(0, 1); open(v) != 4 || lower(v)[0].Parameters.Quiet != quiet {
		t.Errorf("long after the last request %d go, after %v", open(v), lower(v)[0].Parameters.Quiet)
	}
}

func TestOneClientMayFillAGapToItsEnd(t *testing.T) {
	window := sched.DefaultSettings().Classes[7].Window
	for _, tt := range []struct {
		trainers int
		gap      time.Duration
		want     time.Duration
	}{{1, 3 * ms, 3 * ms}, {1, 0, window}, {2, 3 * ms, window}} {
		n := newNode(tt.trainers)
		n.service.Demand.Gap = tt.gap
		if got := lower(n.step(ms, 1))[0].Parameters.Window; got != tt.want {
			t.Errorf("%d in gaps of %v have a window of %v, want %v", tt.trainers, tt.gap, got, tt.want)
		}
	}
}

func TestWhereProgramsTakeTurnsAGapMustBeWorthTheChange(t *testing.T) {
	least := sched.DefaultSettings().Classes[7].MinGap
	for _, tt := range []struct {
		name   string
		shared bool
		slo    float64
		want   time.Duration
	}{
		{"side by side", true, 1.02, least},
		{"in turns: 100 us are 2 % of 5 ms", false, 1.02, 5 * ms},
		{"in turns, a service that bears half", false, 1.5, 200 * time.Microsecond},
		{"in turns, without an objective", false, 1, least},
	} {
		n := newNode(1)
		n.view.Devices["gpu"] = sched.Device{Limits: sched.Limits{SMs: 100}, Shared: tt.shared}
		n.service.SLO, n.service.Demand.Gap = tt.slo, 10*ms
		if got := lower(n.step(ms, 1))[0].Parameters.MinGap; (got - tt.want).Abs() > time.Microsecond {
			t.Errorf("%s: gaps from %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestTheLeastPredictableOfSeveralServicesDecides(t *testing.T) {
	n := newNode(3)
	n.view.Clients[1].Class = 2
	n.service.Demand.Gap = 2 * ms
	if got := open(n.step(ms, 1)); got != 1 {
		t.Errorf("beside a service whose pauses nobody can predict %d go at once", got)
	}
	n.view.Clients[1].Demand.Gap = 3 * ms
	v := n.step(ms, 1)
	if got := lower(v)[0].Parameters.Quiet; open(v) != 2 || got != 2*ms {
		t.Errorf("beside two that are predictable %d go, by token for %v", open(v), got)
	}
}
