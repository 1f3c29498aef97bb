package sim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddle-project/heddle/runtime/sim"
)

func TestReadGaps(t *testing.T) {
	got, err := sim.ReadGaps("g.json", strings.NewReader(" [0.031, 0, 1e-3]\n"))
	want := []time.Duration{31 * time.Millisecond, 0, time.Millisecond}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
	for _, tt := range []struct{ name, text, want string }{
		{"nothing", "", "g.json: not a JSON array of seconds"},
		{"an object", "{}", "g.json: not a JSON array of seconds"},
		{"no gap", "[]", "g.json: no time passes between arrivals"},
		{"no time", "[0, 0]", "g.json: no time passes between arrivals"},
		{"a gap back in time", "[1, -1]", "g.json: entry 2 is not a number of seconds from 0 to 86400"},
		{"a word", `["1"]`, "g.json: entry 1 is not a number of seconds from 0 to 86400"},
		{"a century", "[3e9]", "g.json: entry 1 is not a number of seconds from 0 to 86400"},
		{"half a file", "[1, 2", "g.json: not a whole JSON array"},
		{"more than a file", "[1] [2]", "g.json: something follows the array"},
	} {
		if _, err := sim.ReadGaps("g.json", strings.NewReader(tt.text)); err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
	}
}

func FuzzReadGaps(f *testing.F) {
	f.Add("[0.1, 2]")
	f.Add("[1e400]")
	f.Fuzz(func(t *testing.T, text string) {
		gaps, err := sim.ReadGaps("g.json", strings.NewReader(text))
		if (err == nil) != (len(gaps) > 0) {
			t.Fatalf("%d gaps and %v", len(gaps), err)
		}
	})
}
