package sched

import (
	"cmp"
	"slices"
	"time"
)

// GangID names a gang: the ranks of one job, which run together or not at all. 0 is none. A smaller
// one came earlier.
type GangID uint64

// Seat is one client on one device with what the policy of that device decided, before gangs were
// looked at. A rank that uses several devices has a seat on each.
type Seat struct {
	Client     ClientID
	Device     DeviceID
	Class      int
	Gang       GangID
	Complete   bool // all ranks of its gang are there
	Closed     bool // the policy has it wait
	Backlogged bool
	// Turn is how long a turn on the device lasts, see [Turn].
	Turn time.Duration
}

// Turn is how long the turns last that the policy of that name gives, one client after the other; 0 =
// it gives none. Where a policy goes by the device time that clients had, one that waits falls behind
// and is let go on each of its devices sooner or later, and no turn has to be given to gangs.
func Turn(policy string, s Settings) time.Duration {
	if policy == "timeslice" {
		return s.Quantum
	}
	return 0
}

// Gangs opens and closes the ranks of gangs together, whatever the policies of their devices decided
// one by one. A gang with a rank that is missing is closed. One with a rank that has to wait is closed,
// too; but where policies give turns ([Turn]), those of two devices need not coincide, and two gangs could
// each hold one and wait for the other. So a gang that got a turn somewhere and could not use it becomes
// a claimant. Claimants get turns of their own, on all their devices at once, in the order in which they
// began to wait: those whose turn it was on these devices wait meanwhile. A gang that ran, in whatever
// turn, owes the others on its devices as much time each before it may have another of its own. Who
// cannot be served yet keeps its devices free of claimants that came later, so that a gang of many
// ranks is not passed by for ever; and the turn of a device that it cannot use is lent to another.
//
// It learns from one plan to the next, from its arguments alone. The zero value is ready.
type Gangs struct {
	gangs map[GangID]*gangTurns
	ran   map[flowKey]uint64 // the plan at which a client that is in no gang last ran
	plan  uint64
	nowNs uint64
}

// gangTurns is what is remembered of a gang.
type gangTurns struct {
	sinceNs     uint64 // when it began to claim, 0 = it does not
	untilNs     uint64 // end of its present turn, 0 = it has none
	debtNs      uint64 // what it owes the others on its devices
	competitors uint64 // of the last plan
	ran         bool   // in the last plan
	plan        uint64
}

// gangPlan is a gang in one plan.
type gangPlan struct {
	id       GangID
	turns    *gangTurns
	seats    []int  // of all
	length   uint64 // of a turn, the longest of its devices
	complete bool
	work     bool
	waits    bool // where no turns are given
	turn     bool // has a turn of its own
	closed   bool
}

// able reports whether a turn of its own would let a gang run.
func (p *gangPlan) able() bool { return p.complete && p.work && !p.waits && p.length != 0 }

// Plan says of each seat whether it is closed. All seats of a device come in one call if there is a
// gang on it, each client and device once.
func (g *Gangs) Plan(nowNs uint64, seats []Seat) []bool {
	closed := make([]bool, len(seats))
	for i := range seats {
		closed[i] = seats[i].Closed
	}
	gangs := g.gather(seats)
	if len(gangs) == 0 {
		return closed
	}
	byDevice := map[DeviceID][]int{}
	for i := range seats {
		byDevice[seats[i].Device] = append(byDevice[seats[i].Device], i)
	}
	passed := nowNs - min(g.nowNs, nowNs)
	g.nowNs = nowNs
	for _, gang := range gangs {
		gang.turns.charge(min(passed, gang.length), gang.length) // a longer pause was one without work
		gang.turns.competitors = gang.competitors(seats, byDevice)
	}
	giveTurns(nowNs, gangs, seats)
	displaced := make([]bool, len(seats))
	for _, gang := range gangs {
		if gang.turn {
			gang.displace(seats, byDevice, displaced)
		}
	}
	for i := range seats {
		closed[i] = closed[i] || displaced[i]
	}
	for _, gang := range gangs {
		gang.closed = !gang.turn && (!gang.complete || slices.ContainsFunc(gang.seats, func(i int) bool { return closed[i] }))
		for _, i := range gang.seats {
			closed[i] = gang.closed
		}
		gang.remember(nowNs, seats)
	}
	g.lend(gangs, seats, byDevice, closed)
	return closed
}

// charge brings a gang's debt up to date.
func (t *gangTurns) charge(passed, turn uint64) {
	if t.ran {
		t.debtNs = min(t.debtNs+passed*t.competitors, turn*t.competitors)
	} else {
		t.debtNs -= min(passed, t.debtNs)
	}
}

// gather collects the gangs in the order in which they came, and forgets those that are gone.
func (g *Gangs) gather(seats []Seat) []*gangPlan {
	if g.gangs == nil {
		g.gangs = map[GangID]*gangTurns{}
	}
	g.plan++
	var gangs []*gangPlan
	byID := map[GangID]*gangPlan{}
	for i := range seats {
		s := &seats[i]
		if s.Gang == 0 {
			continue
		}
		gang := byID[s.Gang]
		if gang == nil {
			turns := g.gangs[s.Gang]
			if turns == nil {
				turns = &gangTurns{}
				g.gangs[s.Gang] = turns
			}
			turns.plan = g.plan
			gang = &gangPlan{id: s.Gang, turns: turns, complete: true}
			byID[s.Gang] = gang
			gangs = append(gangs, gang)
		}
		gang.seats = append(gang.seats, i)
		gang.length = max(gang.length, uint64(s.Turn)) // never negative
		gang.complete = gang.complete && s.Complete
		gang.work = gang.work || s.Backlogged
		gang.waits = gang.waits || s.Closed && s.Turn == 0
	}
	for id, turns := range g.gangs {
		if turns.plan != g.plan {
			delete(g.gangs, id)
		}
	}
	slices.SortFunc(gangs, func(a, b *gangPlan) int { return cmp.Compare(a.id, b.id) })
	return gangs
}

