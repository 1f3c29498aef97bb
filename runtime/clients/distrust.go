package clients

import (
	"errors"
	"io"
	"time"

	"github.com/heddle-project/heddle/runtime/errdefs"
	"github.com/heddle-project/heddle/runtime/wire"
)

// A client whose segment or messages cannot be true is evicted. Yet it runs on, and nobody can stop it
// from launching but the interposer in it, by a verdict. So it keeps its place: it is told of new peers
// and verdicts as before, and those it yields to go on telling when they are busy. What ends is that
// anything of it is read. Nobody yields to it any more, nothing is learnt from it, and in its class it
// counts as one that always works.

// distrust evicts c in this way, because of err, and reports whether it could: there must be somebody
// to tell us when it dies.
func (m *Manager) distrust(c *client, err error) bool {
	if !errors.Is(err, errdefs.ErrCorrupt) || c.pidfd == nil {
		return false
	}
	if c.distrusted != nil {
		return true
	}
	c.distrusted = err
	m.opt.Log.Warn("client evicted", "client", c.id, "pid", c.identity.PID, "tenant", c.grant.Tenant, "error", err)
	m.remember(c, err)
	c.verdict.ClearProfile()
	c.measure, c.timeline, c.traces = 0, 0, 0
	c.publishMeasure()
	now := m.opt.Now()
	for _, b := range c.bindings {
		if b != nil {
			b.assumed = now
			m.markDirty(b.device)
		}
	}
	return true
}

// assume takes it that a client that is not read used the device since the last time.
func (b *binding) assume(now uint64) {
	elapsed := time.Duration(now - min(b.assumed, now)) // bounded by the uptime
	b.assumed = now
	b.observed = Observed{
		Service: b.observed.Service + elapsed, Busy: b.observed.Busy + elapsed, Spans: b.observed.Spans, Backlogged: true,
	}
}

// outlast waits for the end of a connection whose client is not listened to any more.
func outlast(conn *wire.Conn) error {
	if _, err := io.Copy(io.Discard, conn.UnixConn); err != nil {
		return err
	}
	return io.EOF
}
