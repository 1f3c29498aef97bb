package config

import (
	"errors"
	"fmt"
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

// errObjective says what an objective looks like.
var errObjective = errors.New(`want a slowdown such as "2%" or a latency such as "20ms"`)

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
	return nil, errObjective
}

// ParseObjective reads what [Objective.String] writes, within the bounds of the configuration.
func ParseObjective(text string) (Objective, error) {
	if text == noObjective {
		return Objective{}, nil
	}
	o, err := objective(literal{kind: kindString, text: text})
	if err != nil {
		return Objective{}, err
	}
	if o.Latency != 0 && (o.Latency < latencyMin || o.Latency > durationMax) {
		return Objective{}, fmt.Errorf("%s is not between %s and %s", o.Latency, latencyMin, durationMax)
	}
	if !(o.Slowdown >= 0 && o.Slowdown <= sloMax) {
		return Objective{}, fmt.Errorf("%s is not between 0%% and %d%%", percentage(o.Slowdown), int(sloMax*100))
	}
	return *o, nil
}

const (
	noObjective = "none"
	// latencyMin is shorter than any request.
	latencyMin = 100 * time.Microsecond
)

// String is "2%", "20ms" or "none".
func (o Objective) String() string {
	switch {
	case o.Latency != 0:
		return o.Latency.String()
	case o.Slowdown != 0:
		return percentage(o.Slowdown)
	default:
		return noObjective
	}
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
		k.duration(key, o.Latency, latencyMin, durationMax)
	default:
		k.slowdown(key, o.Slowdown)
	}
}

func (k *checker) slowdown(key string, s float64) {
	if math.IsNaN(s) || s < 0 || s > sloMax {
		k.fail(key, "%v%% is not between 0%% and %d%%", s*100, sloMax*100)
	}
}
