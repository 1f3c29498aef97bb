package sched

import "time"

// Controller keeps a client's slowdown under its objective by what it allows others beside it:
// multiplicative decrease on a breach, additive increase while all is well, as senders share a line
// (Chiu and Jain, 1989). The zero value allows nothing yet.
type Controller struct {
	allowed float64 // of what could be, 0 to 1

	measured, expected time.Duration // when it decided last
}

const (
	decrease = 0.5  // of what is allowed, on a breach
	increase = 0.05 // of what could be allowed, after a decision without one
	// A breach is what is beyond half of the margin that an objective leaves. The other half is for
	// what cannot be taken back: the work that was on the device when the client's came.
	reserve = 0.5
	// A decision is made on so much of the client's work: a few requests, so that one of them, or
	// the end of one, decides nothing.
	decisive = 50 * time.Millisecond
)

// Observe takes the time that the client's measured kernels took and what they should have taken,
// both since the client came. It returns the slowdown of the work on which it decided, 0 if it has
// not enough to decide. An objective of 0 allows everything.
func (c *Controller) Observe(objective float64, measured, expected time.Duration) (slowdown float64) {
	took, should := measured-c.measured, expected-c.expected
	if should >= 0 && should < decisive {
		return 0
	}
	c.measured, c.expected = measured, expected
	if should < 0 || took < 0 { // the counters began anew
		return 0
	}
	slowdown = float64(took) / float64(should)
	if objective != 0 && slowdown > 1+(objective-1)*reserve {
		c.allowed *= decrease
	} else {
		c.allowed = min(1, c.allowed+increase)
	}
	return slowdown
}

// Permission is the allowed part of what could be, 0 to 1. Without an objective nothing is taken.
func (c *Controller) Permission() float64 { return c.allowed }
