package sched

import "time"

// A client whose next launch is longer than every gap of its peers would stand still until it may wait
// no longer. Where a peer has an objective, an allowance lets such launches go: each puts the peer's
// next launch off by what it runs past the gap's end, and they go as often as that stays within the
// objective, as a part of the peer's own device time. Prediction decides how often, and the peer's
// controller, which sees what it costs in truth, how much of the objective may be spent.

const (
	// allowanceSpan is over how much of a peer's own device time its objective is kept: what may be
	// saved up, and so the longest delay that a single launch may cause.
	allowanceSpan = decisive
	// reaction is how long after the begin of a gap a launch that waited for it begins.
	reaction = 50 * time.Microsecond
	// leastDelay is what a launch is charged at least: the peer's caches and clocks feel it, too.
	leastDelay = 20 * time.Microsecond
	// grantLongest is how long others wait for a launch that was granted. Who was stopped before it
	// could launch must not stop its class.
	grantLongest = 50 * time.Millisecond
)

// account is what may still be spent of a client's objective, in device time of its own.
type account struct {
	credit  time.Duration
	service time.Duration // up to which it was credited
}

// earn credits what the client did since the last call. A part of it may be lost to others.
func (a *account) earn(service time.Duration, part float64) {
	worked := max(0, service-a.service)
	a.service = service
	most := time.Duration(part * float64(allowanceSpan))
	a.credit = min(a.credit+time.Duration(part*float64(worked)), most)
}

// grant is the permission for one launch to begin with a gap that it does not fit.
type grant struct {
	client  ClientID
	waiting time.Duration // the launch ...
	service time.Duration // ... and what its client had consumed before it
	begin   begin
	sinceNs uint64
}

// begin is how a launch that was granted begins.
type begin int

const (
	atOnce  begin = iota // with the next gap, whatever is predicted of it
	tight                // in a gap that it fits, but not with a margin
	filling              // in a gap that is not worth the change of programs each time
)

// used reports whether the launch went, or is no longer wanted.
func (g *grant) used(c *Client) bool {
	return c.Observed.Waiting != g.waiting || c.Observed.Service != g.service
}

// allow grants one of a group's clients a launch, or takes the grant back once it was used. While it
// lasts, the others of the group wait: nothing else should be in the gap.
func (p *Heddle) allow(view *View, verdicts []Verdict, clients map[flowKey]*Client) {
	if p.settings.Without.Allowance || len(verdicts[0].Yields) == 0 {
		return
	}
	key := group{verdicts[0].Device, verdicts[0].Class}
	g, granted := p.grants[key]
	delete(p.grants, key)
	if granted {
		c := clients[flowKey{key.device, g.client}]
		switch {
		case c == nil || c.Class != key.class:
			granted = false
		case g.used(c):
			granted = false
			p.settle(view.NowNs, &g, &verdicts[0], clients)
		case view.NowNs-min(g.sinceNs, view.NowNs) > uint64(grantLongest):
			granted = false
			p.watched[flowKey{key.device, g.client}].lapsed = g
		}
	}
	if !granted {
		g, granted = p.grant(view, verdicts, clients)
	}
	if !granted {
		return
	}
	p.grants[key] = g
	for i := range verdicts {
		v := &verdicts[i]
		if v.Client != g.client {
			v.Gate |= GateClosed
			continue
		}
		v.Gate &^= GateClosed
		switch g.begin {
		case filling:
			v.Parameters.MinGap = p.settings.Classes[key.class].MinGap
			continue
		case tight:
			v.Parameters.MarginPPM = 0
		case atOnce:
			v.Gate &^= GateFill
			v.Parameters.Quiet = 0
		}
		v.Gate |= GateWindow
		v.Parameters.Window = 1 // nothing follows while it runs
	}
}

