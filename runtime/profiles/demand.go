package profiles

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/heddle-project/heddle/runtime/sched"
)

// satisfied is the part of a workload's device time that its peak demand covers, and that must be of
// known kernels for the workload to be known. The rest is what a controller has to watch.
const satisfied = 0.75

// Demand describes the workload to a policy: figures of its kernels, weighted by the device time that
// each had lately.
func (p *Profile) Demand(d Device) sched.Demand {
	var (
		demand                sched.Demand
		total, settled, dram  float64
		sms, threads          []weighted
		vector                = sched.Vector{Known: true}
		measured, hits, hitOf float64
		squares               float64
	)
	for _, k := range p.kernels.all() {
		spent := float64(max(1, k.uses)) * k.Time.Mean
		demand.Longest = max(demand.Longest, k.Predict())
		if spent == 0 {
			continue
		}
		total += spent
		if k.Settled() {
			settled += spent
			squares += spent * k.Spread() * k.Spread()
		}
		dram += spent * k.DRAM(d)
		need := int(k.Shape.SMNeed(d))
		if need == 0 {
			need = d.SMs // it may need them all
		}
		sms = append(sms, weighted{need, spent})
		threads = append(threads, weighted{residentThreads(&k.Shape, d), spent})
		measured += addUse(&vector, k, spent)
		if hit, ok := k.Figures.Get(L2Hit); ok {
			hits, hitOf = hits+hit*spent, hitOf+spent
		}
	}
	if total == 0 {
		return demand
	}
	demand.PeakSMs = quantile(sms, total*satisfied)
	demand.DRAM = dram / total
	demand.Known = settled >= satisfied*total && demand.PeakSMs > 0
	demand.Sensitivity = p.Sensitivity
	demand.Spread = math.Inf(1)
	if settled > 0 {
		demand.Spread = math.Sqrt(squares / settled)
	}
	demand.Gap = p.usualGap()
	if demand.Known && measured >= satisfied*total {
		for c := range vector.Use {
			vector.Use[c] /= measured
		}
		vector.SMs, vector.Threads = demand.PeakSMs, quantile(threads, total*satisfied)
		if hitOf > 0 {
			vector.L2Hit = hits / hitOf
		}
		demand.Vector = vector
	}
	return demand
}

// gapLeast is the shortest gap that counts as one that others could fill: shorter ones are over
// before they are on their way.
const gapLeast = 20 * time.Microsecond

// usualGap is the median of the gaps that are predicted and worth filling, 0 if most of the idle time
// is not predictable.
func (p *Profile) usualGap() time.Duration {
	type known struct {
		length time.Duration
		weight float64
	}
	var gaps []known
	idle, predicted, weight := 0.0, 0.0, 0.0
	for _, both := range p.pairs.all() {
		g := &both.gap
		idle += g.Weight * g.Mean
		length := p.Gap(both.previous, both.kernel)
		if length == 0 {
			continue
		}
		predicted += g.Weight * g.Mean
		if length >= gapLeast {
			gaps = append(gaps, known{length, g.Weight})
			weight += g.Weight
		}
	}
	if predicted < idle/2 {
		return 0
	}
	slices.SortFunc(gaps, func(a, b known) int { return cmp.Compare(a.length, b.length) })
	weight /= 2
	for _, g := range gaps {
		if weight -= g.weight; weight <= 0 {
			return g.length
		}
	}
	return 0
}

// addUse adds a kernel's use of the channels, weighted by the time spent in it, and returns that; nothing and
// 0 if the channels that all kernels use were not measured.
func addUse(v *sched.Vector, k *Kernel, spent float64) float64 {
	for _, f := range []Figure{DRAM, L2, Issue} {
		if _, ok := k.Figures.Get(f); !ok {
			return 0
		}
	}
	for c := range v.Use {
		part, _ := k.Figures.Get(Figure(c)) // a pipe without a figure is one that it does not use
		v.Use[c] += part * spent
	}
	return spent
}

// residentThreads is how many threads a kernel keeps on an SM, 0 = unknown.
func residentThreads(s *Shape, d Device) int {
	resident, threads, blocks := s.Resident(d), s.Threads(), s.Blocks()
	if resident == 0 || blocks == 0 || threads == 0 || threads > 1<<20 {
		return 0
	}
	if d.SMs > 0 {
		resident = min(resident, (blocks-1)/uint64(d.SMs)+1)
	}
	return int(min(resident*threads, 1<<20))
}

type weighted struct {
	value  int
	weight float64
}

// quantile returns the smallest value with which so much of the weight is satisfied.
func quantile(values []weighted, weight float64) int {
	slices.SortFunc(values, func(a, b weighted) int { return cmp.Compare(a.value, b.value) })
	for _, v := range values {
		if weight -= v.weight; weight <= 0 {
			return v.value
		}
	}
	return values[len(values)-1].value
}
