package main

import (
	"math"
	"testing"
)

func TestTheWorstShareIsReported(t *testing.T) {
	jobs := []job{{weight: 100}, {weight: 300}}
	for _, tt := range []struct{ done, want [2]float64 }{
		{[2]float64{2, 6}, [2]float64{0, 8}},
		{[2]float64{3, 5}, [2]float64{0.5, 8}}, // 3/8 instead of 1/4
		{[2]float64{1, 7}, [2]float64{0.5, 8}},
	} {
		worst, sum := deviation(jobs, tt.done[:])
		if math.Abs(worst-tt.want[0]) > 1e-9 || sum != tt.want[1] {
			t.Errorf("%v: %v of %v, want %v", tt.done, worst, sum, tt.want)
		}
	}
}
