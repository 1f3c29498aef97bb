package profiles

import (
	"math"
	"time"
)

const (
	// nameMax is how many bytes of a kernel's name are kept: what clients tell.
	nameMax = 256
	// timeMax bounds what is believed of a time: the gate clamps durations to it as well.
	timeMax = 1000 * time.Second

	// A kernel is known when it was measured settleSamples times, or when the standard error of its
	// mean is below settleError. Fewer than settleLeast samples may agree by chance.
	settleSamples = 10
	settleLeast   = 3
	settleError   = 0.05

	// steady is the spread of a kernel's times, as a part of their mean, up to which the mean is what
	// the next launch is predicted to take. Beyond it nine in ten are to be within the prediction.
	steady = 0.3
	// punctual is the spread up to which a launch can be taken to end when predicted.
	punctual = 0.05
)

// Kernel is what is known of one kernel in one shape of launch.
type Kernel struct {
	Name    string // empty = not told yet
	Module  uint64 // hash of the image it came from, 0 = unknown
	Graph   bool   // a whole graph under the name of its first kernel
	Shape   Shape
	Figures Figures

	Samples uint64 // times it was measured, those before a change included
	Changes uint32 // times that it began to take another time
	Alone   bool   // its times are of launches that nobody disturbed
	Min     uint64 // nanoseconds
	Time    Moments
	Times   Histogram
	Gap     Gap

	uses   uint32 // lately, against those of the other kernels
	detect detector
}

// Settled reports whether the kernel's time is known well enough to rely on.
func (k *Kernel) Settled() bool {
	return k.Time.Weight >= settleSamples || k.Time.Weight >= settleLeast && k.Time.Error() < settleError
}

// Steady reports whether the next launch will take what is predicted, within a few percent.
func (k *Kernel) Steady() bool { return k.Settled() && k.Time.Deviation() <= punctual*k.Time.Mean }

// Launches is how often it was launched lately, among those launches that were measured: a number to
// compare kernels of one profile by.
func (k *Kernel) Launches() uint32 { return k.uses }

// Mean is the mean of its times, 0 = unknown.
func (k *Kernel) Mean() time.Duration { return time.Duration(math.Round(k.Time.Mean)) }

// P90 is a time that nine in ten launches do not exceed, within [QuantileError]; 0 = unknown.
func (k *Kernel) P90() time.Duration { return time.Duration(k.Times.Quantile(0.9)) }

// Predict is the device time that the next launch is taken to need: the mean where times are steady,
// what nine in ten need where not; 0 = unknown.
func (k *Kernel) Predict() time.Duration {
	if k.Time.Deviation() > steady*k.Time.Mean {
		return max(k.Mean(), k.P90())
	}
	return k.Mean()
}

// Spread is how far the times lie from what [Kernel.Predict] says: a standard deviation, as a part of the
// prediction. Where the prediction is above the mean, it is half of what two deviations exceed it by.
func (k *Kernel) Spread() float64 {
	predicted := float64(k.Predict())
	if predicted == 0 {
		return 0
	}
	return max(0, k.Time.Mean+2*k.Time.Deviation()-predicted) / 2 / predicted
}

// Class says what the kernel's time is spent on.
func (k *Kernel) Class(d Device) Class { return classify(&k.Shape, &k.Figures, d, k.Mean()) }

// DRAM is the part of the memory's bandwidth that it uses: measured, else what its class uses.
func (k *Kernel) DRAM(d Device) float64 {
	if part, ok := k.Figures.Get(DRAM); ok {
		return part
	}
	return k.Class(d).DRAM()
}

// learn takes the time of a launch. It reports whether the kernel takes another time than before.
func (k *Kernel) learn(took time.Duration, alone bool) (changed bool) {
	if k.Alone && !alone {
		return false // says how much others disturb, not how long it takes
	}
	ns := uint64(max(0, min(took, timeMax)))
	if alone && !k.Alone {
		k.forgetTimes() // what was learnt beside others was a makeshift
		k.Alone = true
	}
	settled := k.Settled()
	if k.detect.add(ns) {
		k.detect.up, k.detect.down = 0, 0
		if changed = settled; changed {
			k.Changes++
			k.forgetTimes()
			k.detect.add(ns)
		}
	}
	k.addTime(ns)
	return changed
}

func (k *Kernel) addTime(ns uint64) {
	if k.Time.Weight == 0 || ns < k.Min {
		k.Min = ns
	}
	k.Time.Add(float64(ns))
	k.Times.Add(ns)
	k.Samples++
}

func (k *Kernel) forgetTimes() {
	k.Min, k.Time, k.Times, k.detect = 0, Moments{}, Histogram{}, detector{}
}
