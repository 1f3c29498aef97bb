package device

import "math"

// group is a context, or all clients of MPS together: who runs at one time.
type group int32

// mpsGroup comes after all contexts.
const mpsGroup group = math.MaxInt32

// slices is the turn-taking between groups.
type slices struct {
	current    group // none: nobody ran yet
	target     group // none: no switch under way
	switchEnd  int64
	quantumEnd int64 // none: the current group is without work
	mpsReady   int
	contended  bool // the current group and another have work
}

func (d *Device) groupOf(o *op) group {
	c := d.streams[o.stream].context
	if d.contexts[c].mps {
		return mpsGroup
	}
	return group(c)
}

// runs reports whether the group of o is the current one.
func (s *slices) runs(d *Device, o *op) bool { return d.groupOf(o) == s.current }

// readyOf is how many kernels of a group compete.
func (d *Device) readyOf(g group) int {
	switch g {
	case none:
		return 0
	case mpsGroup:
		return d.slices.mpsReady
	default:
		return d.contexts[g].ready
	}
}

func (d *Device) heldByGroup() uint32 {
	held := uint32(0)
	for _, i := range d.ready {
		if d.slices.runs(d, &d.ops[i]) {
			held += d.ops[i].held
		}
	}
	return held
}

// following is the group with work whose number comes after the current one's, round and round; none if no other has.
func (d *Device) following() group {
	current := d.slices.current
	if len(d.ready) == d.readyOf(current) {
		return none
	}
	above, lowest := group(none), group(none)
	for _, i := range d.ready {
		g := d.groupOf(&d.ops[i])
		if g == current {
			continue
		}
		if lowest == none || g < lowest {
			lowest = g
		}
		if g > current && (above == none || g < above) {
			above = g
		}
	}
	if above != none {
		return above
	}
	return lowest
}

// choose ends quanta, and begins and ends switches.
func (d *Device) choose(t int64) {
	s := &d.slices
	if s.target != none {
		if t < s.switchEnd {
			return
		}
		s.current, s.target = s.target, none
		s.quantumEnd = t + d.gpu.Quantum
	}
	other := d.following()
	s.contended = false
	if d.readyOf(s.current) > 0 {
		s.contended = other != none
		if !s.over(t, d.gpu.Quantum) || other == none {
			return
		}
		s.contended = false
	} else {
		s.quantumEnd = none
		if other == none {
			return
		}
	}
	if s.current == none { // nothing to save
		s.current = other
		s.quantumEnd = t + d.gpu.Quantum
		s.contended = d.following() != none
		return
	}
	s.target = other
	s.switchEnd = t + d.gpu.Switch
	d.usage.Switches++
}

// over reports whether a quantum of the current group ends at t. Quanta that passed while nobody else wanted the
// device were no events; they are made up for here.
func (s *slices) over(t, quantum int64) bool {
	if s.quantumEnd == none {
		s.quantumEnd = t + quantum
	}
	if late := t - s.quantumEnd; late > 0 {
		s.quantumEnd += (late + quantum - 1) / quantum * quantum
	}
	return t == s.quantumEnd
}

// event is the time at which a turn ends, or a switch.
func (s *slices) event() int64 {
	switch {
	case s.target != none:
		return s.switchEnd
	case s.contended:
		return s.quantumEnd
	default:
		return Never
	}
}
