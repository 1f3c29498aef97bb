package profiles

import (
	"iter"
	"strings"
	"time"

	"github.com/heddle-project/heddle/runtime/sched"
)

const (
	// kernelsMax and pairsMax bound what is remembered of one workload. Large models launch some
	// hundred different kernels; a client's table has room for tableEntries of both.
	kernelsMax = 1024
	pairsMax   = 2048

	// unsettledMemory is over how many samples the part of unknown kernels is averaged.
	unsettledMemory = 32
	// Measuring ends when so few of the samples are of unknown kernels, and begins again at so many.
	unsettledFew  = 0.05
	unsettledMany = 0.15
	// usesMax is the sum of uses at which all are halved: the popularity of kernels is of late.
	usesMax = 1 << 16
)

// ID says whose profile it is: that of a workload ([Identity.Key]) on a model of device, or on a MIG
// device of one, under the driver's name for it.
type ID struct {
	Workload string
	Device   string
}

// Sample is what was seen of one launch of a kernel.
type Sample struct {
	Kernel, Previous uint64 // keys; Previous is 0 if nothing was launched before
	DeviceTime       time.Duration
	Gap              time.Duration // idle time until the next launch
	Measured         bool          // DeviceTime is valid
	HasGap           bool          // Gap is valid
	Graph            bool          // the launch of a whole graph
	Shared           bool          // others used the device at that time
	Together         bool          // and kernels of theirs may have run beside this one
}

// Outcome is what a sample meant.
type Outcome struct {
	Expected time.Duration // what the kernel should have taken, 0 = not known well enough
	Error    float64       // standard error of Expected, as a part of it
	Changed  bool          // the kernel takes another time from now on
}

// Profile is what is known of a workload on a model of device.
type Profile struct {
	ID    ID
	Label string // for people
	// Sensitivity says what others cost it, if that was measured.
	Sensitivity sched.Sensitivity

	kernels   lru[Kernel]
	pairs     lru[pair]
	uses      uint32
	unsettled float64 // part of the last samples that were of kernels not known well
	measuring bool
	drift     drift
}

// pair is what is known of a kernel that follows another.
type pair struct {
	previous, kernel uint64
	gap              Gap
	uses             uint32
}

// New makes the profile of a workload of which nothing is known.
func New(id ID) *Profile {
	return &Profile{
		ID:        id,
		kernels:   newLRU(kernelsMax, func(k *Kernel) uint32 { return k.uses }),
		pairs:     newLRU(pairsMax, func(p *pair) uint32 { return p.uses }),
		unsettled: 1,
		measuring: true,
	}
}

// Description is what a client tells of a kernel. Nothing of it is checked against the key: a client
// that lies about its kernels spoils its own predictions.
type Description struct {
	Key    uint64
	Name   string // printable
	Module uint64
	Graph  bool
	Shape  Shape
}

// Describe notes what a kernel is. A later description replaces an earlier one.
func (p *Profile) Describe(d Description) {
	if d.Key == 0 {
		return
	}
	k := p.kernels.peek(d.Key)
	if k == nil {
		k, _ = p.kernels.use(d.Key)
	}
	k.Name = strings.ToValidUTF8(d.Name[:min(len(d.Name), nameMax)], "") // cut between two letters
	k.Module, k.Graph, k.Shape = d.Module, d.Graph, d.Shape
}

// Observe learns from a sample. It allocates only for a kernel or pair that it sees first.
func (p *Profile) Observe(s Sample) Outcome {
	var o Outcome
	if s.Kernel == 0 {
		return o
	}
	k, _ := p.kernels.use(s.Kernel)
	k.Graph = k.Graph || s.Graph
	if s.HasGap {
		p.learnGap(k, &s)
	}
	if !s.Measured {
		return o
	}
	p.count(k)
	known := k.Settled()
	if known {
		o.Expected, o.Error = k.Mean(), k.Time.Error()
	}
	direction := 0
	if k.Time.Weight != 0 {
		direction = k.direction(&s)
		o.Changed = k.doubt(p.drift.alarms, direction)
	}
	o.Changed = k.learn(s.DeviceTime, !s.Shared) || o.Changed
	p.follow(known && !o.Changed, o.Changed)
	if known && !o.Changed && p.Len() >= driftKernels && p.drift.add(s.Kernel, direction) {
		p.unsettled, p.measuring = 1, true
	}
	return o
}

func (p *Profile) learnGap(k *Kernel, s *Sample) {
	ns := float64(max(0, min(s.Gap, timeMax)))
	k.Gap.Add(ns)
	if s.Previous == 0 {
		return
	}
	both, isNew := p.pairs.use(PairKey(s.Previous, s.Kernel))
	if isNew {
		both.previous, both.kernel = s.Previous, s.Kernel
	}
	both.gap.Add(ns)
	if both.uses++; both.uses == usesMax {
		for _, other := range p.pairs.all() {
			other.uses /= 2
		}
	}
}

// count notes that a kernel was used.
func (p *Profile) count(k *Kernel) {
	k.uses++
	if p.uses++; p.uses < usesMax {
		return
	}
	p.uses = 0
	for _, other := range p.kernels.all() {
		other.uses /= 2
		p.uses += other.uses
	}
}

// follow decides whether to measure each launch or a few.
func (p *Profile) follow(known, changed bool) {
	unknown := 1.0
	if known {
		unknown = 0
	}
	p.unsettled += (unknown - p.unsettled) / unsettledMemory
	if changed { // one is reason enough: where one kernel changed others did
		p.unsettled = max(p.unsettled, unsettledMany)
	}
	switch {
	case p.unsettled >= unsettledMany:
		p.measuring = true
	case p.unsettled < unsettledFew:
		p.measuring = false
	}
}

// MeasureEvery says how many launches there should be to one that is measured: 1 while there is much
// to learn, else sparse; 0 = none.
func (p *Profile) MeasureEvery(sparse uint32) uint32 {
	if p.measuring {
		return 1
	}
	return sparse
}

// Gap predicts the idle time that follows a kernel: from what followed it after the same one before,
// else from what followed it at all. It is the choice that the interposer makes, 0 = not predictable.
func (p *Profile) Gap(previous, kernel uint64) time.Duration {
	if both := p.pairs.peek(PairKey(previous, kernel)); both != nil && previous != 0 {
		if length := both.gap.Predict(); length != 0 {
			return length
		}
	}
	if k := p.kernels.peek(kernel); k != nil {
		return k.Gap.Predict()
	}
	return 0
}

// Kernel returns what is known of a kernel, nil if nothing is. The profile keeps it; callers read.
func (p *Profile) Kernel(key uint64) *Kernel { return p.kernels.peek(key) }

// Kernels yields all kernels by key, the least recently seen first.
func (p *Profile) Kernels() iter.Seq2[uint64, *Kernel] { return p.kernels.all() }

// PairGap is what is known of the idle time after a kernel that followed another.
type PairGap struct {
	Previous, Kernel uint64
	Moments
}

// Gaps yields the gaps of all pairs, the least recently seen first.
func (p *Profile) Gaps() iter.Seq[PairGap] {
	return func(yield func(PairGap) bool) {
		for _, both := range p.pairs.all() {
			if !yield(PairGap{both.previous, both.kernel, both.gap.Moments}) {
				return
			}
		}
	}
}

// Len is the number of kernels.
func (p *Profile) Len() int { return p.kernels.len() }
