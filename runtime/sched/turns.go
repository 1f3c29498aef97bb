package sched

import "slices"

const (
	// steadyPlans is over how many plans it is judged whether a client always has work.
	steadyPlans = 32
	// steadyPart is in how many of them it has some then. A service has none between its requests.
	steadyPart = 0.75
	// turnAhead is how many times Ahead one that takes turns may be before another that does. What is
	// on the device when a turn ends must be little against the turn.
	turnAhead = 4
)

// takesTurns reports whether a client always has work.
func (f *flow) takesTurns() bool { return f.steady > steadyPart }

// takeTurns closes the clients of one group that have to wait because others of it fill the device
// already. Those that take turns always have work; whoever has some now and then, as a service has,
// finds the device open. A turn lasts until its client is throttled, so that turns are not changed more
// often than fairness asks for; then the one with the least virtual time is next. Where kernels of
// several clients run side by side, as many go on as are known to leave room for each other.
func (q *FairQueue) takeTurns(device Device, verdicts []Verdict, clients map[flowKey]*Client) {
	var waiting []*Verdict
	for i := range verdicts {
		v := &verdicts[i]
		key := flowKey{v.Device, v.Client}
		c, f := clients[key], q.flows[key]
		if v.Gate&GateClosed == 0 && c.Observed.Backlogged && !c.Gang && f.takesTurns() && q.working(c, f) {
			waiting = append(waiting, v)
		} else {
			f.turn = false
		}
	}
	slices.SortFunc(waiting, func(a, b *Verdict) int {
		x, y := flowKey{a.Device, a.Client}, flowKey{b.Device, b.Client}
		if q.flows[x].turn != q.flows[y].turn {
			if q.flows[x].turn {
				return -1
			}
			return 1
		}
		return q.before(x, y)
	})
	filled := 0 // SMs
	for i, v := range waiting {
		key := flowKey{v.Device, v.Client}
		c, f := clients[key], q.flows[key]
		f.turn = i == 0 || device.Shared && filled < device.SMs
		switch {
		case !f.turn:
			v.Gate |= GateClosed
			f.moved = q.plan // it would, if it might
		case c.Demand.Known:
			filled += c.Demand.PeakSMs
		}
	}
}
