package profiles

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// spreadTimes shows a kernel so many times, spread like a bell.
func spreadTimes(r *rand.Rand, p *Profile, key uint64, mean time.Duration, part float64, n int) {
	for range n {
		p.Observe(took(key, time.Duration(float64(mean)*max(0.01, 1+part*r.NormFloat64()))))
	}
}

func TestDemandTellsHowFarTimesSpread(t *testing.T) {
	tests := []struct {
		name   string
		learn  func(*rand.Rand, *Profile)
		want   float64
		within float64
	}{
		{"every launch takes the same", func(_ *rand.Rand, p *Profile) {
			for range 20 {
				p.Observe(took(1, 50*us))
			}
		}, 0, 1e-9},
		{"one kernel, steady", func(r *rand.Rand, p *Profile) { spreadTimes(r, p, 1, 500*us, 0.05, 400) }, 0.05, 0.01},
		// In quadrature, by the time spent: sqrt(0.1 * 0.2^2).
		{"a tenth of the time in a kernel that is not", func(r *rand.Rand, p *Profile) {
			spreadTimes(r, p, 1, 900*us, 0, 400)
			spreadTimes(r, p, 2, 100*us, 0.2, 400)
		}, 0.063, 0.015},
		// The prediction is the 90th percentile, 1.28 deviations above the mean: two deviations are
		// 0.36 beyond it, of 1.64 means.
		{"so unsteady that nine in ten are to be covered", func(r *rand.Rand, p *Profile) { spreadTimes(r, p, 1, 500*us, 0.5, 2000) }, 0.11, 0.05},
		{"seen once: not known", func(_ *rand.Rand, p *Profile) { p.Observe(took(1, 50*us)) }, math.Inf(1), 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := New(ID{"w", "d"})
			tt.learn(newRand(t), p)
			got := p.Demand(h100).Spread
			if got != tt.want && !(math.Abs(got-tt.want) <= tt.within) {
				t.Errorf("spread %.4f, want %.4f within %g", got, tt.want, tt.within)
			}
		})
	}
}

func TestDemandTellsTheUsualGap(t *testing.T) {
	follow := func(p *Profile, previous, kernel uint64, gap time.Duration, n int) {
		for range n {
			p.Observe(Sample{Kernel: kernel, Previous: previous, HasGap: true, Gap: gap})
		}
	}
	tests := []struct {
		name  string
		learn func(*Profile)
		want  time.Duration
	}{
		{"no gaps", func(p *Profile) { p.Observe(took(1, 50*us)) }, 0},
		{"one of three is long", func(p *Profile) {
			follow(p, 1, 2, 300*us, 20)
			follow(p, 2, 3, 400*us, 20)
			follow(p, 3, 1, 5000*us, 20)
		}, 400 * us},
		{"those that nobody could fill do not count", func(p *Profile) {
			follow(p, 1, 2, 5*us, 900)
			follow(p, 2, 1, 400*us, 10)
		}, 400 * us},
		{"most of the idle time lies between requests, which come when they like", func(p *Profile) {
			for i := range time.Duration(20) {
				follow(p, 1, 2, 300*us, 1)
				follow(p, 2, 1, i*i*200*us, 1)
			}
		}, 0},
		{"a little of it does", func(p *Profile) {
			for i := range time.Duration(20) {
				follow(p, 1, 2, 3000*us, 1)
				follow(p, 2, 1, i*50*us, 1)
			}
		}, 3000 * us},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := New(ID{"w", "d"})
			tt.learn(p)
			p.Observe(took(1, 50*us))
			if got := p.Demand(h100).Gap; got != tt.want {
				t.Errorf("gap %v, want %v", got, tt.want)
			}
		})
	}
}
