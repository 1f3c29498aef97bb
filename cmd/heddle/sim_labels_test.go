package main

import (
	"math/rand/v2"
	"testing"

	"github.com/heddle-project/heddle/runtime/sim"
)

// spots plots policies at the given places, in SVG units.
func spots(places ...[2]float64) []plotted {
	names := []string{"heddle", "priority", "orion", "fikit", "fair", "timeslice", "rate", "none"}
	r := &sim.Report{}
	for i, at := range places {
		r.Rows = append(r.Rows, sim.Row{Policy: names[i], Share: at[0], P99: sim.Figure{OfAlone: at[1]}})
	}
	same := func(v float64) float64 { return v }
	return placeLabels(r, same, same)
}

func TestLabelsStandBesideTheirDots(t *testing.T) {
	for _, p := range spots([2]float64{200, 200}, [2]float64{400, 300}, [2]float64{300, 100}) {
		if p.far || p.label.left <= p.x || p.label.top >= p.y || p.label.bottom <= p.y {
			t.Errorf("%+v", p)
		}
	}
	if p := spots([2]float64{710, 200})[0]; p.far || p.label.right >= p.x {
		t.Errorf("at the right edge: %+v", p)
	}
}

// Policies that fare alike lie on a heap. Their labels must be told apart, and cover no dot.
func TestLabelsOfAHeapCoverNothing(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 500 {
		var places [][2]float64
		middle := [2]float64{150 + 500*r.Float64(), 80 + 280*r.Float64()}
		for range 8 {
			places = append(places, [2]float64{middle[0] + 20*r.Float64(), middle[1] + 10*r.Float64()})
		}
		all := spots(places...)
		for i, p := range all {
			for j, q := range all {
				dot := box{q.x - dotRadius, q.y - dotRadius, q.x + dotRadius, q.y + dotRadius}
				if p.label.meets(dot) || i != j && p.label.meets(q.label) {
					t.Fatalf("seed %d: the label of %s covers that of %s or its dot: %+v", seed, p.name, q.name, all)
				}
			}
			if p.label.left < plotLeft || p.label.right > plotWidth || p.label.bottom > plotHeight-plotBottom+lineHeight {
				t.Fatalf("seed %d: %+v is outside", seed, p)
			}
		}
	}
}
