// Package telemetry turns counters into rates and into metrics. It sees
// numbers that others have read and checked, never memory.
package telemetry

import (
	"sync"
	"time"
)

// DevicesMax is how many devices one client can have; slots, not ordinals.
const DevicesMax = 16

// Reading is what one client published at one moment.
type Reading struct {
	Client   uint64
	Launches uint64
	Unnamed  uint64 // driver addresses that had no exported name
	Devices  [DevicesMax]DeviceReading
}

// DeviceReading is one device slot of a Reading.
type DeviceReading struct {
	Bound       bool
	Published   bool          // the busy words are kept true
	BusyTime    time.Duration // counters, present spans included
	HeldTime    time.Duration
	MemoryBytes uint64
	MemoryPeak  uint64
	Holds       uint64
	Overruns    uint64
	// Share is the busy share from another source, for a client that does
	// not publish; negative = unknown.
	Share float64
}

// Rates are what a client did in the last interval.
type Rates struct {
	LaunchesPerSecond float64
	Launches          uint64
	Unnamed           uint64
	Devices           [DevicesMax]DeviceRates
}

// DeviceRates are one device slot of Rates.
type DeviceRates struct {
	DeviceReading
	BusyShare float64 // negative = unknown
	HeldShare float64
}

// Rater keeps the last reading of every client.
type Rater struct {
	mu     sync.Mutex
	round  uint64
	states map[uint64]*state
}

type state struct {
	round   uint64
	since   time.Time
	reading Reading
	rates   Rates
}

// NewRater returns a Rater that knows nobody.
func NewRater() *Rater { return &Rater{states: map[uint64]*state{}} }

// Begin starts a round of readings.
func (r *Rater) Begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.round++
}

// Observe takes one reading of the round. It allocates only for a client that
// it sees for the first time; reading is copied.
func (r *Rater) Observe(now time.Time, reading *Reading) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.states[reading.Client]
	if s == nil {
		s = &state{}
		r.states[reading.Client] = s
	}
	s.update(now, reading)
	s.round = r.round
}

// End forgets the clients that this round had no reading of.
func (r *Rater) End() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, s := range r.states {
		if s.round != r.round {
			delete(r.states, id)
		}
	}
}

// Of returns the latest rates of a client.
func (r *Rater) Of(client uint64) (Rates, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.states[client]
	if s == nil {
		return Rates{}, false
	}
	return s.rates, true
}

func (s *state) update(now time.Time, reading *Reading) {
	interval := now.Sub(s.since)
	first := s.since.IsZero()
	s.rates.Launches, s.rates.Unnamed = reading.Launches, reading.Unnamed
	s.rates.LaunchesPerSecond = 0
	if !first && interval > 0 {
		s.rates.LaunchesPerSecond = float64(forward(s.reading.Launches, reading.Launches)) / interval.Seconds()
	}
	for i := range reading.Devices {
		next, last, rates := &reading.Devices[i], &s.reading.Devices[i], &s.rates.Devices[i]
		rates.DeviceReading = *next
		rates.BusyShare, rates.HeldShare = next.Share, 0
		if first || !last.Bound || interval <= 0 {
			if next.Published {
				rates.BusyShare = 0
			}
			continue
		}
		rates.HeldShare = share(next.HeldTime-last.HeldTime, interval)
		if next.Published {
			rates.BusyShare = share(next.BusyTime-last.BusyTime, interval)
		}
	}
	s.reading, s.since = *reading, now
}

// forward is how far a counter went. One that a client set back by mistake or
// on purpose went nowhere.
func forward(from, to uint64) uint64 {
	if to < from {
		return 0
	}
	return to - from
}

// share is part of whole, at most all of it: the two were not measured at the
// same instant.
func share(part, whole time.Duration) float64 {
	return min(1, max(0, part.Seconds()/whole.Seconds()))
}
