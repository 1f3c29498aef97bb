package clients

import (
	"slices"
	"time"

	"github.com/heddle-project/heddle/runtime/abi"
	"github.com/heddle-project/heddle/runtime/wire"
)

// gangOverdue is how long a gang may wait for its ranks before the log says that something may be
// wrong: longer than a big job takes to start, shorter than a person waits.
const gangOverdue = 30 * time.Second

// gang is the ranks of one job, which run together or not at all. Everything here is guarded by the
// Manager's lock.
type gang struct {
	key      gangKey
	id       uint64 // a smaller one came earlier
	members  map[*client]bool
	complete bool
	overdue  *time.Timer
}

// gangKey says which clients belong together: those of one user and tenant that name the same gang,
// and agree on how many they are.
type gangKey struct {
	uid    int
	tenant string
	name   string
	size   int
}

// Seat is one client on one device, where gangs are.
type Seat struct {
	Client     uint64
	Device     wire.UUID
	Class      int
	Gang       uint64 // 0 = none; a smaller one came earlier
	Complete   bool   // all ranks of the gang are there
	Closed     bool   // Plan had it wait
	Backlogged bool
}

// ranks counts the members that have opened a device, and know what was decided for it.
func (g *gang) ranks() int {
	n := 0
	for c := range g.members {
		if slices.ContainsFunc(c.bindings[:], func(b *binding) bool { return b != nil && b.planned }) {
			n++
		}
	}
	return n
}

// joinGang enters a client into the gang that it names.
func (m *Manager) joinGang(c *client) {
	if c.hello.Gang == "" {
		return
	}
	key := gangKey{c.identity.UID, c.grant.Tenant, c.hello.Gang, int(c.hello.GangSize)} // at most abi.GangMax
	g := m.gangs[key]
	if g == nil {
		m.lastGang++
		g = &gang{key: key, id: m.lastGang, members: map[*client]bool{}}
		m.gangs[key] = g
		m.awaitGang(g)
	}
	g.members[c] = true
	c.gang = g
}

// leaveGang takes a client out of its gang; the last one takes the gang along.
func (m *Manager) leaveGang(c *client) {
	g := c.gang
	if g == nil {
		return
	}
	delete(g.members, c)
	if len(g.members) == 0 {
		g.overdue.Stop()
		delete(m.gangs, g.key)
	}
}

// awaitGang says so when a gang has been incomplete for long.
func (m *Manager) awaitGang(g *gang) {
	if g.overdue != nil {
		g.overdue.Stop()
	}
	g.overdue = time.AfterFunc(gangOverdue, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.gangs[g.key] == g && !g.complete {
			m.opt.Log.Warn("gang still waits for its ranks",
				"gang", g.key.name, "tenant", g.key.tenant, "ranks", g.ranks(), "size", g.key.size)
		}
	})
}

// muster finds out which gangs are complete.
func (m *Manager) muster() {
	for _, g := range m.gangs {
		ranks := g.ranks()
		if complete := ranks >= g.key.size; complete != g.complete {
			g.complete = complete
			log := m.opt.Log.With("gang", g.key.name, "tenant", g.key.tenant, "ranks", ranks, "size", g.key.size)
			if complete {
				g.overdue.Stop()
				log.Info("gang complete")
				continue
			}
			log.Warn("gang has lost a rank, the others wait")
			m.awaitGang(g)
		}
	}
}

// ganged reports whether a rank of a gang is on the device.
func (d *device) ganged() bool {
	return slices.ContainsFunc(d.bindings, func(b *binding) bool { return b.client.gang != nil })
}

// together lets ranks of gangs be open on all devices or on none. Plans that were made just now are
// changed where they stand against that; on other devices it is carried out at once.
func (m *Manager) together(plans []*plan) {
	decided := map[*binding]*Decision{}
	for _, p := range plans {
		for i := range p.decisions {
			decision := &p.decisions[i]
			if b := p.byID[decision.Client]; b != nil {
				decided[b] = decision
				b.planned, b.waits = true, decision.Verdict.Gate&abi.GateClosed != 0
			}
		}
	}
	if len(m.gangs) == 0 || len(plans) == 0 {
		return
	}
	m.muster()
	seated, seats := m.seats()
	closed := m.opt.Planner.Together(m.opt.Now(), seats)
	// First those that close: a gang opens when its place is free.
	for _, closing := range []bool{true, false} {
		for i, b := range seated {
			switch decision := decided[b]; {
			case closed[i] != closing:
			case decision != nil && closing:
				decision.Verdict.Gate |= abi.GateClosed
			case decision != nil:
				decision.Verdict.Gate &^= abi.GateClosed
			case b.paused != closing:
				m.pause(b, closing)
			}
		}
	}
}

// seats lists all clients of devices with gangs.
func (m *Manager) seats() ([]*binding, []Seat) {
	var seated []*binding
	var seats []Seat
	for _, d := range m.devices {
		if !d.ganged() {
			continue
		}
		for _, b := range d.bindings {
			c := b.client
			if c.gone || !b.planned {
				continue
			}
			s := Seat{
				Client: c.id, Device: d.uuid, Class: c.priority, Closed: b.waits, Backlogged: b.observed.Backlogged,
			}
			if c.gang != nil {
				s.Gang, s.Complete = c.gang.id, c.gang.complete
			}
			seated, seats = append(seated, b), append(seats, s)
		}
	}
	return seated, seats
}

// pause closes or opens a binding's gate for the planner, between two plans for its device.
func (m *Manager) pause(b *binding, closed bool) {
	b.paused = closed
	v := b.verdict
	switch {
	case b.mediated:
		m.mediate(b, &v)
	case closed:
		v.Gate |= abi.GateClosed
	default:
		v.Gate &^= abi.GateClosed
	}
	m.publish(b, &v)
}
