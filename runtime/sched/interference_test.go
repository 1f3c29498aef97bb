package sched_test

import (
	"math"
	"strings"
	"testing"

	"github.com/heddle-project/heddle/runtime/sched"
)

func TestSensitivityIsInterpolated(t *testing.T) {
	s := sched.Sensitivity{sched.DRAM: {1.1, 1.2, 1.6, 2.0}}
	for _, tt := range []struct{ load, want float64 }{
		{-1, 1},
		{0, 1},
		{0.125, 1.05},
		{0.25, 1.1},
		{0.5, 1.2},
		{0.625, 1.4},
		{0.75, 1.6},
		{1, 2},
		{7, 2},
	} {
		if got, ok := s.At(sched.DRAM, tt.load); !ok || math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("at %v: %v, %v; want %v", tt.load, got, ok, tt.want)
		}
	}
	if _, ok := s.At(sched.L2, 0.5); ok {
		t.Error("a channel that was not measured has an answer")
	}
}

func TestInterfere(t *testing.T) {
	limits := sched.Limits{SMs: 132, ThreadsPerSM: 2048, L2Bytes: 50 << 20}
	flat := sched.Sensitivity{}
	for c := range flat {
		flat[c] = [4]float64{1.01, 1.02, 1.03, 1.04}
	}
	steep := flat
	steep[sched.DRAM] = [4]float64{1.1, 1.3, 1.6, 2}
	// A kernel of one block on each of half the SMs, that asks for little.
	small := func(change func(*sched.Vector)) sched.Vector {
		v := sched.Vector{Known: true, SMs: 66, Threads: 1024}
		change(&v)
		return v
	}
	nothing := func(*sched.Vector) {}
	use := func(c sched.Channel, part float64) func(*sched.Vector) {
		return func(v *sched.Vector) { v.Use[c] = part }
	}
	wide := func(threads int) func(*sched.Vector) {
		return func(v *sched.Vector) { v.SMs, v.Threads = 132, threads }
	}
	both := func(fs ...func(*sched.Vector)) func(*sched.Vector) {
		return func(v *sched.Vector) {
			for _, f := range fs {
				f(v)
			}
		}
	}
	cached := func(mib uint64, hit float64) func(*sched.Vector) {
		return func(v *sched.Vector) { v.L2Bytes, v.L2Hit = mib<<20, hit }
	}
	tests := []struct {
		name        string
		a, b        func(*sched.Vector)
		sensitivity sched.Sensitivity
		slowdown    float64 // 0 = not beside
		reason      string
	}{
		{"two that need little", nothing, nothing, flat, 1, ""},
		{"one block of 1024 threads of each on every SM", wide(1024), wide(1024), flat, 1, ""},
		{"two blocks and one are more threads than an SM holds", wide(2048), wide(1024), flat, 0, "an SM holds 2048 threads, and they keep 2048 and 1024"},
		{"too many threads on other SMs", both(nothing, func(v *sched.Vector) { v.Threads = 2048 }), func(v *sched.Vector) { v.Threads = 2048 }, flat, 1, ""},
		{"bandwidth for both", use(sched.DRAM, 0.5), use(sched.DRAM, 0.4), steep, 1, ""},
		{"too little bandwidth for who feels it", use(sched.DRAM, 0.6), use(sched.DRAM, 0.5), steep, 0, "the first would take 1.30 times as long, and accepts 1.05"},
		{"too little bandwidth for who does not", use(sched.DRAM, 0.6), use(sched.DRAM, 0.5), flat, 1.02, ""},
		{"too little bandwidth, and nobody knows", use(sched.DRAM, 0.6), use(sched.DRAM, 0.5), sched.Sensitivity{}, 0, "both need DRAM, and what the first loses by it was not measured"},
		{"a full cache for who reuses nothing", cached(40, 0.2), cached(40, 0.9), sched.Sensitivity{}, 1, ""},
		{"a full cache for who reuses", cached(40, 0.9), cached(40, 0.2), sched.Sensitivity{}, 0, "both need L2"},
		{"a pipe that both saturate, on the same SMs", both(wide(256), use(sched.FP64, 0.6)), both(wide(256), use(sched.FP64, 0.6)), sched.Sensitivity{}, 0, "both need FP64"},
		{"the same pipe on other SMs", use(sched.FP64, 0.6), use(sched.FP64, 0.6), sched.Sensitivity{}, 1, ""},
		// A kernel of one warp per scheduler can saturate them: occupancy says nothing of it.
		{"issue slots saturated at a low occupancy", both(wide(128), use(sched.Issue, 0.95)), both(wide(128), use(sched.Issue, 0.5)), sched.Sensitivity{}, 0, "both need issue"},
		{"two channels add up", both(use(sched.DRAM, 0.6), cached(40, 0.9)), both(use(sched.DRAM, 0.5), cached(40, 0.9)), flat, 1.02, ""},
		{"an unknown one", func(v *sched.Vector) { v.Known = false }, nothing, flat, 0, "nothing is known of one of the two"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, b := small(tt.a), small(tt.b)
			got := sched.Interfere(&a, &b, &tt.sensitivity, limits, 0.05)
			if got.Beside != (tt.slowdown != 0) || !strings.HasPrefix(got.Reason, tt.reason) || got.Beside == (got.Reason != "") {
				t.Fatalf("got %+v", got)
			}
			if got.Beside && math.Abs(got.Slowdown-tt.slowdown) > 1e-9 {
				t.Errorf("slowdown %v, want %v", got.Slowdown, tt.slowdown)
			}
		})
	}
}
