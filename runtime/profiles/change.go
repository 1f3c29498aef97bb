package profiles

import "math"

const (
	// changeDrift is how far the logarithm of a time must lie from its mean, in standard deviations,
	// to count towards a change.
	changeDrift = 0.5
	// changeAlarm is the sum of such distances that is a change. Log-normal times that do not change
	// reach it some three times in a million samples. Where times are spread by a tenth, four samples
	// show that a kernel takes twice as long; by a third, seven, once a hundred or so came before.
	changeAlarm = 12
	// changeClip bounds what one sample adds: one that was preempted is no change.
	changeClip = 4
	// changeFloor is the least standard deviation of a logarithm that is believed: changes below a
	// twentieth matter to nobody.
	changeFloor = 0.05
	// What is believed of the deviation before there are samples, and how many samples it counts.
	changePrior       = 0.1
	changePriorWeight = 4
)

// detector notices when a kernel takes another time for good: the test of Page (1954) in both
// directions, on logarithms, so that twice and half as long are equally far.
type detector struct {
	logs     Moments // of the logarithms, in nanoseconds
	up, down float64
}

// add learns a time and reports whether the times have changed.
func (d *detector) add(ns uint64) bool {
	x := math.Log(float64(max(ns, 1)))
	if d.logs.Weight == 0 {
		d.logs.Add(x)
		return false
	}
	variance := (d.logs.M2 + changePriorWeight*changePrior*changePrior) / (d.logs.Weight - 1 + changePriorWeight)
	scale := math.Sqrt(max(variance, changeFloor*changeFloor) * (1 + 1/d.logs.Weight))
	z := max(-changeClip, min((x-d.logs.Mean)/scale, changeClip))
	d.up = max(0, d.up+z-changeDrift)
	d.down = max(0, d.down-z-changeDrift)
	// Clipped, so that the first samples after a change do not widen what is normal.
	d.logs.Add(d.logs.Mean + z*scale)
	return d.up > changeAlarm || d.down > changeAlarm
}
