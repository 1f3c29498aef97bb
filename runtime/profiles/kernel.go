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

	// A launch beside others tells the kernel's time if it takes up to so much longer than others did
	// that were alone, or than most did where none was. Else it was disturbed.
	undisturbedAlone = 1.1
	undisturbed      = 1.25
	// Where surely more than this part of the launches took longer, they do so by themselves: a kernel
	// can take one time or another. Then all of them are learnt.
	disturbedMost = 0.25
	disturbedSure = 3 // standard deviations of that many throws of a coin
	// No launch is disturbed into being quicker than the quickest by so much: so many in a row are a
	// change.
	quicker    = 0.8
	quickerRun = 8
	// longerRun is how many launches beside others in a row must take longer to be a change. One that
	// takes either of two times may take the longer one for a while.
	longerRun = 32

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

	uses      uint32 // lately, against those of the other kernels
	disturbed uint32 // launches that took longer because of others, and taught nothing
	run       uint32 // of those the last ones, without another one between them
	varied    bool   // takes one time or another, as launches beside others look like
	alarms    uint32 // of the workload's drift, when its times were last found to be true
	agreed    uint32 // samples since then that agree with its times
	detect    detector
}

// Settled reports whether the kernel's time is known well enough to rely on, or as well as launches
// beside others will tell.
func (k *Kernel) Settled() bool {
	return k.Time.Weight != 0 && k.Time.Weight+float64(k.disturbed) >= settleSamples ||
		k.Time.Weight >= settleLeast && k.Time.Error() < settleError
}

// Steady reports whether the next launch will take what is predicted, within a few percent.
func (k *Kernel) Steady() bool {
	return k.Settled() && k.Time.Weight >= settleLeast && k.Time.Deviation() <= punctual*k.Time.Mean
}

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
	ns := uint64(max(0, min(took, timeMax)))
	if !alone {
		k.undo(ns)
		if !k.teaches(ns) {
			return k.note(ns)
		}
	}
	k.run = 0
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

// undo takes the first launches beside others for disturbed when one comes that is so much quicker.
func (k *Kernel) undo(ns uint64) {
	young := !k.Alone && !k.varied && k.Time.Weight < settleSamples
	if before := k.Time.Weight; young && float64(ns)*undisturbed < k.Time.Mean {
		disturbed := k.disturbed + uint32(before)
		k.forgetTimes()
		k.disturbed = disturbed
	}
}

// teaches reports whether a launch beside others tells the kernel's time. Others only ever make one
// longer, so of a kernel that is known from launches alone there is nothing to learn.
func (k *Kernel) teaches(ns uint64) bool {
	switch {
	case k.Alone && k.Settled():
		return false
	case k.Alone:
		return float64(ns) <= undisturbedAlone*k.Time.Mean
	case k.Time.Weight == 0, k.varied:
		return true
	case k.Time.Weight < settleSamples:
		return float64(ns) <= undisturbed*k.Time.Mean
	default:
		return float64(ns) <= undisturbed*float64(k.Times.Quantile(0.5))
	}
}

// note takes a launch beside others that tells only that there were others, and reports whether there
// have been so many that the kernel must take another time now. That it takes longer can be told only
// of one that never was alone, and then not well.
func (k *Kernel) note(ns uint64) (changed bool) {
	most := uint32(longerRun)
	switch {
	case !k.Alone:
		if k.disturbed++; k.varies() {
			k.forgetTimes()
			k.varied = true
			k.addTime(ns)
			return false
		}
	case float64(ns) < quicker*float64(k.Min):
		most = quickerRun
	case float64(ns) > undisturbedAlone*k.Time.Mean:
		k.disturbed++
		fallthrough
	default:
		k.run = 0
		return false
	}
	if k.run++; k.run < most {
		return false
	}
	k.Changes++
	k.forgetTimes()
	k.Alone = false
	k.addTime(ns)
	return true
}

// varies reports whether the launches that took longer are too many for others to be the reason.
func (k *Kernel) varies() bool {
	all := k.Time.Weight + float64(k.disturbed)
	return float64(k.disturbed) > disturbedMost*all+disturbedSure/2.0*math.Sqrt(all)
}

func (k *Kernel) addTime(ns uint64) {
	if k.Time.Weight == 0 || ns < k.Min {
		k.Min = ns
	}
	if k.Time.Weight >= memory {
		k.disturbed /= 2 // as the weight
	}
	k.Time.Add(float64(ns))
	k.Times.Add(ns)
	k.Samples++
}

func (k *Kernel) forgetTimes() {
	k.Min, k.Time, k.Times, k.detect = 0, Moments{}, Histogram{}, detector{}
	k.disturbed, k.run, k.varied = 0, 0, false
}
