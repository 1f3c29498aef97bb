package profiles

import (
	"cmp"
	"slices"

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
	)
	for _, k := range p.kernels.all() {
		time := float64(max(1, k.uses)) * k.Time.Mean
		demand.Longest = max(demand.Longest, k.Predict())
		if time == 0 {
			continue
		}
		total += time
		if k.Settled() {
			settled += time
		}
		dram += time * k.DRAM(d)
		need := int(k.Shape.SMNeed(d))
		if need == 0 {
			need = d.SMs // it may need them all
		}
		sms = append(sms, weighted{need, time})
		threads = append(threads, weighted{residentThreads(&k.Shape, d), time})
		measured += addUse(&vector, k, time)
		if hit, ok := k.Figures.Get(L2Hit); ok {
			hits, hitOf = hits+hit*time, hitOf+time
		}
	}
	if total == 0 {
		return demand
	}
	demand.PeakSMs = quantile(sms, total*satisfied)
	demand.DRAM = dram / total
	demand.Known = settled >= satisfied*total && demand.PeakSMs > 0
	demand.Sensitivity = p.Sensitivity
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

// addUse adds a kernel's use of the channels, weighted by its time, and returns the time; nothing and
// 0 if the channels that all kernels use were not measured.
func addUse(v *sched.Vector, k *Kernel, time float64) float64 {
	for _, f := range []Figure{DRAM, L2, Issue} {
		if _, ok := k.Figures.Get(f); !ok {
			return 0
		}
	}
	for c := range v.Use {
		part, _ := k.Figures.Get(Figure(c)) // a pipe without a figure is one that it does not use
		v.Use[c] += part * time
	}
	return time
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
