package clients

import (
	"context"
	"slices"
	"time"
)

// replanCalm is how often devices are looked at on which nobody is at work. The first work after a
// pause meets the last plan for that long.
const replanCalm = 20 * time.Millisecond

// replanLoop lets a planner that adapts plan anew at its interval, for devices whose clients are at
// work.
func (m *Manager) replanLoop(ctx context.Context) {
	interval := m.opt.Planner.Interval()
	if interval <= 0 {
		return
	}
	timer := time.NewTimer(interval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		pace := interval
		if !m.replan() {
			pace = max(interval, replanCalm)
		}
		timer.Reset(pace)
	}
}

// replan plans the devices on which at least two clients meet and one is at work, and reports
// whether there are any.
func (m *Manager) replan() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	any := false
	for _, d := range m.devices {
		if len(d.bindings) < 2 || !m.observe(d) {
			continue
		}
		any = true
		m.plan(d)
	}
	// An eviction on the way has kicked the other loop.
	return any
}

// observe reads what the clients of a device published, and reports whether one is at work.
func (m *Manager) observe(d *device) bool {
	working := false
	for _, b := range slices.Clone(d.bindings) {
		if b.client.gone {
			continue
		}
		s, err := b.client.segment.Device(b.slot)
		if err != nil {
			m.detachLocked(b.client, err)
			continue
		}
		b.observed = Observed{
			Service:    s.DeviceTime,
			Backlogged: s.BusyStreams != 0 || s.Want != 0 || s.HeldSince != 0,
		}
		working = working || b.observed.Backlogged
	}
	return working
}
