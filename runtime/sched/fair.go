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
type FairQueue struct {
	// Ahead is how much device time, at the reference weight, a client may be before the others.
	Ahead time.Duration

	flows map[flowKey]*flow
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
	service    time.Duration
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
func (q *FairQueue) Throttled(clients []Client, across bool) Throttle {
	if q.flows == nil {
		q.flows = map[flowKey]*flow{}
	}
	q.plan++
	behind := map[group]float64{} // the virtual time of each group: its slowest backlogged flow
	of := func(c *Client) group {
		if across {
			return group{c.Device, 0}
		}
		return group{c.Device, c.Class}
	}
	for i := range clients {
		c := &clients[i]
		f := q.charge(c)
		if !f.backlogged || !q.working(c, f) {
			continue
		}
		if v, ok := behind[of(c)]; !ok || f.virtual < v {
			behind[of(c)] = f.virtual
		}
	}
	throttled := Throttle{}
	for i := range clients {
		c := &clients[i]
		key := flowKey{c.Device, c.ID}
		f := q.flows[key]
		v, ok := behind[of(c)]
		switch {
		case !q.working(c, f):
			f.backlogged = false
		case !ok:
			f.backlogged = true
		default:
			if !f.backlogged { // it comes to those that are at work
				f.virtual = max(f.virtual, v)
				f.backlogged = true
			}
			if f.virtual-v > float64(q.Ahead) {
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

// working reports whether a client has work and gets on with it.
func (q *FairQueue) working(c *Client, f *flow) bool {
	return c.Observed.Backlogged && q.plan-f.moved <= stalled
}

// before orders clients by who should go first.
func (q *FairQueue) before(a, b flowKey) int {
	return cmp.Or(cmp.Compare(q.flows[a].virtual, q.flows[b].virtual), cmp.Compare(a.client, b.client))
}

// charge brings the flow of a client up to what it consumed.
func (q *FairQueue) charge(c *Client) *flow {
	key := flowKey{c.Device, c.ID}
	f := q.flows[key]
	if f == nil || f.class != c.Class || c.Observed.Service < f.service {
		// New, in another group, or its counter began anew.
		f = &flow{service: c.Observed.Service, class: c.Class, moved: q.plan}
		q.flows[key] = f
	}
	if c.Observed.Service != f.service || !c.Observed.Backlogged {
		f.moved = q.plan
	}
	weight := max(1, c.Weight)
	f.virtual += float64(c.Observed.Service-f.service) * referenceWeight / float64(weight)
	f.service = c.Observed.Service
	f.seen = q.plan
	return f
}
