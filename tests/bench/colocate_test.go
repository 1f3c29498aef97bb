package main

import (
	"slices"
	"testing"
	"time"

	"github.com/heddle-project/heddle/runtime/sim"
	"github.com/heddle-project/heddle/tests/bench/kernels"
)

func example() (*colocation, *colocated) {
	workload := func(name string, times ...time.Duration) kernels.Table {
		w := sim.Workload{Name: name}
		for _, t := range times {
			w.Kernels = append(w.Kernels, sim.Kernel{Name: "k", Time: t, SMs: 132})
		}
		return kernels.Table{Workload: w}
	}
	return &colocation{duration: 4 * time.Second, warmUp: time.Second, stretch: 2, repetitions: 1}, &colocated{
		service: workload("net_4_fwd", time.Millisecond, time.Millisecond), load: 0.5,
		training: workload("net_32_fb1", 100*time.Microsecond, 300*time.Microsecond), trainers: 2,
	}
}

func TestRequestsComeAtTheLoadThatWasAskedFor(t *testing.T) {
	c, cell := example()
	c.duration = 400 * time.Second
	gaps := c.gaps(cell, 1)
	sum := 0.0
	for _, gap := range gaps {
		sum += gap
	}
	if length := sum * c.stretch; length < 401 {
		t.Errorf("requests for %.1f s, want some until the end of 401 s", length)
	}
	// Half of a device that serves one in 2 ms: a standard error of 0.3 %.
	if mean := sum / float64(len(gaps)); mean < 0.00395 || mean > 0.00405 {
		t.Errorf("a request each %.5f s, want 0.004", mean)
	}
	if !slices.Equal(gaps, c.gaps(cell, 1)) {
		t.Error("another sequence for the same seed")
	}
	if slices.Equal(gaps[:10], c.gaps(cell, 2)[:10]) {
		t.Error("the same sequence for another seed")
	}
}

func TestTheSimulatorPlaysStretchedKernelsAndGaps(t *testing.T) {
	c, cell := example()
	clients := c.clients(&play{cell: cell, service: true, gaps: []float64{0.001, 0.003}, trainers: cell.trainers})
	if len(clients) != 3 || clients[0].Class >= clients[1].Class {
		t.Fatalf("%+v", clients)
	}
	if got := clients[0].Workload.Time(); got != 4*time.Millisecond {
		t.Errorf("a request of %v, want 4ms", got)
	}
	arrivals := clients[0].Arrivals(7)
	if first := arrivals.Next(0, 0); first != 2_000_000 {
		t.Errorf("the first request at %d, want 2000000", first)
	}
	if cell.service.Time() != 2*time.Millisecond {
		t.Error("the table itself was stretched")
	}
}

func TestASimulatedTrainingAloneHasNearlyAll(t *testing.T) {
	c, cell := example()
	m, err := c.simulate(t.Context(), &play{cell: cell, trainers: 1})
	if err != nil {
		t.Fatal(err)
	}
	// Two launches and one wait cost it 13 us in 800.
	if m.share < 0.97 || m.share > 1 {
		t.Errorf("share %.3f", m.share)
	}
}

func TestWorkOfLaunches(t *testing.T) {
	_, cell := example()
	for launches, want := range map[uint64]time.Duration{0: 0, 1: 100, 2: 400, 3: 500, 7: 1300} {
		if got := work(&cell.training.Workload, launches); got != want*time.Microsecond {
			t.Errorf("%d launches: %v, want %v", launches, got, want*time.Microsecond)
		}
	}
}

func TestTheBarsOfColocation(t *testing.T) {
	sample := func(p99, real, simulated float64) sampled {
		return sampled{
			"real_alone_p50_ms": {1}, "sim_alone_p50_ms": {1}, "real_alone_p99_ms": {2}, "sim_alone_p99_ms": {2},
			"priority.real_p50_of_alone": {1}, "priority.sim_p50_of_alone": {1},
			"priority.real_p99_of_alone": {p99}, "priority.sim_p99_of_alone": {1},
			"priority.real_training_of_alone": {real}, "priority.sim_training_of_alone": {simulated},
		}
	}
	for name, tt := range map[string]struct {
		p99, real, simulated float64
		holds                bool
	}{
		"hold":                                {1.09, 0.55, 0.59, true},
		"a service that is slowed":            {1.11, 0.55, 0.59, false},
		"a training that gets less than said": {1.09, 0.50, 0.59, false},
		"a training that gets more than said": {1.09, 0.66, 0.59, false},
		"a training that gets nothing at all": {1.09, 0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := example()
			f := &figures{}
			c.record(f, "cell", sample(tt.p99, tt.real, tt.simulated), []string{"priority"})
			if err := f.exceeded(); (err == nil) != tt.holds {
				t.Errorf("%v", err)
			}
		})
	}
}
