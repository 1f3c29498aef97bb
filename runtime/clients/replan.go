package clients

import (
	"context"
	"slices"
	"time"

	"github.com/heddle-project/heddle/runtime/shm"
)

// replanCalm is how often devices are looked at on which nobody is at work. The first work after a
// pause meets the last plan for that long.
const replanCalm = 20 * time.Millisecond

// replanLoop lets a planner that adapts plan anew at its interval, for devices whose clients are at
// work. A planner that needs no more plans is asked again after each Replan.
func (m *Manager) replanLoop(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.replanned:
		case <-timer.C:
		}
		interval := m.opt.Planner.Interval()
		if interval <= 0 {
			continue
		}
		if !m.replan() {
			interval = max(interval, replanCalm)
		}
		timer.Reset(interval)
	}
}

// Replan plans all devices anew, because the planner would decide otherwise now.
func (m *Manager) Replan() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range m.devices {
		m.markDirty(d)
	}
	select {
	case m.replanned <- struct{}{}:
	default: // the loop has been told already
	}
}

// replan plans the devices on which at least two clients meet, or a gang is, and one is at work, and
// reports whether there are any.
func (m *Manager) replan() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	var working []*device
	for _, d := range m.devices {
		if (len(d.bindings) >= 2 || d.ganged()) && m.observe(d) {
			working = append(working, d)
		}
	}
	m.plan(working)
	// An eviction on the way has kicked the other loop.
	return len(working) != 0
}

// observe reads what the clients of a device published, and reports whether one is at work.
func (m *Manager) observe(d *device) bool {
	working := false
	now := m.opt.Now()
	for _, b := range slices.Clone(d.bindings) {
		if b.client.gone {
			continue
		}
		if b.client.distrusted != nil {
			b.assume(m.opt.Now())
			working = true
			continue
		}
		s, err := b.client.segment.Device(b.slot)
		if err != nil {
			m.detachLocked(b.client, err)
			continue
		}
		b.observed = Observed{
			Service: s.DeviceTime,
			Busy:    s.Busy,
			Worked:  b.observed.Worked + b.worked(&s, now),
			// The doorbell changes when a span ends. That it wraps is no matter in this much time.
			Spans:      b.observed.Spans + uint64(s.Doorbell-b.doorbell),
			Backlogged: s.BusyStreams != 0 || s.Want != 0 || s.HeldSince != 0,
			Waiting:    s.Want,
		}
		b.doorbell = s.Doorbell
		working = working || b.observed.Backlogged
	}
	return working
}

// worked is for how long since the last reading the client had work on the device and was not held. Who
// is held with work on the device does not learn when that ends.
func (b *binding) worked(s *shm.DeviceSnapshot, now uint64) time.Duration {
	busy, held := s.BusySpan(now), s.HeldSpan(now)
	worked := busy - b.busy - max(0, held-b.held)
	b.busy, b.held = busy, held
	return max(0, worked)
}
