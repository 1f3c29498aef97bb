package profiles

import (
	"cmp"
	"math"
	"slices"

	"github.com/heddle-project/heddle/runtime/errdefs"
	"github.com/heddle-project/heddle/runtime/sched"
)

// Merge adds what another profile of the same workload on the same model of device knows, by the
// weight of the samples. Of times learnt alone and times learnt beside others the former are kept. If
// both together know more kernels than one profile holds, those that ran most are kept.
func (p *Profile) Merge(o *Profile) error {
	if p.ID != o.ID {
		return errdefs.Errorf(errdefs.Invalid, "merge profile of %s on %s into that of %s on %s",
			o.ID.Workload, o.ID.Device, p.ID.Workload, p.ID.Device)
	}
	if p.Label == "" {
		p.Label = o.Label
	}
	if p.Sensitivity == (sched.Sensitivity{}) {
		p.Sensitivity = o.Sensitivity
	}
	// A profile may be merged with itself, and what was merged is the most recently used.
	for _, n := range o.kernels.nodes() {
		k := n.value
		p.kernels.add(n.key).merge(&k)
	}
	for _, n := range o.pairs.nodes() {
		from := n.value
		to := p.pairs.add(n.key)
		to.previous, to.kernel = from.previous, from.kernel
		to.gap.Merge(from.gap.Moments)
		to.uses = min(to.uses+from.uses, usesMax-1)
	}
	p.kernels.trim()
	p.pairs.trim()
	p.reassess()
	return nil
}

func (k *Kernel) merge(o *Kernel) {
	if k.Name == "" {
		k.Name, k.Module, k.Shape = o.Name, o.Module, o.Shape
	}
	k.Graph = k.Graph || o.Graph
	k.Figures.Merge(&o.Figures)
	k.Changes = max(k.Changes, o.Changes)
	k.Samples += min(o.Samples, math.MaxUint64-k.Samples)
	k.Gap.Merge(o.Gap.Moments)
	k.uses += o.uses
	switch {
	case o.Time.Weight == 0 || k.Alone && !o.Alone:
		return
	case k.Time.Weight == 0 || o.Alone && !k.Alone:
		k.Alone, k.Min, k.Time, k.Times, k.detect = o.Alone, o.Min, o.Time, o.Times, o.detect
		return
	}
	k.Min = min(k.Min, o.Min)
	k.Time.Merge(o.Time)
	k.Times.Merge(&o.Times)
	k.detect = detector{logs: k.detect.logs}
	k.detect.logs.Merge(o.detect.logs)
}

// reassess says anew, of the kernels as they are, whether there is much to learn.
func (p *Profile) reassess() {
	for {
		p.uses = 0
		unknown := uint32(0)
		for _, k := range p.kernels.all() {
			p.uses += k.uses
			if !k.Settled() {
				unknown += k.uses
			}
		}
		if p.uses < usesMax {
			p.unsettled = 1
			if p.uses > 0 {
				p.unsettled = float64(unknown) / float64(p.uses)
			}
			break
		}
		for _, k := range p.kernels.all() {
			k.uses /= 2
		}
	}
	p.measuring = p.unsettled >= unsettledFew
}

// nodes are all nodes, the least recently used first.
func (l *lru[V]) nodes() []*node[V] {
	all := make([]*node[V], 0, len(l.byKey))
	for n := l.oldest; n != nil; n = n.newer {
		all = append(all, n)
	}
	return all
}

// add is use without dropping anything: trim has to follow.
func (l *lru[V]) add(key uint64) *V {
	most := l.most
	l.most = len(l.byKey) + 1
	value, _ := l.use(key)
	l.most = most
	return value
}

// trim drops those of least worth until the rest is within bounds.
func (l *lru[V]) trim() {
	if len(l.byKey) <= l.most {
		return
	}
	all := l.nodes()
	slices.SortStableFunc(all, func(a, b *node[V]) int {
		return cmp.Or(cmp.Compare(l.worth(&a.value), l.worth(&b.value)), cmp.Compare(a.key, b.key))
	})
	for _, n := range all[:len(all)-l.most] {
		l.drop(n)
	}
}
