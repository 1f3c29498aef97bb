package clients

import (
	"context"

	"github.com/heddle-project/heddle/runtime/abi"
)

// Regrant asks Admission anew what the living clients that match may have, after an administrator
// set something or undid it, and returns those clients as they are then. Hints move inside the new
// grant as they did inside the old one.
func (m *Manager) Regrant(ctx context.Context, match func(*Info) bool) []Info {
	// First the number, then the list: who attaches in between finds the number changed.
	m.regrants.Add(1)
	return m.regrant(ctx, match)
}

func (m *Manager) regrant(ctx context.Context, match func(*Info) bool) []Info {
	// One at a time, so that the answer that was asked for last is the one that stays.
	m.regranting.Lock()
	defer m.regranting.Unlock()
	var infos []Info
	for _, c := range m.matching(match) {
		// Not under the Manager's lock: an answer may need a name from over the network.
		grant, err := m.ask(ctx, c)
		if err != nil {
			// The rules are the ones that let it in, and it is the same client.
			m.opt.Log.Warn("client keeps what it was granted", "client", c.id, "error", err)
			continue
		}
		if info, ok := m.grantAnew(c, grant); ok {
			infos = append(infos, info)
		}
	}
	return infos
}

// ask fetches what a client may have.
func (m *Manager) ask(ctx context.Context, c *client) (Grant, error) {
	grant, err := m.opt.Admission.Admit(ctx, &Applicant{Identity: c.identity, ID: c.id, Name: c.hello.Name})
	// The common clock is shifted for such a client, so it cannot compare its
	// peers' times with its own.
	if c.identity.ForeignTime && m.opt.Clock.Source == abi.ClockMonotonic {
		grant.Strict = true
	}
	return grant, err
}

// matching are the living clients that match.
func (m *Manager) matching(match func(*Info) bool) []*client {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []*client
	for _, c := range m.clients {
		if info := c.info(); match(&info) {
			list = append(list, c)
		}
	}
	return list
}

// grantAnew replaces what a client was granted, if it still lives.
func (m *Manager) grantAnew(c *client, grant Grant) (Info, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.gone {
		return Info{}, false
	}
	// Whose it is does not change: its gang and what is learnt of it go by that.
	grant.Tenant = c.grant.Tenant
	c.grant = grant
	c.resolve()
	for _, b := range c.bindings {
		if b != nil {
			m.markDirty(b.device)
		}
	}
	info := c.info()
	c.look(&info)
	return info, true
}

// Apply replaces what a grant says by what an administrator set for its
// tenant.
func (g *Grant) Apply(o Override) {
	if o.Priority != nil {
		g.Priority, g.MaxPriority = *o.Priority, *o.Priority
	}
	if o.Weight != nil {
		g.Weight, g.MaxWeight = *o.Weight, *o.Weight
	}
	if o.Objective != nil {
		g.Objective = *o.Objective
	}
}
