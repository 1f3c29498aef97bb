package sched

import "time"

// idle is the idle time that follows the launches of v's peers, of those that are in use: what the
// shortest of them leaves. It is 0 if the idle time of one of them cannot be predicted.
func (p *Heddle) idle(nowNs uint64, v *Verdict, clients map[flowKey]*Client) time.Duration {
	least := time.Duration(0)
	for _, id := range v.Yields {
		if !p.inUse(nowNs, flowKey{v.Device, id}) {
			continue
		}
		gap := clients[flowKey{v.Device, id}].Demand.Gap
		if gap == 0 {
			return 0
		}
		if least == 0 || gap < least {
			least = gap
		}
	}
	return least
}

// inUse reports whether a client was at work a moment ago.
func (p *Heddle) inUse(nowNs uint64, key flowKey) bool {
	return nowNs-min(p.watched[key].lastNs, nowNs) < uint64(calm)
}

// switching is what it costs to give a device that takes turns to another program and back.
const switching = 100 * time.Microsecond

// fill lets v's client into the predicted gaps of its peers. Where the gaps are predictable, all
// clients of a class may fill them, and the token goes from one to the next for as long as the gap
// lasts: each reckons with a device that nobody of its class uses, so two at a time would run past
// the gap's end. The gate asks for the token until a peer has been quiet.
func (p *Heddle) fill(view *View, v *Verdict, clients map[flowKey]*Client, alone bool) {
	v.Gate |= GateFill
	idle := p.idle(view.NowNs, v, clients)
	if !p.settings.Without.Token {
		v.Parameters.Quiet = max(v.Parameters.Quiet, idle)
	}
	if !p.settings.Without.Margin {
		self := clients[flowKey{v.Device, v.Client}]
		v.Parameters.MarginPPM = margin(v.Parameters.MarginPPM, &self.Demand, p.permission(view.NowNs, v))
	}
	if !view.Devices[v.Device].Shared {
		v.Parameters.MinGap = max(v.Parameters.MinGap, p.worthwhile(v, clients))
		return
	}
	if alone {
		// What is outstanding must end before the gap does, whatever its window.
		v.Parameters.Window = max(v.Parameters.Window, idle)
	}
}

// worthwhile is how long a gap must be on a device that takes turns, so that the change to another
// program and back stays within the objectives of v's peers. Without an objective any gap will do.
func (p *Heddle) worthwhile(v *Verdict, clients map[flowKey]*Client) (longest time.Duration) {
	for _, id := range v.Yields {
		if objective := p.objective(clients[flowKey{v.Device, id}]); objective > 1 {
			longest = max(longest, time.Duration(float64(switching)/(objective-1)))
		}
	}
	return longest
}
