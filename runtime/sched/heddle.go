package sched

import (
	"slices"
	"time"
)

// Heddle is the policy of this project: classes by priority with a bounded window, the filling of
// predicted gaps, fairness inside a class, turns among those that wait for the same peers, running
// side by side within what the more urgent work leaves, and a controller that gives the lower
// classes as much as an objective allows.
type Heddle struct {
	settings Settings
	fair     FairQueue
	watched  map[flowKey]*watch
	pairs    Pairs
	grants   map[group]grant
}

var _ Policy = (*Heddle)(nil)

// watch is what is known of a client that others yield to.
type watch struct {
	controller Controller
	account    account
	lapsed     grant // that it did not use
	service    time.Duration
	lastNs     uint64 // when it was last seen at work
	plan       uint64
	// beside are the clients that were allowed to run beside it since its controller decided last.
	beside map[ClientID]bool
}

// hurt is how much of its objective's margin a client must have lost before those beside it get a
// strike: more than waiting for a kernel that was there before explains.
const hurt = 5

// calm is how long a client must have done nothing before the others stop caring for it: far longer
// than the pause between two requests of a service in use.
const calm = 250 * time.Millisecond

// NewHeddle makes the policy.
func NewHeddle(s Settings) *Heddle {
	return &Heddle{
		settings: s,
		fair:     FairQueue{Ahead: s.Ahead},
		watched:  map[flowKey]*watch{},
		pairs:    Pairs{Forgive: s.Forgive},
		grants:   map[group]grant{},
	}
}

// Name implements [Policy].
func (*Heddle) Name() string { return "heddle" }

// Interval implements [Policy].
func (p *Heddle) Interval() time.Duration { return p.settings.Interval }

// Plan implements [Policy].
func (p *Heddle) Plan(view View) []Verdict {
	verdicts := Priority{Classes: p.settings.Classes}.Plan(view)
	clients := ordered(view)
	throttled := p.fair.Throttled(view.NowNs, clients, false)
	byKey := make(map[flowKey]*Client, len(clients))
	members := map[group]int{}
	for i := range clients {
		c := &clients[i]
		byKey[flowKey{c.Device, c.ID}] = c
		members[group{c.Device, c.Class}]++
	}
	p.observe(view.NowNs, clients)
	for i := range verdicts {
		v := &verdicts[i]
		if members[group{v.Device, v.Class}] > 1 && v.Gate&GateWindow == 0 {
			// A turn can end only where work can be held back.
			v.Gate |= GateWindow
			v.Parameters.Window = max(v.Parameters.Window, p.settings.Ahead/2)
		}
		if throttled.Has(v.Device, v.Client) {
			v.Gate |= GateClosed
		}
		if v.Gate&GatePublish != 0 && len(v.Yields) == 0 {
			v.StreamPriority = 1
		}
		if len(v.Yields) == 0 {
			continue
		}
		v.StreamPriority = -1
		if p.settings.Without.Window {
			v.Gate &^= GateWindow
		}
		if !p.settings.Without.Fill {
			p.fill(&view, v, byKey, members[group{v.Device, v.Class}] == 1)
		}
		if !p.settings.Without.CoRun {
			p.coRun(view, v, byKey)
		}
	}
	for rest := verdicts; len(rest) != 0; {
		n := 1
		for n < len(rest) && rest[n].Device == rest[0].Device && rest[n].Class == rest[0].Class {
			n++
		}
		p.turns(&view, rest[:n], byKey)
		p.allow(&view, rest[:n], byKey)
		rest = rest[n:]
	}
	return verdicts
}

// observe keeps watch over all clients, each of which others may yield to.
func (p *Heddle) observe(nowNs uint64, clients []Client) {
	for i := range clients {
		c := &clients[i]
		key := flowKey{c.Device, c.ID}
		w := p.watched[key]
		if w == nil {
			w = &watch{beside: map[ClientID]bool{}}
			p.watched[key] = w
		}
		objective := p.objective(c)
		slowdown := w.controller.Observe(objective, c.Observed.Measured, c.Observed.Expected)
		if slowdown != 0 {
			if objective != 0 && slowdown-1 > (objective-1)*hurt {
				for low := range w.beside {
					p.pairs.Strike(nowNs, low, c.ID)
				}
			}
			clear(w.beside)
		}
		w.account.earn(c.Observed.Service, max(0, objective-1)*w.controller.Permission())
		if c.Observed.Backlogged || c.Observed.Service != w.service {
			w.service, w.lastNs = c.Observed.Service, nowNs
		}
		w.plan = p.fair.plan
	}
	for key, w := range p.watched {
		if w.plan != p.fair.plan {
			delete(p.watched, key)
		}
	}
}

