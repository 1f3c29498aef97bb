package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestQuantileIsAMeasuredValue(t *testing.T) {
	tests := []struct {
		name    string
		samples []float64
		q, want float64
	}{
		{"the median of an odd number", []float64{9, 1, 5}, 0.5, 5},
		{"the median of an even number", []float64{1, 2, 4, 9}, 0.5, 3},
		{"the 99th of a hundred", hundred(), 0.99, 99},
		{"the least", []float64{3, 1, 2}, 0, 1},
		{"the largest", []float64{3, 1, 2}, 1, 3},
		{"of one", []float64{7}, 0.99, 7},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := quantile(tt.samples, tt.q); got != tt.want {
				t.Errorf("quantile(%v) = %v, want %v", tt.q, got, tt.want)
			}
		})
	}
	if !math.IsNaN(quantile(nil, 0.5)) {
		t.Error("the median of nothing is a number")
	}
}

func hundred() []float64 {
	out := make([]float64, 100)
	for i := range out {
		out[i] = float64(100 - i)
	}
	return out
}

func TestBudgets(t *testing.T) {
	f := &figures{}
	f.add("bare_ns", "ns", []float64{5, 4, 6})
	f.add("open_ns", "ns", []float64{8, 7.5, 9})
	f.limit("open_ns", f.of("bare_ns")+3, "bare + 3 ns")
	if err := f.exceeded(); err != nil {
		t.Errorf("a budget that is just kept: %v", err)
	}
	f.limit("open_ns", 7.9, "too strict")
	f.limit("missing_ns", 100, "was never measured")
	err := f.exceeded()
	if err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Fatalf("two budgets are exceeded: %v", err)
	}
	var out strings.Builder
	f.print(&out)
	if strings.Count(out.String(), "EXCEEDED") != 2 {
		t.Errorf("printed:\n%s", out.String())
	}
}

func TestPairsAreOfOneRound(t *testing.T) {
	// A clock that halves from round to round: the medians say 5 and 4, each pair says a fourth more.
	got := pairs([]float64{10, 5, 2.5}, []float64{8, 4, 2}, func(a, b float64) float64 { return a / b })
	for i, x := range got {
		if x != 1.25 {
			t.Errorf("round %d: %v", i, x)
		}
	}
}

func TestFiguresReachTheFile(t *testing.T) {
	f := &figures{}
	f.add("bare_ns", "ns", []float64{5, 4, 6})
	f.value("p99_us", "us", 12.3456, 1000)
	f.limit("p99_us", 50, "design")
	path := filepath.Join(t.TempDir(), "bench", "x.json")
	if err := f.write(path); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Bare    float64  `json:"bare_ns"`
		BareMin float64  `json:"bare_ns_min"`
		P99     float64  `json:"p99_us"`
		Budgets []budget `json:"budgets"`
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if got.Bare != 5 || got.BareMin != 4 || got.P99 != 12.346 || len(got.Budgets) != 1 || !got.Budgets[0].OK {
		t.Errorf("read back %+v from\n%s", got, text)
	}
}

func TestWrongUseIsOneError(t *testing.T) {
	for _, args := range [][]string{nil, {"lunch"}, {"launch", "extra"}} {
		if _, _, err := parse(args); err == nil {
			t.Errorf("parse(%q) was taken", args)
		}
	}
}
