package clients

import (
	"context"
	"slices"
	"time"

	"github.com/heddle-project/heddle/runtime/abi"
	"github.com/heddle-project/heddle/runtime/shm"
)

const (
	// mediateEvery is how often the gates of mediated clients are looked at:
	// often enough that a held client loses little of a pause of its betters,
	// seldom enough that it costs about a hundredth of a core.
	mediateEvery = 500 * time.Microsecond
	// mediateIdle is the pace while there is nobody to mediate for.
	mediateIdle = 50 * time.Millisecond
)

// mediateLoop opens and closes the gates of clients that see no peers. It
// costs nothing but a look at a list when there are none.
func (m *Manager) mediateLoop(ctx context.Context) {
	timer := time.NewTimer(mediateIdle)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if m.mediateAll() {
			timer.Reset(mediateEvery)
		} else {
			timer.Reset(mediateIdle)
		}
	}
}

// mediateAll looks at every mediated binding, and reports whether there is one
// with somebody to yield to.
func (m *Manager) mediateAll() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	any := false
	for _, d := range m.devices {
		for _, b := range slices.Clone(d.bindings) {
			if !b.mediated || len(b.watched) == 0 || b.client.gone {
				continue
			}
			any = true
			v := b.verdict
			m.mediate(b, &v)
			m.publish(b, &v)
		}
	}
	return any
}

// mediate sets or clears the closed bit in v by what the peers of b do now.
func (m *Manager) mediate(b *binding, v *shm.DeviceVerdict) {
	v.Gate &^= abi.GateClosed
	peers := make([]GatePeer, 0, len(b.watched))
	for _, h := range b.watched {
		if h.client.gone {
			continue
		}
		s, err := h.client.segment.Device(h.slot)
		if err != nil {
			// Its own fault, and the end of it. Its absence makes b's device
			// dirty, so that b is planned anew.
			m.detachLocked(h.client, err)
			continue
		}
		peers = append(peers, GatePeer{
			Busy:         s.BusyStreams,
			CoRun:        slices.Contains(b.corun, h.client.id),
			IdleSinceNs:  s.IdleSince,
			NextLaunchNs: s.NextLaunch,
		})
	}
	now := m.opt.Now()
	yielding := *v
	yielding.Gate |= abi.GateYield
	if m.opt.Planner.Open(&yielding, peers, now, b.heldSince) {
		b.closed, b.heldSince = false, 0
		return
	}
	v.Gate |= abi.GateClosed
	if !b.closed {
		b.closed, b.heldSince = true, max(now, 1)
	}
}
