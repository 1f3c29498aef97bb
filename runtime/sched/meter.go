package sched

import "time"

// meter tells what a client has had of its device from what its launches seem to have taken. Of the
// time in which several clients have work on a device, each has had an equal part, and none is charged
// for more than its parts since the last charge add up to. A charge comes when a launch is complete, so
// that the parts of many plans may be charged with one. A client that takes turns is charged for its
// parts, since nobody else could use them: what its launches took is a prediction for most of them,
// and one that is eight percent too low would be eight percent more of the device.
//
// What is left on the device when a turn ends is charged to whoever comes next, who waits for it. It is
// bounded by the window, about as long for all, and each leaves some.
type meter struct {
	service time.Duration // as last read
	busy    time.Duration // as last read
	room    float64       // ns; what may be charged
}

// interval is the time between two plans for a device.
type interval struct {
	length time.Duration
	part   float64 // what part of their busy time in it the clients have had
}

// intervals returns, for each device, the time since the last call.
func (q *FairQueue) intervals(nowNs uint64, clients []Client) map[DeviceID]interval {
	intervals := map[DeviceID]interval{}
	busy := map[DeviceID]time.Duration{}
	for i := range clients {
		c := &clients[i]
		length := sinceNs(q.lasts[c.Device], nowNs) // very long at first, when nothing was read before
		if f := q.flows[flowKey{c.Device, c.ID}]; f != nil {
			busy[c.Device] += f.meter.worked(&c.Observed, length)
		}
		intervals[c.Device] = interval{length, 1}
	}
	clear(q.lasts)
	for device, in := range intervals {
		if sum := busy[device]; sum > in.length {
			in.part = float64(in.length) / float64(sum)
			intervals[device] = in
		}
		q.lasts[device] = nowNs
	}
	return intervals
}

// worked is how long the client had work in an interval, whatever it says itself.
func (m *meter) worked(o *Observed, length time.Duration) time.Duration {
	return max(0, min(o.Busy-m.busy, length))
}

// charge returns what the client is to be charged for an interval, in nanoseconds.
func (m *meter) charge(o *Observed, in interval, turns bool) float64 {
	took, grown := float64(o.Service-m.service), float64(m.worked(o, in.length))*in.part
	m.service, m.busy = o.Service, o.Busy
	if o.Busy == 0 {
		return took // its busy time is not known
	}
	m.room += grown
	if turns {
		charged := m.room
		m.room = 0
		return charged
	}
	if took == 0 {
		return 0
	}
	charged := min(took, m.room)
	// What is left belongs to the launch on the device now, which began in this interval.
	m.room = min(m.room-charged, grown)
	return charged
}

// sinceNs is the time from one moment to another, none if that came before.
func sinceNs(then, now uint64) time.Duration {
	return time.Duration(min(now-min(then, now), durationMaxNs))
}
