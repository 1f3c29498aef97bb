package sim_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/heddle-project/heddle/runtime/profiles"
	"github.com/heddle-project/heddle/runtime/sim"
)

// learnt is the profile of a service: a request has one kernel of 200 us, four of 50 us and two of
// 100 us, after the second of which the host works for 1 ms. Requests come at random. Before them a
// kernel ran that none of them has.
func learnt(t *testing.T) *profiles.Profile {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	p := profiles.New(profiles.ID{Workload: "w", Device: "H100"})
	p.Label = "service"
	for key := uint64(1); key <= 4; key++ {
		p.Describe(profiles.Description{Key: key, Name: string(rune('a' + key - 1)), Shape: profiles.Shape{
			Grid: [3]uint32{uint32(40 * key), 1, 1}, Block: [3]uint32{1024, 1, 1}, BlocksPerSM: 1,
		}})
	}
	previous := uint64(0)
	launch := func(key uint64, took, gap time.Duration) {
		s := profiles.Sample{Kernel: key, Previous: previous, Measured: true, DeviceTime: took, Gap: gap, HasGap: gap != 0}
		if key == 1 { // of a spread of 10 %
			s.DeviceTime = time.Duration(float64(took) * (1 + 0.1*r.NormFloat64()))
		}
		p.Observe(s)
		previous = key
	}
	launch(4, 5*time.Millisecond, 0)
	for range 200 {
		launch(1, 200*us, 0)
		launch(2, 50*us, 0)
		launch(2, 50*us, 0)
		launch(3, 100*us, 0)
		launch(3, 100*us, time.Millisecond)
		launch(2, 50*us, 0)
		launch(2, 50*us, time.Duration(r.ExpFloat64()*20e6))
	}
	return p
}

func TestAWorkloadFromAProfile(t *testing.T) {
	w, err := sim.FromProfile(learnt(t), "H100")
	if err != nil {
		t.Fatal(err)
	}
	order, pauses := "", 0
	for _, k := range w.Kernels {
		order += k.Name
		if k.Pause != 0 {
			pauses++
			if k.Name != "c" || k.Pause != time.Millisecond {
				t.Errorf("a pause of %v follows %s", k.Pause, k.Name)
			}
		}
	}
	// Evenly spread: the halves of c and the quarters of b around the middle of a.
	if order != "bcbabcb" || pauses != 1 || w.Name != "service" {
		t.Errorf("%s is %s with %d pauses", w.Name, order, pauses)
	}
	near(t, "device time", w.Time().Seconds(), 600e-6, 0.02)
	for _, k := range w.Kernels {
		if k.Name == "a" {
			near(t, "SMs of the first", float64(k.SMs), 40, 0)
			near(t, "its spread", k.Spread, 0.1, 0.2)
		}
	}
}

func TestAProfilesKernelsSpreadAsTheyDid(t *testing.T) {
	w := sim.Workload{Name: "test", Kernels: []sim.Kernel{{Time: 1000 * us, SMs: 132, Spread: 0.2}}}
	r := run(t, scenario("none", service(w, sim.Closed(0))))
	// Log-normal of mean 1 and deviation 0.2.
	sigma := math.Sqrt(math.Log(1.04))
	near(t, "mean rate", r.Clients[0].RoundsPerSecond, 1000/1.008, 0.01)
	near(t, "median", r.Clients[0].P50.Seconds(), 1e-3*math.Exp(-sigma*sigma/2)+8e-6, 0.01)
	near(t, "p95", r.Clients[0].P95.Seconds(), 1e-3*math.Exp(1.645*sigma-sigma*sigma/2)+8e-6, 0.02)
}

func TestPausesInsideARequest(t *testing.T) {
	w := workload(4, 100*us, 132, 0)
	w.Kernels[1].Pause = 300 * us
	r := run(t, scenario("none", service(w, sim.Closed(0))))
	// 400 us of kernels, the pause, and two waits of 8 us; the launch after the pause takes its own time.
	near(t, "latency", r.Clients[0].P50.Seconds(), 716e-6, 0.01)
}

func TestProfilesWithoutAWorkload(t *testing.T) {
	empty := profiles.New(profiles.ID{Workload: "w", Device: "H100"})
	if _, err := sim.FromProfile(empty, "H100"); err == nil || !strings.Contains(err.Error(), "no kernel that was measured") {
		t.Errorf("of an empty profile: %v", err)
	}
	if _, err := sim.FromProfile(learnt(t), "H99"); err == nil || !strings.Contains(err.Error(), `"H99"`) {
		t.Errorf("on an unknown GPU: %v", err)
	}
}
