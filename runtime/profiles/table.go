package profiles

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/heddle-project/heddle/runtime/sched"
)

// Entry is what a client is told of one of its kernels, or of a pair of kernels that follow each
// other, by [PairKey]. Of a pair only the gap is used.
type Entry struct {
	Key      uint64
	Estimate time.Duration // predicted device time, 0 = unknown
	Gap      time.Duration // predicted idle time that follows, 0 = not predictable
	CoRun    bool          // may run beside peers whose corun bit is set
	Steady   bool          // takes Estimate nearly each time
	SMNeed   uint32        // SMs that the kernel fills, 0 = unknown
}

// pairNews is by how much, as a part, a pair's gap must differ from its kernel's to be worth an entry.
const pairNews = 0.1

// Table returns what a client of the workload should be told, the most useful entries first: those
// that stand for most device time, or for most idle time that can be predicted. Kernels within beside
// may run beside others.
//
// A reader looks at tableProbes places from a key's own on and stops at a free one. Written in this
// order into an empty table, each entry finds a place that a reader reaches; left is the number of
// those that would find none, or for which the table is too full.
func (p *Profile) Table(d Device, beside sched.Bound) (entries []Entry, left int) {
	type candidate struct {
		entry Entry
		value float64
	}
	var candidates []candidate
	for key, k := range p.kernels.all() {
		e := Entry{Key: key, Estimate: k.Predict(), Gap: k.Gap.Predict(), Steady: k.Steady(), SMNeed: k.Shape.SMNeed(d)}
		if e.Estimate == 0 && e.Gap == 0 {
			continue
		}
		e.CoRun = k.Settled() && e.SMNeed != 0 && int64(e.SMNeed) <= int64(beside.SMs) && k.DRAM(d) <= beside.DRAM
		candidates = append(candidates, candidate{e, float64(max(1, k.uses)) * float64(e.Estimate+e.Gap)})
	}
	for key, both := range p.pairs.all() {
		gap := both.gap.Predict()
		if gap == 0 {
			continue // the reader goes on to the kernel's own
		}
		if k := p.kernels.peek(both.kernel); k != nil {
			own := k.Gap.Predict()
			if math.Abs(float64(own-gap)) <= pairNews*float64(gap) {
				continue
			}
		}
		candidates = append(candidates, candidate{Entry{Key: key, Gap: gap}, float64(max(1, both.uses)) * float64(gap)})
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.value, a.value), cmp.Compare(a.entry.Key, b.entry.Key))
	})
	var places [tableEntries]bool
	entries = make([]Entry, 0, min(len(candidates), tableEntries))
	for _, c := range candidates {
		if !place(&places, c.entry.Key) {
			left++
			continue
		}
		entries = append(entries, c.entry)
	}
	return entries, left
}

// place takes the first free place within reach of a key.
func place(places *[tableEntries]bool, key uint64) bool {
	home := int(key >> tableShift)
	for i := range tableProbes {
		if at := (home + i) % tableEntries; !places[at] {
			places[at] = true
			return true
		}
	}
	return false
}
