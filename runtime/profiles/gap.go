package profiles

import "time"

const (
	// gapSamples is how many gaps must have been seen before one is predicted.
	gapSamples = 5
	// gapSpread is the standard deviation, as a part of the mean, beyond which a gap is not
	// predicted: what is launched into it would be a gamble.
	gapSpread = 0.3
	// gapSafety is how many standard deviations a prediction stays below the mean. Of gaps that are
	// spread like a bell, 2 % are shorter.
	gapSafety = 2
)

// Gap is what is known of the idle time that follows a kernel, or a kernel that follows another.
type Gap struct{ Moments }

// Predict returns a length that the gap is unlikely to fall short of; 0 = not predictable.
func (g *Gap) Predict() time.Duration {
	if g.Weight < gapSamples {
		return 0
	}
	deviation := g.Deviation()
	if deviation > gapSpread*g.Mean {
		return 0
	}
	return time.Duration(max(0, g.Mean-gapSafety*deviation))
}
