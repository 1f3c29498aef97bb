package clients

import (
	"context"
	"slices"
	"time"

	"github.com/heddle-project/heddle/runtime/abi"
	"github.com/heddle-project/heddle/runtime/shm"
)

const (
	// mediateBusy is how often the gates of mediated clients are looked at
	// while one of their betters works, or worked a moment ago: often enough
	// that a held client loses little of a pause, at a few hundredths of a core.
	mediateBusy = 500 * time.Microsecond
	// mediateCalm is the pace when their betters have been idle for calmAfter.
	// The first work after a long pause can meet that much of a lower class.
	mediateCalm = 5 * time.Millisecond
	calmAfter   = 100 * time.Millisecond
)

// mediateLoop opens and closes the gates of clients that see no peers. It
// sleeps while there are none.
func (m *Manager) mediateLoop(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.mediated:
		case <-timer.C:
		}
		if pace := m.mediateAll(); pace > 0 {
			timer.Reset(pace)
		}
	}
}

// mediateAll looks at every mediated binding, and tells when to look again; 0 =
// there is nobody to mediate for.
func (m *Manager) mediateAll() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	pace := time.Duration(0)
	for _, d := range m.devices {
		for _, b := range slices.Clone(d.bindings) {
			if !b.mediated || len(b.watched) == 0 || b.client.gone {
				continue
			}
			v := b.verdict
			if next := m.mediate(b, &v); pace == 0 || next < pace {
				pace = next
			}
			m.publish(b, &v)
		}
	}
	return pace
}

// mediate sets or clears the closed bit in v by what the peers of b do now, and
// tells when to look again.
func (m *Manager) mediate(b *binding, v *shm.DeviceVerdict) time.Duration {
	now := m.opt.Now()
	pace := mediateCalm
	v.Gate &^= abi.GateClosed
	peers := make([]GatePeer, 0, len(b.watched))
	for _, h := range b.watched {
		if h.client.gone || h.client.distrusted != nil {
			continue
		}
		s, err := h.client.segment.Device(h.slot)
		if err != nil {
			// Its own fault, and the end of it. Its absence makes b's device
			// dirty, so that b is planned anew.
			m.detachLocked(h.client, err)
			continue
		}
		if s.BusyStreams != 0 || s.IdleSince != 0 && now-min(s.IdleSince, now) < uint64(calmAfter) {
			pace = mediateBusy
		}
		peers = append(peers, GatePeer{
			Busy:         s.BusyStreams,
			CoRun:        slices.Contains(b.corun, h.client.id),
			IdleSinceNs:  s.IdleSince,
			NextLaunchNs: s.NextLaunch,
			WantNs:       uint64(s.Want), // a view refuses negative ones
		})
	}
	yielding := *v
	yielding.Gate |= abi.GateYield
	if m.opt.Planner.Open(&yielding, peers, now, b.heldSince) {
		b.closed, b.heldSince = false, 0
		if b.paused {
			v.Gate |= abi.GateClosed
		}
		return pace
	}
	v.Gate |= abi.GateClosed
	if !b.closed {
		b.closed, b.heldSince = true, max(now, 1)
	}
	return pace
}
