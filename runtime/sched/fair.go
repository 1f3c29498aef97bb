package sched

import (
	"cmp"
	"time"
)

// FairQueue shares a device inside a class by start-time fair queueing over measured device time
// (Goyal, Vin and Cheng, SIGCOMM 1996; with the throttling of MQFQ, Hedayati et al., ATC 2019):
// every client has a virtual time that grows with the device time it consumed, divided by its
// weight; a client whose virtual time is more than Ahead before the slowest one that has work is
// throttled. Charges are what was measured, so a client that promises short work and brings long
// work gains nothing.
//
// A client that had no work for a while does not come back with a credit: it starts at the virtual
// time of those that worked. The same holds for one that says it has work and gets nothing done,
// because it was stopped or its kernels are too long for what its peers leave: others do not wait.
//
// Launches of two programs that are on a device together take, as measured from outside, as long as
// both: who brings kernels of 20 us beside kernels of 1 ms would pay for the other's. See meter and
// [FairQueue.takeTurns] for what is done about it.
type FairQueue struct {
	// Ahead is how much device time, at the reference weight, a client may be before the others.
	Ahead time.Duration

	flows map[flowKey]*flow
	lasts map[DeviceID]uint64 // when a device's clients were last charged
	plan  uint64
}

// referenceWeight is the weight at which a virtual nanosecond is a nanosecond of device time.
const referenceWeight = 100

type flowKey struct {
	device DeviceID
	client ClientID
}

type flow struct {
	virtual    float64 // ns
	meter      meter
	steady     float64 // how much of its last plans it had work in, 0 to 1
	turn       bool    // it was let go in the last plan in which clients took turns
	class      int
	backlogged bool
	moved      uint64 // plan in which it was seen to have consumed something
	seen       uint64 // plan
}

// stalled is after how many plans without anything consumed others stop waiting for a client.
const stalled = 50

type group struct {
	device DeviceID
	class  int
}

// Throttle is a set of clients that have to wait, each on a device.
type Throttle map[flowKey]bool

// Has reports whether a client has to wait on a device.
func (t Throttle) Has(device DeviceID, client ClientID) bool { return t[flowKey{device, client}] }

// Throttled charges every client for what it consumed since the call before and returns those that
// have to wait. Clients are grouped by device and class, or, if across is set, by device alone.
// Classes must be inside their bounds.
func (q *FairQueue) Throttled(nowNs uint64, clients []Client, across bool) Throttle {
	if q.flows == nil {
		q.flows, q.lasts = map[flowKey]*flow{}, map[DeviceID]uint64{}
	}
	q.plan++
	intervals := q.intervals(nowNs, clients)
	behind := map[group]*flow{} // the slowest backlogged flow of each group
	of := func(c *Client) group {
		if across {
			return group{c.Device, 0}
		}
		return group{c.Device, c.Class}
	}
	for i := range clients {
		c := &clients[i]
		f := q.charge(c, intervals[c.Device])
		if !f.backlogged || !q.working(c, f) {
			continue
		}
		if slowest := behind[of(c)]; slowest == nil || f.virtual < slowest.virtual {
			behind[of(c)] = f
		}
	}
	throttled := Throttle{}
	for i := range clients {
		c := &clients[i]
		key := flowKey{c.Device, c.ID}
		f := q.flows[key]
		slowest := behind[of(c)]
		switch {
		case !q.working(c, f):
			f.backlogged = false
		case slowest == nil:
			f.backlogged = true
		default:
			if !f.backlogged { // it comes to those that are at work
				f.virtual = max(f.virtual, slowest.virtual)
				f.backlogged = true
			}
			if f.virtual-slowest.virtual > q.ahead(f, slowest) {
				throttled[key] = true
				f.moved = q.plan // it would, if it might
			}
		}
	}
	for key, f := range q.flows {
		if f.seen != q.plan {
			delete(q.flows, key)
		}
	}
	return throttled
}

// ahead is how far a flow may be before another, in virtual nanoseconds.
func (q *FairQueue) ahead(f, slowest *flow) float64 {
	if f.takesTurns() && slowest.takesTurns() {
		return turnAhead * float64(q.Ahead)
	}
	return float64(q.Ahead)
}

// working reports whether a client has work and gets on with it.
func (q *FairQueue) working(c *Client, f *flow) bool {
	return c.Observed.Backlogged && q.plan-f.moved <= stalled
}

// before orders clients by who should go first.
func (q *FairQueue) before(a, b flowKey) int {
	return cmp.Or(cmp.Compare(q.flows[a].virtual, q.flows[b].virtual), cmp.Compare(a.client, b.client))
}

// charge brings the flow of a client up to what it consumed.
func (q *FairQueue) charge(c *Client, in interval) *flow {
	key := flowKey{c.Device, c.ID}
	f := q.flows[key]
	if f == nil || f.class != c.Class || c.Observed.Service < f.meter.service {
		// New, in another group, or its counter began anew.
		f = &flow{meter: meter{service: c.Observed.Service, busy: c.Observed.Busy}, class: c.Class, moved: q.plan}
		q.flows[key] = f
	}
	if c.Observed.Service != f.meter.service || !c.Observed.Backlogged {
		f.moved = q.plan
	}
	f.virtual += f.meter.charge(&c.Observed, in, f.takesTurns()) * referenceWeight / float64(max(1, c.Weight))
	worked := 0.0
	if c.Observed.Backlogged {
		worked = 1
	}
	f.steady += (worked - f.steady) / steadyPlans
	f.seen = q.plan
	return f
}
