package profiles

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// disturbedTime is a time beside others, by which some launches are made longer.
func disturbedTime(r *rand.Rand, alone time.Duration, part float64) time.Duration {
	t := steadyTime(r, alone, 0.02)
	if r.Float64() < part {
		t += time.Duration(float64(alone) * (0.3 + 3*r.Float64()))
	}
	return t
}

// A service and a training that start together are never alone.
func TestKernelsAreLearntBesideOthers(t *testing.T) {
	for _, part := range []float64{0, 0.1, 0.2} {
		r := newRand(t)
		p := New(ID{"w", "d"})
		const kernels, sparse = 40, 100
		middle := func(kernel uint64) time.Duration { return time.Duration(kernel) * 20 * us }
		samples := 0
		for ; p.MeasureEvery(sparse) == 1; samples++ {
			if samples == 60*kernels {
				t.Fatalf("%.1f disturbed: every launch is measured after %d of each kernel", part, samples/kernels)
			}
			kernel := 1 + uint64(samples%kernels)
			p.Observe(beside(kernel, disturbedTime(r, middle(kernel), part)))
		}
		again := 0
		for range 100 * kernels { // one in a hundred from now on
			kernel := 1 + r.Uint64N(kernels)
			if p.Observe(beside(kernel, disturbedTime(r, middle(kernel), part))); p.MeasureEvery(sparse) == 1 {
				again++
			}
		}
		if again > 5*kernels {
			t.Errorf("%.1f disturbed: %d of %d launches found all measured again", part, again, 100*kernels)
		}
		wrong := 0
		for key, k := range p.Kernels() {
			if off := float64(k.Predict())/float64(middle(key)) - 1; math.Abs(off) > 0.1 {
				wrong++
			}
		}
		if float64(wrong) > part*kernels {
			t.Errorf("%.1f disturbed: %d of %d kernels are predicted wrong by more than a tenth", part, wrong, kernels)
		}
	}
}

// A kernel that was alone once, and is beside others ever since, is not measured at each launch for that.
func TestOneLaunchAloneIsEnoughToSettle(t *testing.T) {
	for name, then := range map[string]time.Duration{"disturbed each time": 300 * us, "disturbed never": 101 * us} {
		p := New(ID{"w", "d"})
		p.Observe(took(1, 100*us))
		for i := 0; !p.Kernel(1).Settled(); i++ {
			if i == settleSamples {
				t.Fatalf("%s: not settled", name)
			}
			p.Observe(beside(1, then))
		}
		if mean := p.Kernel(1).Mean(); mean < 100*us || mean > 101*us {
			t.Errorf("%s: the mean is %v", name, mean)
		}
	}
	p := New(ID{"w", "d"})
	p.Observe(took(1, 100*us))
	for range settleSamples {
		p.Observe(beside(1, 300*us))
	}
	if p.Kernel(1).Steady() {
		t.Error("one launch alone makes a steady kernel")
	}
}

func TestAChangeIsNoticedBesideOthers(t *testing.T) {
	tests := []struct {
		name  string
		alone bool // it was known from launches alone
		times float64
		want  bool
	}{
		{"never alone, a third longer", false, 1.3, true},
		{"never alone, half as long", false, 0.5, true},
		{"known alone, half as long", true, 0.5, true},
		{"known alone, longer: others may be the reason", true, 1.3, false},
		{"known alone, as long", true, 1, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRand(t)
			p := New(ID{"w", "d"})
			for range 200 {
				s := beside(1, disturbedTime(r, 100*us, 0.1))
				if tt.alone {
					s = took(1, steadyTime(r, 100*us, 0.02))
				}
				p.Observe(s)
			}
			p.Kernel(1).Changes = 0
			for range 100 {
				s := beside(1, disturbedTime(r, time.Duration(tt.times*float64(100*us)), 0.1))
				p.Observe(s)
			}
			k := p.Kernel(1)
			if got := k.Changes != 0; got != tt.want {
				t.Errorf("changed: %v, want %v", got, tt.want)
			}
			if off := k.Time.Mean/(tt.times*1e5) - 1; tt.want && math.Abs(off) > 0.1 {
				t.Errorf("taken to need %v, needs %.0f us", k.Mean(), tt.times*100)
			}
		})
	}
}

// A kernel of one shape can take one time or another: its name and launch do not say how much it does.
func TestAKernelOfTwoTimesDoesNotChange(t *testing.T) {
	for _, alone := range []bool{true, false} {
		r := newRand(t)
		p := New(ID{"w", "d"})
		changes := uint32(0)
		for i := range 4000 {
			middle := 40 * us
			if i/6%2 == 0 { // layers of one kind and then of the other
				middle = 160 * us
			}
			s := beside(1, disturbedTime(r, middle, 0.1))
			if alone && i < 24 {
				s = took(1, steadyTime(r, middle, 0.02))
			}
			if p.Observe(s); i == 200 {
				changes = p.Kernel(1).Changes
			}
		}
		k := p.Kernel(1)
		if k.Changes-changes > 5 { // of 3800; each has some launches measured again
			t.Errorf("alone %v: %d changes that are none", alone, k.Changes-changes)
		}
		if k.Predict() < 140*us {
			t.Errorf("alone %v: predicted to take %v, takes 160 us at times", alone, k.Predict())
		}
	}
}
