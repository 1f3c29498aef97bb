package sched

import (
	"cmp"
	"slices"
	"time"
)

const (
	// Classes is the number of scheduling classes; 0 is the most urgent.
	Classes = 10
	// PeersMax is how many clients the interposer can watch for one client, all its devices
	// together. Beyond it the daemon mediates.
	PeersMax = 256
)

// ClientID names a client for as long as it is attached.
type ClientID uint64

// DeviceID names a device. A policy compares devices, it looks into none.
type DeviceID string

// Client is one client on one device. A client that uses several devices appears once for each.
type Client struct {
	ID     ClientID
	Device DeviceID
	Class  int // 0 to Classes-1; anything else counts as the nearest class
	Weight int
	Strict bool // must not see its neighbours' segments
	Gang   bool // is a rank of a job that opens and closes as one

	// Demand is what its workload asks of a device, as far as it is known.
	Demand Demand
	// SLO is the slowdown that the client accepts, 1.02 for two percent; 0 = no objective.
	SLO float64
	// Observed is what was measured since the client came.
	Observed Observed
}

// Demand says how a workload uses a device: figures from its kernels' profiles, weighted by their
// time. The zero value is a workload that nobody has measured.
type Demand struct {
	Known   bool
	PeakSMs int           // what most of its time is satisfied with
	DRAM    float64       // mean share of the device's bandwidth while it runs, 0 to 1
	Longest time.Duration // the longest of its kernels
	// Spread is how far the times of its launches lie from what is predicted of them: a standard
	// deviation, as a part of the prediction. It is infinite while it was not measured.
	Spread float64
	// Gap is how long the device is idle between its launches, as predicted: the median of the gaps
	// that are worth filling. It is 0 where most of the idle time cannot be predicted.
	Gap time.Duration
	// Vector and Sensitivity hold what was measured offline, if it was.
	Vector      Vector
	Sensitivity Sensitivity
}

// Observed is what a client did. The times only grow.
type Observed struct {
	Service time.Duration // device time consumed, corrected by what was measured
	// Busy is the time in which it had work on the device and was not kept from launching more. Where
	// several had, each of their launches seems to take as long as those of the others between them,
	// too: see [FairQueue]. A client whose Busy does not grow is charged for what Service says.
	Busy       time.Duration
	Backlogged bool // has work outstanding, or waits to launch
	// Waiting is how long its launch will take that waits for peers or the gap token, the longest of
	// several; 0 = none waits for others.
	Waiting time.Duration
	// Measured is how long those of its kernels took that were measured, and Expected what their
	// profiles say.
	Measured, Expected time.Duration
}

// Device is what a policy knows of a device. The zero value is one of which nothing is known.
type Device struct {
	Limits
	Shared bool // kernels of different clients run side by side (MPS, or one process)
}

// View is all that a policy may know.
type View struct {
	NowNs   uint64 // of the common clock
	Clients []Client
	Devices map[DeviceID]Device
}

// Parameters are the gate's numbers for a client. See the contract for their meaning.
type Parameters struct {
	Window    time.Duration
	Estimate  time.Duration
	Quiet     time.Duration
	MaxHold   time.Duration
	MarginPPM uint32

	CoRunBound time.Duration // of own outstanding work while a client of CoRun is busy
	MinGap     time.Duration // shorter predicted gaps are not filled
	MaxBlock   time.Duration // longer launches are held, 0 = none are
	Token      time.Duration // longest time for which the gap token may be kept

	KeepPPM uint32 // of the device's time, for the clients of the class with yield points together
}

// Bound says which kernels may run beside a peer: those that ask for no more than this. The zero
// value lets none.
type Bound struct {
	SMs  int
	DRAM float64 // of the device's bandwidth, 0 to 1
}

// Verdict is what a policy decided for one client on one device.
type Verdict struct {
	Client ClientID
	Device DeviceID
	Class  int
	Weight int
	// Gate holds GateClosed where the policy itself has the client wait; the daemon adds it for
	// reasons of its own.
	Gate       Gate
	Parameters Parameters
	// Yields are the clients of the same device that this one yields to, most urgent first.
	Yields []ClientID
	// CoRun are those of Yields beside which its kernels within Beside may run.
	CoRun  []ClientID
	Beside Bound
	// StreamPriority is that of streams which the client creates: 1 greatest, -1 least, 0 as it says.
	StreamPriority int32
	// Mediated says that the client must not, or cannot, watch Yields itself: the daemon runs
	// [Decide] for it, with GateYield, and closes and opens its gate.
	Mediated bool
}