// grant picks the first client, by who should go first, whose launch fits no gap and can be afforded,
// and charges its peers.
func (p *Heddle) grant(view *View, verdicts []Verdict, clients map[flowKey]*Client) (grant, bool) {
	var first *Verdict
	var how begin
	for i := range verdicts {
		v := &verdicts[i]
		if b, ok := p.afford(view, v, clients); ok && (first == nil || p.goesFirst(v, first)) {
			first, how = v, b
		}
	}
	if first == nil {
		return grant{}, false
	}
	c := clients[flowKey{first.Device, first.Client}]
	for _, id := range first.Yields {
		key := flowKey{first.Device, id}
		if p.inUse(view.NowNs, key) {
			// What was saved up beyond this launch is lost: launches keep their distance.
			late, further := delay(how, c.Observed.Waiting, &c.Demand, clients[key].Demand.Gap)
			a := &p.watched[key].account
			a.credit = min(0, a.credit-late-further)
		}
	}
	return grant{first.Client, c.Observed.Waiting, c.Observed.Service, how, view.NowNs}, true
}

// afford reports whether the launch that v's client waits with gets into no gap, and all peers in use
// can pay for it, and how it then begins. The peers must all be at work: then it begins with the next
// gap, and not inside one.
func (p *Heddle) afford(view *View, v *Verdict, clients map[flowKey]*Client) (how begin, ok bool) {
	c := clients[flowKey{v.Device, v.Client}]
	launch := min(c.Observed.Waiting, time.Duration(durationMaxNs)) // whatever a client claims
	if launch <= 0 || v.Mediated || v.Gate&GateClosed != 0 {
		return 0, false
	}
	if lapsed := &p.watched[flowKey{v.Device, v.Client}].lapsed; lapsed.client != 0 && !lapsed.used(c) {
		return 0, false
	}
	gap := p.idle(view.NowNs, v, clients)
	if gap == 0 {
		return 0, false
	}
	need := launch + time.Duration(float64(launch)*float64(v.Parameters.MarginPPM)/1e6) + reaction
	switch {
	case !view.Devices[v.Device].Shared:
		// What runs past the end there costs a change of programs besides; only what fits may go.
		how, ok = filling, need+switching <= gap && gap < v.Parameters.MinGap
	case launch+reaction <= gap:
		how, ok = tight, need > gap
	default:
		how, ok = atOnce, true
	}
	for _, id := range v.Yields {
		key := flowKey{v.Device, id}
		if ok && p.inUse(view.NowNs, key) {
			late, _ := delay(how, launch, &c.Demand, clients[key].Demand.Gap)
			ok = clients[key].Observed.Backlogged && p.watched[key].account.credit >= late
		}
	}
	return how, ok
}

func (p *Heddle) goesFirst(a, b *Verdict) bool {
	return p.fair.before(flowKey{a.Device, a.Client}, flowKey{b.Device, b.Client}) < 0
}

// settle charges for what went besides the one launch that was paid for: the grant lasts until the
// plan after it was used, and short gaps may follow each other faster.
func (p *Heddle) settle(nowNs uint64, g *grant, v *Verdict, clients map[flowKey]*Client) {
	if g.begin == filling {
		return
	}
	took := clients[flowKey{v.Device, g.client}].Observed.Service - g.service
	further := (took+g.waiting/2)/max(1, g.waiting) - 1
	for _, id := range v.Yields {
		key := flowKey{v.Device, id}
		if further > 0 && p.inUse(nowNs, key) {
			late, _ := delay(g.begin, g.waiting, &Demand{}, clients[key].Demand.Gap)
			p.watched[key].account.credit -= min(further*late, took)
		}
	}
}

// delay is by how much a launch that begins with a gap puts off what comes after the gap. One that
// may end just before the gap does may be followed by another, which puts it off further. Where
// programs take turns it is the change back, once for each gap, and there may be two until the grant
// is taken back.
func delay(how begin, launch time.Duration, d *Demand, gap time.Duration) (late, further time.Duration) {
	switch {
	case how == filling:
		return switching, switching
	case how == tight:
		return leastDelay, 0 // it is not followed by what does not fit
	case float64(launch)*(1-marginSigmas*d.Spread) < float64(gap):
		further = d.Longest
	}
	return max(leastDelay, launch+reaction-gap), further
}
