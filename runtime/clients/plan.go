package clients

import "context"

// planLoop plans dirty devices. Changes that come while a plan is made are
// planned together: attaching many clients at once costs few plans.
func (m *Manager) planLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.kick:
		}
		m.planDirty()
	}
}

func (m *Manager) planDirty() {
	m.mu.Lock()
	defer m.mu.Unlock()
	// An eviction while planning can make a device dirty again.
	for len(m.dirty) > 0 {
		dirty := m.dirty
		m.dirty = nil
		for _, d := range dirty {
			d.dirty = false
		}
		m.plan(dirty)
	}
}

// plan is what was decided for the clients of one device.
type plan struct {
	device    *device
	departed  []*client // before it
	byID      map[uint64]*binding
	decisions []Decision
}

// plan asks the Planner about devices and carries out what it says. That of all
// devices is brought in line with gangs before anything of it is carried out.
func (m *Manager) plan(devices []*device) {
	plans := make([]*plan, len(devices))
	for i, d := range devices {
		plans[i] = m.decide(d)
	}
	m.together(plans)
	for _, p := range plans {
		m.carryOut(p)
	}
}

// decide asks the Planner about one device.
func (m *Manager) decide(d *device) *plan {
	p := &plan{device: d, departed: d.departed, byID: make(map[uint64]*binding, len(d.bindings))}
	d.departed = nil
	members := make([]Member, 0, len(d.bindings))
	for _, b := range d.bindings {
		c := b.client
		p.byID[c.id] = b
		observed := b.observed
		if c.gang != nil && !c.gang.complete {
			// Whatever it waits to launch, it has no use for a turn, and nobody falls behind it.
			observed.Backlogged = false
		}
		members = append(members, Member{
			Client: c.id, PID: c.identity.PID, Class: c.priority, Weight: c.weight, Strict: c.grant.Strict, Gang: c.gang != nil,
			Objective: c.objective, Observed: observed,
		})
	}
	p.decisions = m.opt.Planner.Plan(d.uuid, m.opt.Now(), members)
	return p
}

// carryOut lets the clients of a device know what was decided.
func (m *Manager) carryOut(p *plan) {
	d := p.device
	for i := range p.decisions {
		if b := p.byID[p.decisions[i].Client]; b != nil {
			m.apply(b, &p.decisions[i], p.byID)
		}
	}
	m.shareArenas(d)
	// The departed cannot ring any more. Whoever slept on their doorbells has
	// its new verdict by now.
	for _, c := range p.departed {
		if err := c.segment.WakeDoorbells(); err != nil {
			m.opt.Log.Debug("wake sleepers", "client", c.id, "error", err)
		}
		c.keep.release()
	}
	if len(d.bindings) == 0 {
		for class, a := range d.arenas {
			a.release()
			d.arenas[class] = nil
		}
		if m.devices[d.uuid] == d {
			delete(m.devices, d.uuid)
		}
	}
}
