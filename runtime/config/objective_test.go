package config

import (
	"testing"
	"time"
)

func TestObjectivesAreReadAsTheyAreWritten(t *testing.T) {
	for text, want := range map[string]Objective{
		"2%":     {Slowdown: 0.02},
		" 12.5%": {Slowdown: 0.125},
		"20ms":   {Latency: 20 * time.Millisecond},
		"1.5s":   {Latency: 1500 * time.Millisecond},
		"0%":     {},
		"0s":     {},
		"none":   {},
	} {
		got, err := ParseObjective(text)
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
		again, err := ParseObjective(got.String())
		if err != nil || again != got {
			t.Errorf("%q became %q, which is %+v, %v", text, got, again, err)
		}
	}
	for _, bad := range []string{"", "2", "%", "-1%", "NaN%", "+Inf%", "1e9%", "1us", "-5ms", "100h", "fast", "none%"} {
		if got, err := ParseObjective(bad); err == nil {
			t.Errorf("%q: %+v", bad, got)
		}
	}
}