// giveTurns ends turns that are over and gives those that can be given.
func giveTurns(nowNs uint64, gangs []*gangPlan, seats []Seat) {
	taken := map[DeviceID]bool{}
	var claimants []*gangPlan
	for _, gang := range gangs {
		t := gang.turns
		if t.untilNs != 0 && (nowNs >= t.untilNs || !gang.able()) {
			t.untilNs = 0
		}
		switch {
		case t.untilNs != 0:
			gang.turn = true
			gang.take(seats, taken)
		case gang.able() && t.sinceNs != 0:
			claimants = append(claimants, gang)
		}
	}
	slices.SortStableFunc(claimants, func(a, b *gangPlan) int { return cmp.Compare(a.turns.sinceNs, b.turns.sinceNs) })
	for _, gang := range claimants {
		t := gang.turns
		if t.debtNs != 0 {
			continue
		}
		if !gang.meets(seats, taken) {
			gang.turn = true
			t.untilNs, t.sinceNs = nowNs+gang.length, 0
		}
		gang.take(seats, taken)
	}
}

// meets reports whether one of a gang's devices is marked.
func (p *gangPlan) meets(seats []Seat, taken map[DeviceID]bool) bool {
	return slices.ContainsFunc(p.seats, func(i int) bool { return taken[seats[i].Device] })
}

// take marks the devices of a gang.
func (p *gangPlan) take(seats []Seat, taken map[DeviceID]bool) {
	for _, i := range p.seats {
		taken[seats[i].Device] = true
	}
}

// displace marks those that have to wait for a gang's turn: on each device where the gang would have to
// wait, those that would not.
func (p *gangPlan) displace(seats []Seat, byDevice map[DeviceID][]int, displaced []bool) {
	for _, rank := range p.seats {
		r := &seats[rank]
		if !r.Closed {
			continue
		}
		for _, i := range byDevice[r.Device] {
			displaced[i] = displaced[i] || seats[i].Gang != p.id
		}
	}
}

// competitors counts, on the busiest of a gang's devices, who else has work there.
func (p *gangPlan) competitors(seats []Seat, byDevice map[DeviceID][]int) uint64 {
	most := 0
	for _, rank := range p.seats {
		singles := 0
		others := map[GangID]bool{}
		for _, i := range byDevice[seats[rank].Device] {
			switch s := &seats[i]; {
			case !s.Backlogged || s.Gang == p.id:
			case s.Gang == 0:
				singles++
			default:
				others[s.Gang] = true
			}
		}
		most = max(most, singles+len(others))
	}
	return uint64(most)
}

// remember makes a gang with work that had a turn somewhere, and could not use it, a claimant until it
// runs.
func (p *gangPlan) remember(nowNs uint64, seats []Seat) {
	p.turns.ran = !p.closed && p.work
	switch {
	case !p.complete || !p.closed && p.work:
		p.turns.sinceNs = 0
	case p.closed && p.work && p.turns.sinceNs == 0 &&
		slices.ContainsFunc(p.seats, func(i int) bool { return !seats[i].Closed }):
		p.turns.sinceNs = max(nowNs, 1)
	}
}

// lend gives the turn of a gang that cannot use it to the one that waits there for a turn, and ran
// the longest ago.
func (g *Gangs) lend(gangs []*gangPlan, seats []Seat, byDevice map[DeviceID][]int, closed []bool) {
	settled := map[DeviceID]bool{}
	for _, gang := range gangs {
		if gang.turn {
			gang.take(seats, settled)
		}
	}
	for _, gang := range gangs {
		for _, rank := range gang.seats {
			device := seats[rank].Device
			if !gang.closed || seats[rank].Closed || settled[device] {
				continue
			}
			settled[device] = true
			if i := g.borrower(seats, byDevice[device], closed); i >= 0 {
				closed[i] = false
			}
		}
	}
	g.remember(seats, closed)
}

// borrower returns the one of a device's seats to which a turn is lent, -1 = none.
func (g *Gangs) borrower(seats []Seat, device []int, closed []bool) int {
	best := -1
	for _, i := range device {
		s := &seats[i]
		switch {
		case !s.Backlogged:
		case !closed[i]:
			return -1 // somebody works here
		case s.Gang != 0:
		case best < 0 || g.before(s, &seats[best]):
			best = i
		}
	}
	return best
}

func (g *Gangs) before(a, b *Seat) bool {
	return cmp.Or(
		cmp.Compare(g.ran[flowKey{a.Device, a.Client}], g.ran[flowKey{b.Device, b.Client}]),
		cmp.Compare(a.Class, b.Class), cmp.Compare(a.Client, b.Client),
	) < 0
}

// remember notes who runs, of those that are in no gang.
func (g *Gangs) remember(seats []Seat, closed []bool) {
	ran := make(map[flowKey]uint64, len(seats))
	for i := range seats {
		s := &seats[i]
		key := flowKey{s.Device, s.Client}
		switch {
		case s.Gang != 0:
		case s.Backlogged && !closed[i]:
			ran[key] = g.plan
		case g.ran[key] != 0:
			ran[key] = g.ran[key]
		}
	}
	g.ran = ran
}
