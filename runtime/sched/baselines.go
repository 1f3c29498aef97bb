package sched

import "time"

// The policies of this file are what other systems do, as far as a verdict can say it. They are
// here to be measured against, and for those who want just that.

var (
	_ Policy = (*Fair)(nil)
	_ Policy = Orion{}
	_ Policy = FIKIT{}
	_ Policy = (*TimeSlice)(nil)
	_ Policy = (*Rate)(nil)
)

// Fair shares a device by weight alone, whatever the classes.
type Fair struct {
	settings Settings
	queue    FairQueue
}

// NewFair makes the policy.
func NewFair(s Settings) *Fair { return &Fair{s, FairQueue{Ahead: s.Ahead}} }

// Name implements [Policy].
func (*Fair) Name() string { return "fair" }

// Interval implements [Policy].
func (p *Fair) Interval() time.Duration { return p.settings.Interval }

// Plan implements [Policy].
func (p *Fair) Plan(view View) []Verdict {
	verdicts := None{}.Plan(view)
	clients := ordered(view)
	throttled := p.queue.Throttled(view.NowNs, clients, true)
	byKey := make(map[flowKey]*Client, len(clients))
	for i := range clients {
		byKey[flowKey{clients[i].Device, clients[i].ID}] = &clients[i]
	}
	for i := range verdicts {
		v := &verdicts[i]
		// What was launched cannot be called back, so fairness needs a window as priority does.
		v.Gate |= GateWindow
		v.Parameters = p.settings.Classes[v.Class]
		v.Parameters.Window = max(v.Parameters.Window, p.settings.Ahead/2) // little against a turn
		if throttled.Has(v.Device, v.Client) {
			v.Gate |= GateClosed
		}
	}
	for rest := verdicts; len(rest) != 0; {
		n := 1
		for n < len(rest) && rest[n].Device == rest[0].Device {
			n++
		}
		p.queue.takeTurns(view.Devices[rest[0].Device], rest[:n], byKey)
		rest = rest[n:]
	}
	return verdicts
}

// Orion is the rule of Strati, Ma and Klimovic (EuroSys 2024): best-effort work runs while no
// request of the more urgent work is under way, and beside it if its kernel's use of the device is
// of the opposite kind, as long as the sum of its outstanding kernels is small against a request.
// The published scheduler compares the two kernels at hand; here the more urgent side is its
// workload as a whole, since which of its kernels runs now is known to the device alone.
type Orion struct{ Settings Settings }

// orionDepth is the published bound on outstanding best-effort work: 2.5 % of the latency of a
// request, for which the objective's owner stands here with its window.
const orionDepth = 1

// Name implements [Policy].
func (Orion) Name() string { return "orion" }

// Interval implements [Policy].
func (Orion) Interval() time.Duration { return 0 }

// Plan implements [Policy].
func (p Orion) Plan(view View) []Verdict {
	verdicts := Priority{Classes: p.Settings.Classes}.Plan(view)
	demands := map[flowKey]Demand{}
	for i := range view.Clients {
		demands[flowKey{view.Clients[i].Device, view.Clients[i].ID}] = view.Clients[i].Demand
	}
	for i := range verdicts {
		v := &verdicts[i]
		if v.Gate&GatePublish != 0 && len(v.Yields) == 0 {
			v.StreamPriority = 1
		}
		if len(v.Yields) == 0 {
			continue
		}
		v.StreamPriority = -1
		v.Parameters.Quiet = 0
		v.Parameters.CoRunBound = orionDepth * v.Parameters.Window
		device := view.Devices[v.Device]
		if !device.Shared {
			continue
		}
		bound := Bound{SMs: device.SMs, DRAM: 1}
		for _, id := range v.Yields {
			if d := demands[flowKey{v.Device, id}]; d.Known && d.DRAM > 0.5 {
				bound.DRAM = 0.5
			}
		}
		v.CoRun, v.Beside = v.Yields, bound
	}
	return verdicts
}

// FIKIT fills the predicted gaps of the more urgent work, one kernel at a time, without a safety
// margin (Wu, arXiv 2311.10359). Between its requests there is nobody to yield to.
type FIKIT struct{ Settings Settings }

// fikitSmallest is the published shortest gap that is filled.
const fikitSmallest = 100 * time.Microsecond

// Name implements [Policy].
func (FIKIT) Name() string { return "fikit" }

// Interval implements [Policy].
func (FIKIT) Interval() time.Duration { return 0 }