// permission is what all the peers of v that are in use allow together.
func (p *Heddle) permission(nowNs uint64, v *Verdict) float64 {
	permission := 1.0
	if p.settings.Without.Control {
		return permission
	}
	for _, id := range v.Yields {
		key := flowKey{v.Device, id}
		if p.inUse(nowNs, key) {
			permission = min(permission, p.watched[key].controller.Permission())
		}
	}
	return permission
}

// turns lets so many of the clients of one class run at a time as fill the device, and as their peers
// allow, at least one: what runs when a peer's work comes is in its way, and more of it is more in its
// way. Those with the least virtual time go first. A client without work keeps its gate open, since it
// may have some before the next plan. In predictable gaps the token decides instead, launch by launch.
func (p *Heddle) turns(view *View, verdicts []Verdict, clients map[flowKey]*Client) {
	if p.settings.Without.Turns || len(verdicts) < 2 {
		return
	}
	yields := len(verdicts[0].Yields) != 0
	if yields && verdicts[0].Gate&GateFill != 0 && !p.settings.Without.Token && p.idle(view.NowNs, &verdicts[0], clients) != 0 {
		return
	}
	p.fair.takeTurns(view.Devices[verdicts[0].Device], verdicts, clients)
	if !yields {
		return
	}
	var waiting []*Verdict
	for i := range verdicts {
		v := &verdicts[i]
		if v.Gate&GateClosed == 0 && clients[flowKey{v.Device, v.Client}].Observed.Backlogged {
			waiting = append(waiting, v)
		}
	}
	slices.SortFunc(waiting, func(a, b *Verdict) int {
		return p.fair.before(flowKey{a.Device, a.Client}, flowKey{b.Device, b.Client})
	})
	together := 1 + int(p.permission(view.NowNs, &verdicts[0])*float64(len(verdicts)-1))
	for i := together; i < len(waiting); i++ {
		waiting[i].Gate |= GateClosed
	}
}

// coRun lists the peers beside which v's client may run, and how much of it.
func (p *Heddle) coRun(view View, v *Verdict, clients map[flowKey]*Client) {
	device := view.Devices[v.Device]
	if !device.Shared || device.SMs == 0 || v.Parameters.CoRunBound == 0 {
		return
	}
	bound := Bound{SMs: device.SMs, DRAM: 1}
	self := clients[flowKey{v.Device, v.Client}]
	for _, id := range v.Yields {
		h := clients[flowKey{v.Device, id}]
		if !h.Demand.Known || p.pairs.Struck(view.NowNs, v.Client, id) || p.interfere(h, self, device) {
			return // beside all of them or none: a kernel cannot run beside one of two
		}
		bound = bound.beside(h.Demand, device)
	}
	beside := time.Duration(float64(v.Parameters.CoRunBound) * p.permission(view.NowNs, v))
	if bound.SMs <= 0 || bound.DRAM <= 0 || beside < p.settings.MinBeside {
		return
	}
	v.CoRun, v.Beside, v.Parameters.CoRunBound = v.Yields, bound, beside
	for _, id := range v.Yields {
		p.watched[flowKey{v.Device, id}].beside[v.Client] = true
	}
}

// interfere reports whether what was measured of the two says that they must not run side by side.
// Of most workloads nothing is: then the bound and the controller decide.
func (p *Heddle) interfere(high, low *Client, device Device) bool {
	if !high.Demand.Vector.Known || !low.Demand.Vector.Known {
		return false
	}
	j := Interfere(&high.Demand.Vector, &low.Demand.Vector, &high.Demand.Sensitivity, device.Limits, p.objective(high)-1)
	return !j.Beside
}

// objective is the slowdown that a client accepts, 0 = it has none.
func (p *Heddle) objective(c *Client) float64 {
	if c.SLO != 0 {
		return c.SLO
	}
	return p.settings.SLO
}

// dramSlack is how much more bandwidth than there is may be asked for by two that run side by side:
// a little, since what they take is an average.
const dramSlack = 0.1

// beside takes from a bound what a peer's demand needs. The SMs are those with which most of the
// peer's time is satisfied; what it lacks in the rest, and in bandwidth, its controller sees.
func (b Bound) beside(d Demand, device Device) Bound {
	return Bound{
		SMs:  min(b.SMs, device.SMs-d.PeakSMs),
		DRAM: min(b.DRAM, 1+dramSlack-d.DRAM),
	}
}