// Policy plans verdicts, in the order device, class, client. An implementation may learn from one
// plan to the next, from the views alone: the same views in the same order give the same verdicts.
// It is used by one goroutine at a time.
type Policy interface {
	// Name is what configuration files call the policy.
	Name() string
	// Interval is how often the policy wants to plan beyond the times at which clients come, go or
	// change; 0 = not.
	Interval() time.Duration
	// Plan returns one verdict for every client and device of the view.
	Plan(View) []Verdict
}

var (
	_ Policy = Priority{}
	_ Policy = None{}
)

// None lets everybody run whenever they like: what the device makes of it is its own affair. It is
// the baseline for measurements, and the way to keep the accounting without the scheduling.
type None struct{}

// Name implements [Policy].
func (None) Name() string { return "none" }

// Interval implements [Policy].
func (None) Interval() time.Duration { return 0 }

// Plan implements [Policy].
func (None) Plan(view View) []Verdict {
	verdicts := make([]Verdict, 0, len(view.Clients))
	for _, c := range ordered(view) {
		verdicts = append(verdicts, Verdict{Client: c.ID, Device: c.Device, Class: c.Class, Weight: c.Weight})
	}
	return verdicts
}

// Priority is the policy of static classes: on each device a client yields to every client of a
// strictly more urgent class. Between clients of one class it decides nothing: there the driver's
// own order holds, first come, first served.
type Priority struct {
	// Classes holds the parameters for the clients of each class.
	Classes [Classes]Parameters
}

// Name implements [Policy].
func (Priority) Name() string { return "priority" }

// Interval implements [Policy].
func (Priority) Interval() time.Duration { return 0 }

// Plan implements [Policy]. Clients of one class on one device share the memory of their Yields.
func (p Priority) Plan(view View) []Verdict {
	clients := ordered(view)
	verdicts := make([]Verdict, 0, len(clients))
	watched := map[ClientID]int{} // peers over all devices: an interposer has one table for them
	for rest := clients; len(rest) != 0; {
		group := leading(rest, func(c Client) bool { return c.Device == rest[0].Device })
		rest = rest[len(group):]
		ids := make([]ClientID, len(group))
		above := 0 // clients of the group in classes before the present one
		for i, c := range group {
			ids[i] = c.ID
			if i != 0 && c.Class != group[i-1].Class {
				above = i
			}
			v := Verdict{
				Client: c.ID, Device: c.Device, Class: c.Class, Weight: c.Weight,
				Parameters: p.Classes[c.Class], Yields: ids[:above:above], Mediated: c.Strict && above != 0,
			}
			if above != 0 {
				v.Gate |= GateWindow
			}
			if group[len(group)-1].Class != c.Class {
				v.Gate |= GatePublish
			}
			watched[c.ID] += above
			verdicts = append(verdicts, v)
		}
	}
	for i := range verdicts {
		v := &verdicts[i]
		if len(v.Yields) == 0 {
			continue
		}
		v.Mediated = v.Mediated || watched[v.Client] > PeersMax
		if !v.Mediated {
			v.Gate |= GateYield
		}
	}
	return verdicts
}

// ordered returns the clients by device, class and id, each once for a device, with classes inside
// the bounds.
func ordered(view View) []Client {
	clients := slices.Clone(view.Clients)
	for i := range clients {
		clients[i].Class = max(0, min(clients[i].Class, Classes-1))
	}
	slices.SortStableFunc(clients, func(a, b Client) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.ID, b.ID))
	})
	clients = slices.CompactFunc(clients, func(a, b Client) bool {
		return a.Device == b.Device && a.ID == b.ID
	})
	slices.SortStableFunc(clients, func(a, b Client) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Class, b.Class))
	})
	return clients
}

// leading returns the first clients for which f holds.
func leading(clients []Client, f func(Client) bool) []Client {
	for i, c := range clients {
		if !f(c) {
			return clients[:i]
		}
	}
	return clients
}
