package profiles

import "github.com/heddle-project/heddle/runtime/sched"

// Figure is something that was measured offline, as a part of its peak.
type Figure int

// The figures. The first ones are the channels of [sched.Channel], in their order.
const (
	DRAM        = Figure(sched.DRAM)
	L2          = Figure(sched.L2)
	Issue       = Figure(sched.Issue)
	FMA         = Figure(sched.FMA)
	FP64        = Figure(sched.FP64)
	Tensor      = Figure(sched.Tensor)
	SM          = Figure(sched.Channels) // the busiest part of the SMs
	L2Hit       = SM + 1                 // accesses to L2 that find what they look for
	figureCount = int(L2Hit) + 1
)

var figureNames = [figureCount]string{"dram", "l2", "issue", "fma", "fp64", "tensor", "sm", "l2_hit"}

func (f Figure) String() string { return figureNames[f] }

// Figures are those that somebody measured; the zero value has none.
type Figures struct {
	parts [figureCount]float32
	known uint8
}

// Set notes a figure, between 0 and 1.
func (f *Figures) Set(which Figure, part float64) {
	f.parts[which] = float32(max(0, min(part, 1)))
	f.known |= 1 << which
}

// Get returns a figure, if it was measured.
func (f *Figures) Get(which Figure) (part float64, ok bool) {
	return float64(f.parts[which]), f.known&(1<<which) != 0
}

// Any reports whether there is a figure.
func (f *Figures) Any() bool { return f.known != 0 }

// Merge takes those figures of o that f does not have.
func (f *Figures) Merge(o *Figures) {
	for which := range Figure(figureCount) {
		if part, ok := o.Get(which); ok && f.known&(1<<which) == 0 {
			f.Set(which, part)
		}
	}
}