// Plan implements [Policy].
func (p FIKIT) Plan(view View) []Verdict {
	verdicts := Priority{Classes: p.Settings.Classes}.Plan(view)
	for i := range verdicts {
		v := &verdicts[i]
		if len(v.Yields) == 0 {
			continue
		}
		v.Gate |= GateFill
		v.Parameters.Quiet, v.Parameters.MarginPPM, v.Parameters.MinGap = 0, 0, fikitSmallest
		v.Parameters.Window = 1 // one kernel is always allowed, and then no other
	}
	return verdicts
}

// TimeSlice gives the whole device to one client at a time, for a quantum, in turn, as nvshare
// does (github.com/grgalex/nvshare). A client without work passes its turn on.
type TimeSlice struct {
	settings Settings
	turns    map[DeviceID]turn
}

type turn struct {
	client ClientID
	endNs  uint64
}

// NewTimeSlice makes the policy.
func NewTimeSlice(s Settings) *TimeSlice { return &TimeSlice{s, map[DeviceID]turn{}} }

// Name implements [Policy].
func (*TimeSlice) Name() string { return "timeslice" }

// Interval implements [Policy].
func (p *TimeSlice) Interval() time.Duration { return p.settings.Interval }

// Plan implements [Policy].
func (p *TimeSlice) Plan(view View) []Verdict {
	verdicts := None{}.Plan(view)
	clients := ordered(view)
	for rest := clients; len(rest) != 0; {
		group := leading(rest, func(c Client) bool { return c.Device == rest[0].Device })
		rest = rest[len(group):]
		p.turns[group[0].Device] = p.next(view.NowNs, p.turns[group[0].Device], group)
	}
	for i := range verdicts {
		v := &verdicts[i]
		if t := p.turns[v.Device]; t.client != 0 && t.client != v.Client {
			v.Gate |= GateClosed
		}
	}
	return verdicts
}

// next keeps the present turn, or gives it to the next client in the order of ids that has work;
// client 0 = nobody has.
func (p *TimeSlice) next(nowNs uint64, t turn, clients []Client) turn {
	var first, after ClientID
	for i := range clients {
		c := &clients[i]
		if !c.Observed.Backlogged {
			continue
		}
		if c.ID == t.client && nowNs < t.endNs {
			return t
		}
		if first == 0 || c.ID < first {
			first = c.ID
		}
		if c.ID > t.client && (after == 0 || c.ID < after) {
			after = c.ID
		}
	}
	if after == 0 {
		after = first
	}
	return turn{after, nowNs + uint64(p.settings.Quantum)}
}

// Rate controls how much of the time the lower classes may launch at all by the measured slowdown
// of the most urgent one, as TGS does (Wu et al., NSDI 2023). It needs no profile of the lower
// classes.
type Rate struct {
	settings Settings
	control  map[flowKey]*Controller
	credit   map[DeviceID]float64
}

// NewRate makes the policy.
func NewRate(s Settings) *Rate {
	return &Rate{s, map[flowKey]*Controller{}, map[DeviceID]float64{}}
}

// Name implements [Policy].
func (*Rate) Name() string { return "rate" }

// Interval implements [Policy].
func (p *Rate) Interval() time.Duration { return p.settings.Interval }

// Plan implements [Policy].
func (p *Rate) Plan(view View) []Verdict {
	verdicts := None{}.Plan(view)
	clients := ordered(view)
	open := map[DeviceID]bool{}
	for rest := clients; len(rest) != 0; {
		group := leading(rest, func(c Client) bool { return c.Device == rest[0].Device })
		rest = rest[len(group):]
		device := group[0].Device
		permission := 1.0
		for i := range leading(group, func(c Client) bool { return c.Class == group[0].Class }) {
			c := &group[i]
			k := p.control[flowKey{device, c.ID}]
			if k == nil {
				k = &Controller{}
				p.control[flowKey{device, c.ID}] = k
			}
			k.Observe(p.settings.SLO, c.Observed.Measured, c.Observed.Expected)
			permission = min(permission, k.Permission())
		}
		p.credit[device] += permission
		if p.credit[device] >= 1 {
			p.credit[device]--
			open[device] = true
		}
		for i := range verdicts {
			v := &verdicts[i]
			if v.Device == device && v.Class != group[0].Class && !open[device] {
				v.Gate |= GateClosed
			}
		}
	}
	return verdicts
}
