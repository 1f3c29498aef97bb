package sched

import "math"

const (
	// marginLeast is the margin on predictions that have never been wrong: clocks change, and what
	// was measured is not all that there is.
	marginLeast = 0.03
	// marginSigmas is how many standard deviations of the launches' times about their prediction the
	// margin covers. Of launches spread like a bell one in 700 takes longer.
	marginSigmas = 3
	// marginStep is what a margin is rounded up to, so that it does not change with every plan.
	marginStep = 10_000
)

// margin is the safety margin on what is predicted of a client's launches. A workload that is known
// well needs little of it, and fits gaps that are hardly longer than its kernels; of one that is not
// known nothing is taken from the margin of its class. Where the more urgent work suffers, the margin
// is up to twice as large as the spread asks for. What is predicted of a gap is on the safe side by
// itself (profiles.Gap), so the margin need not cover that as well.
func margin(ofClassPPM uint32, d *Demand, permission float64) uint32 {
	if !d.Known {
		return ofClassPPM
	}
	part := max(marginLeast, marginSigmas*d.Spread) * (2 - permission)
	steps := math.Ceil(part*1e6/marginStep - 1e-6)
	return uint32(min(float64(ofClassPPM), steps*marginStep))
}
