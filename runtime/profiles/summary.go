package profiles

import (
	"cmp"
	"slices"
	"time"

	"github.com/heddle-project/heddle/runtime/sched"
)

// Summary is one line of a list of profiles.
type Summary struct {
	ID        ID
	Label     string
	Kernels   int
	Known     int    // kernels whose time is known
	Samples   uint64 // of all kernels
	Measuring bool   // each launch is measured at present
	// Covered is the part of the device time of late that is of known kernels.
	Covered float64
	Longest time.Duration // of its kernels
	Probed  bool          // what others cost it was measured
}

// Summary sums the profile up.
func (p *Profile) Summary() Summary {
	s := Summary{ID: p.ID, Label: p.Label, Kernels: p.Len(), Measuring: p.measuring}
	s.Probed = p.Sensitivity != sched.Sensitivity{}
	total, known := 0.0, 0.0
	for _, k := range p.kernels.all() {
		time := float64(max(1, k.uses)) * k.Time.Mean
		total += time
		if k.Settled() {
			s.Known++
			known += time
		}
		s.Samples += k.Samples
		s.Longest = max(s.Longest, k.Predict())
	}
	if total > 0 {
		s.Covered = known / total
	}
	return s
}

// KernelSummary is one line of what is known of a workload's kernels.
type KernelSummary struct {
	Key       uint64
	Name      string // empty = not told
	Graph     bool
	Grid      [3]uint32
	Block     [3]uint32
	Share     float64 // of the workload's device time of late
	Samples   uint64
	Changes   uint32
	Settled   bool
	Alone     bool
	Mean      time.Duration
	Deviation time.Duration
	Min       time.Duration
	P90       time.Duration
	Predicted time.Duration // device time of the next launch
	Gap       time.Duration // predicted to follow, 0 = not predictable
	SMNeed    uint32        // 0 = unknown
	Waves     uint32        // 0 = unknown
	Class     Class
	DRAM      float64
	Guessed   bool // Class and DRAM are not measured
}

// Summaries sums the kernels up, those first on which most device time was spent of late.
func (p *Profile) Summaries(d Device) []KernelSummary {
	all := make([]KernelSummary, 0, p.Len())
	total := 0.0
	for key, k := range p.kernels.all() {
		spent := float64(max(1, k.uses)) * k.Time.Mean
		total += spent
		_, measured := k.Figures.Get(DRAM)
		all = append(all, KernelSummary{
			Key: key, Name: k.Name, Graph: k.Graph, Grid: k.Shape.Grid, Block: k.Shape.Block, Share: spent,
			Samples: k.Samples, Changes: k.Changes, Settled: k.Settled(), Alone: k.Alone,
			Mean: k.Mean(), Deviation: time.Duration(k.Time.Deviation()), Min: time.Duration(k.Min), P90: k.P90(),
			Predicted: k.Predict(), Gap: k.Gap.Predict(), SMNeed: k.Shape.SMNeed(d), Waves: k.Shape.Waves(d),
			Class: k.Class(d), DRAM: k.DRAM(d), Guessed: !measured,
		})
	}
	for i := range all {
		if total > 0 {
			all[i].Share /= total
		}
	}
	slices.SortFunc(all, func(a, b KernelSummary) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.Key, b.Key))
	})
	return all
}
