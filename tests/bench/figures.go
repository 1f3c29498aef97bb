package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
)

// figure is one measured number, as it goes into the JSON file.
type figure struct {
	key  string
	unit string
	// What is reported and compared: the median of the rounds unless said
	// otherwise.
	value   float64
	min     float64
	samples int
}

// budget is a limit that a figure must keep.
type budget struct {
	Key   string  `json:"key"`
	Value float64 `json:"value"`
	Limit float64 `json:"limit"`
	OK    bool    `json:"ok"`
	Why   string  `json:"why"` // how the limit comes about
}

// figures is what one bench found.
type figures struct {
	list    []figure
	budgets []budget
}

// add records the median of samples under a key.
func (f *figures) add(key, unit string, samples []float64) {
	f.list = append(f.list, figure{key, unit, quantile(samples, 0.5), slices.Min(samples), len(samples)})
}

// value records one number.
func (f *figures) value(key, unit string, value float64, samples int) {
	f.list = append(f.list, figure{key, unit, value, value, samples})
}

// of returns a recorded number.
func (f *figures) of(key string) float64 {
	for _, x := range f.list {
		if x.key == key {
			return x.value
		}
	}
	return math.NaN() // compares as exceeded
}

func (f *figures) limit(key string, limit float64, why string) {
	value := f.of(key)
	f.budgets = append(f.budgets, budget{key, value, limit, value <= limit, why})
}

// print writes a line per figure, then a line per budget.
func (f *figures) print(w io.Writer) {
	width := 26
	for _, x := range f.list {
		width = max(width, len(x.key))
	}
	for _, x := range f.list {
		fmt.Fprintf(w, "%-*s %10.3f %-3s  min %10.3f  (%d)\n", width, x.key, x.value, x.unit, x.min, x.samples)
	}
	for _, b := range f.budgets {
		verdict := "ok"
		if !b.OK {
			verdict = "EXCEEDED"
		}
		fmt.Fprintf(w, "budget %-*s %10.3f <= %.3f  %s (%s)\n", width-4, b.Key, b.Value, b.Limit, verdict, b.Why)
	}
}

// write puts everything into a file: each figure under its key, its minimum
// under KEY_min, and the budgets.
func (f *figures) write(path string) error {
	all := map[string]any{"budgets": f.budgets}
	for _, x := range f.list {
		all[x.key] = round(x.value)
		if x.min != x.value {
			all[x.key+"_min"] = round(x.min)
		}
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// exceeded is an error if a budget was.
func (f *figures) exceeded() error {
	var errs []error
	for _, b := range f.budgets {
		if !b.OK {
			errs = append(errs, fmt.Errorf("budget of %s exceeded: %.3f, allowed are %.3f", b.Key, b.Value, b.Limit))
		}
	}
	return errors.Join(errs...)
}

// quantile is the nearest-rank quantile; the median of an even number is the
// mean of the middle two.
func quantile(samples []float64, q float64) float64 {
	if len(samples) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(samples))
	if n := len(sorted); q == 0.5 && n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}

func round(x float64) float64 { return math.Round(x*1000) / 1000 }
