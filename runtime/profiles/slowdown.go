package profiles

import (
	"math"
	"time"
)

const (
	// slowdownLeast is how many launches an estimate needs.
	slowdownLeast = 5
	// slowdownSure is the number of standard errors on both sides of an estimate: 95 % of bells.
	slowdownSure = 1.96
)

// Slowdown compares how long launches of a client took with what their profiles say. The zero value
// has seen none.
type Slowdown struct {
	Measured, Expected time.Duration // only grow

	n                                          float64
	measured, expected                         float64 // since Restart
	measuredSquares, products, expectedSquares float64
	doubt                                      float64 // sum of the standard errors of what was expected
}

// Add takes the time of a launch and what [Profile.Observe] expected of it. One of which nothing was
// known does not count.
func (s *Slowdown) Add(took time.Duration, o Outcome) {
	if o.Expected <= 0 || took < 0 {
		return
	}
	took = min(took, timeMax)
	s.Measured += took
	s.Expected += o.Expected
	m, e := float64(took), float64(o.Expected)
	s.n++
	s.measured += m
	s.expected += e
	s.measuredSquares += m * m
	s.products += m * e
	s.expectedSquares += e * e
	if !math.IsInf(o.Error, 0) {
		s.doubt += e * o.Error
	}
}

// Estimate is the ratio of what was measured to what was expected since the last Restart, and by how
// much it may be off: the scatter of the launches, and the profiles' own error, which more launches do
// not make smaller. ok is false with too few launches.
func (s *Slowdown) Estimate() (ratio, plusMinus float64, ok bool) {
	if s.n < slowdownLeast || s.expected == 0 {
		return 0, 0, false
	}
	ratio = s.measured / s.expected
	// Sum of (measured - ratio * expected)^2, the variance of a ratio of sums.
	residual := max(0, s.measuredSquares-2*ratio*s.products+ratio*ratio*s.expectedSquares)
	scatter := math.Sqrt(residual*s.n/(s.n-1)) / s.expected
	profile := ratio * s.doubt / s.expected
	return ratio, slowdownSure * math.Hypot(scatter, profile), true
}

// Restart begins a new estimate. Measured and Expected go on.
func (s *Slowdown) Restart() { *s = Slowdown{Measured: s.Measured, Expected: s.Expected} }
