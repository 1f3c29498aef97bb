package config

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

// Objective is what a client accepts of those that share its device: a slowdown or a latency. The
// zero value is no objective.
type Objective struct {
	Slowdown float64 // 0.02 = 2 %
	// Latency is the mean time with work on the device without a pause: that of a request which
	// waits for its work once, at its end.
	Latency time.Duration
}

func (o *Objective) toml() string {
	switch {
	case o == nil:
		return ""
	case o.Latency != 0:
		return quote(o.Latency.String())
	default:
		return quote(percentage(o.Slowdown))
	}
}

func percentage(part float64) string { return strconv.FormatFloat(part*100, 'f', -1, 64) + "%" }

// objective reads "2%" or "20ms".
func objective(l literal) (*Objective, error) {
	if l.kind == kindString {
		if d, err := time.ParseDuration(l.text); err == nil {
			return &Objective{Latency: d}, nil
		}
		if part, err := parsePercent(l.text); err == nil {
			return &Objective{Slowdown: part}, nil
		}
	}
	return nil, errors.New(`want a slowdown such as "2%" or a latency such as "20ms"`)
}

func parsePercent(text string) (float64, error) {
	digits, ok := strings.CutSuffix(text, "%")
	f, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if !ok || err != nil {
		return 0, errors.New(`want a percentage, such as "2%"`)
	}
	return f / 100, nil
}

func (k *checker) objective(key string, o *Objective) {
	switch {
	case o == nil:
	case o.Latency != 0:
		k.duration(key, o.Latency, 100*time.Microsecond, durationMax)
	default:
		k.slowdown(key, o.Slowdown)
	}
}

func (k *checker) slowdown(key string, s float64) {
	if math.IsNaN(s) || s < 0 || s > sloMax {
		k.fail(key, "%v%% is not between 0%% and %d%%", s*100, sloMax*100)
	}
}
