package sched

import "fmt"

// Channel is a part of a device on which kernels that run side by side can be in each other's way.
// The first two lie between the SMs, the others inside one.
type Channel int

// The channels.
const (
	DRAM  Channel = iota // bandwidth of the device's memory
	L2                   // bandwidth of the cache that all SMs share
	Issue                // instructions issued
	FMA                  // the pipes
	FP64
	Tensor
	Channels int = iota
)

var channelNames = [Channels]string{"DRAM", "L2", "issue", "FMA", "FP64", "tensor"}

func (c Channel) String() string { return channelNames[c] }

// Vector is what a workload asks of a device while it runs alone. The zero value is not known.
type Vector struct {
	Known   bool
	SMs     int // that hold its grid at once
	Threads int // that it keeps resident on an SM
	// Use is the part of each channel's peak that it reaches; the peak is what a kernel that does
	// nothing else reaches, not a data sheet's figure.
	Use [Channels]float64
	// L2Bytes is its working set, and L2Hit the part of its accesses that find it there. Who misses
	// anyway has little to lose.
	L2Bytes uint64
	L2Hit   float64
}

// Sensitivity is how much longer a workload takes beside a hog of a channel, for a hog that takes a
// quarter, half, three quarters and all of it; 1 = not at all. A row of zeros was not measured.
type Sensitivity [Channels][4]float64

// At interpolates between the measured points. ok is false for a channel that was not measured.
func (s *Sensitivity) At(c Channel, load float64) (slowdown float64, ok bool) {
	row := &s[c]
	if row[3] == 0 {
		return 0, false
	}
	at := max(0, min(load, 1)) * 4
	low := min(int(at), 3)
	from := 1.0
	if low > 0 {
		from = row[low-1]
	}
	return from + (row[low]-from)*(at-float64(low)), true
}

// Limits are those of a device that matter to two that run side by side.
type Limits struct {
	SMs          int
	ThreadsPerSM int
	L2Bytes      uint64
}

// Judgement is the answer of [Interfere].
type Judgement struct {
	Beside   bool
	Slowdown float64 // expected of the first, 1 = none; meaningful if Beside
	Reason   string  // why not
}

// saturated is the sum of two uses of a channel beyond which they are in each other's way.
const saturated = 0.9

// reuse is the part of L2 accesses that hit from which on a smaller share of the cache is felt.
const reuse = 0.5

// Interfere judges whether b may run beside a, which accepts a slowdown of at most budget (0.05 =
// 5 %). It follows the channels of Elvinger et al., "Understanding GPU Resource Interference One
// Level Deeper" (SoCC 2025): what is not over-subscribed costs nothing, and what is costs as much as
// a hog of that size was measured to cost a. The paper gives the channels and measurements, the
// test is ours.
func Interfere(a, b *Vector, sensitivity *Sensitivity, limits Limits, budget float64) Judgement {
	if !a.Known || !b.Known {
		return Judgement{Reason: "nothing is known of one of the two"}
	}
	sharing := a.SMs+b.SMs > limits.SMs
	if sharing && a.Threads+b.Threads > limits.ThreadsPerSM {
		return Judgement{Reason: fmt.Sprintf("an SM holds %d threads, and they keep %d and %d", limits.ThreadsPerSM, a.Threads, b.Threads)}
	}
	j := Judgement{Beside: true, Slowdown: 1}
	for c := range Channel(Channels) {
		over := a.Use[c]+b.Use[c] > saturated
		switch c {
		case DRAM: // shared by all SMs
		case L2:
			over = over || a.L2Bytes+b.L2Bytes > limits.L2Bytes && a.L2Hit > reuse
		case Issue, FMA, FP64, Tensor:
			over = over && sharing
		}
		if !over {
			continue
		}
		slowdown, ok := sensitivity.At(c, b.Use[c])
		if !ok {
			return Judgement{Reason: fmt.Sprintf("both need %v, and what the first loses by it was not measured", c)}
		}
		j.Slowdown *= slowdown
	}
	if j.Slowdown > 1+budget {
		return Judgement{Reason: fmt.Sprintf("the first would take %.2f times as long, and accepts %.2f", j.Slowdown, 1+budget)}
	}
	return j
}
