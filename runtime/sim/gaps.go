package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Bounds of a file of arrivals.
const (
	gapsMax  = 1 << 20
	gapLimit = 24 * 60 * 60 // seconds
)

// ReadGaps reads the times between arrivals: a JSON array of seconds, as the player takes it.
// name is for messages.
func ReadGaps(name string, from io.Reader) ([]time.Duration, error) {
	decoder := json.NewDecoder(from)
	token, err := decoder.Token()
	if err != nil || token != json.Delim('[') {
		return nil, fmt.Errorf("%s: not a JSON array of seconds", name)
	}
	var gaps []time.Duration
	total := time.Duration(0)
	for decoder.More() {
		var seconds float64
		if err := decoder.Decode(&seconds); err != nil || !(seconds >= 0 && seconds <= gapLimit) {
			return nil, fmt.Errorf("%s: entry %d is not a number of seconds from 0 to %d", name, len(gaps)+1, gapLimit)
		}
		if len(gaps) == gapsMax {
			return nil, fmt.Errorf("%s: more than %d entries", name, gapsMax)
		}
		gap := time.Duration(seconds * 1e9)
		total += gap
		gaps = append(gaps, gap)
	}
	if _, err := decoder.Token(); err != nil {
		return nil, fmt.Errorf("%s: not a whole JSON array", name)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: something follows the array", name)
	}
	if total <= 0 {
		return nil, fmt.Errorf("%s: no time passes between arrivals", name)
	}
	return gaps, nil
}
