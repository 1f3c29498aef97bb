package clients

import (
	"os"
	"slices"
	"time"

	"github.com/heddle-project/heddle/runtime/abi"
	"github.com/heddle-project/heddle/runtime/errdefs"
	"github.com/heddle-project/heddle/runtime/shm"
	"github.com/heddle-project/heddle/runtime/wire"
)

// device is one device that clients have opened, as a place where they meet.
// Everything here is guarded by the Manager's lock.
type device struct {
	uuid     wire.UUID
	bindings []*binding
	arenas   [abi.ClassesMax]*arena
	departed []*client // whose sleepers still have to be woken
	dirty    bool
}

// binding is one client on one device.
type binding struct {
	client *client
	device *device
	slot   int // of the device in the client's segments

	peers   map[*binding]int // whom it watches → peer slot
	member  *arena           // where it may sleep
	index   int              // of its bit there
	reads   [abi.ClassesMax]*arena
	verdict shm.DeviceVerdict // as last published

	observed Observed      // as last read
	doorbell uint32        // as last read
	busy     time.Duration // span up to the last reading ...
	held     time.Duration // ... and time held
	assumed  uint64        // time until which a client that is not read was taken to be at work
	beside   Beside        // as last planned
	taught   activity      // as of the last lesson
	active   bool          // did something since the lesson before that
	apart    int           // others that did and whose kernels do not run beside its own, by the last plan

	watched []*binding // as last planned: to whom it yields, and of those
	corun   []uint64   // beside whose kernels its own may run

	// For mediated bindings.
	mediated  bool
	closed    bool
	heldSince uint64
	paused    bool // by the planner, whatever its peers do

	// For gangs.
	planned bool // a plan has been made for it
	waits   bool // as the plan for its device has it, whatever its gang does
}

// arena is the segment of one class on one device, and which of its places are
// taken.
type arena struct {
	*shm.Arena
	keep         *shared
	readOnly     *os.File // for those who only look
	keepReadOnly *shared
	class        int
	taken        slots
}

// bind enters a client on a device that it opened.
func (m *Manager) bind(c *client, msg wire.Device) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.gone {
		return nil
	}
	for _, other := range c.bindings {
		if other != nil && (other.slot == int(msg.Slot) || other.device.uuid == msg.UUID) {
			return errdefs.Errorf(errdefs.Corrupt, "DEVICE: slot %d or its device was opened before", msg.Slot)
		}
	}
	d := m.devices[msg.UUID]
	if d == nil {
		d = &device{uuid: msg.UUID}
		m.devices[msg.UUID] = d
	}
	b := &binding{client: c, device: d, slot: int(msg.Slot), peers: map[*binding]int{}, assumed: m.opt.Now()}
	c.bindings[b.slot] = b
	d.bindings = append(d.bindings, b)
	m.markDirty(d)
	select {
	case m.teach <- struct{}{}:
	default: // the loop has been told already
	}
	return nil
}

// unbind takes a client that is gone off a device.
func (m *Manager) unbind(b *binding) {
	d := b.device
	d.bindings = slices.DeleteFunc(d.bindings, func(other *binding) bool { return other == b })
	b.leaveArena()
	b.client.keep.retain() // until its sleepers are woken
	d.departed = append(d.departed, b.client)
	m.markDirty(d)
}

func (m *Manager) markDirty(d *device) {
	if !d.dirty {
		d.dirty = true
		m.dirty = append(m.dirty, d)
	}
	select {
	case m.kick <- struct{}{}:
	default: // somebody has kicked already
	}
}

// apply brings peers and verdict of one binding in line with a decision: new
// peers are sent, then the verdict that speaks of them is published, then old
// peers are taken away.
func (m *Manager) apply(b *binding, decision *Decision, byID map[uint64]*binding) {
	c := b.client
	if c.gone {
		return
	}
	v := decision.Verdict
	v.Yields, v.CoRun = shm.Peers{}, shm.Peers{}
	b.paused = v.Gate&abi.GateClosed != 0
	b.mediated, b.watched, b.corun = decision.Mediated, b.watched[:0], decision.CoRun
	b.beside = decision.Beside
	wanted := make(map[*binding]bool, len(decision.Yields))
	for _, id := range decision.Yields {
		h := byID[id]
		if h == nil || h == b || h.client.distrusted != nil {
			continue
		}
		b.watched = append(b.watched, h)
		if b.mediated {
			continue
		}
		slot, ok := m.addPeer(b, h)
		if !ok {
			// No room in its table: from here on heddled watches for it.
			b.mediated = true
			continue
		}
		wanted[h] = true
		v.Yields.Add(slot)
		if slices.Contains(decision.CoRun, id) {
			v.CoRun.Add(slot)
		}
	}
	if c.gone {
		return // its queue was full: it was evicted on the way
	}
	if len(b.watched) == 0 {
		v.Gate &^= abi.GateYield // those that there were are not trusted any more
	}
	if b.mediated {
		clear(wanted)
		v.Yields, v.CoRun = shm.Peers{}, shm.Peers{}
		v.Gate &^= abi.GateYield
		m.mediate(b, &v)
		select {
		case m.mediated <- struct{}{}:
		default: // the loop has been told already
		}
	} else {
		b.closed, b.heldSince = false, 0
	}
	m.publish(b, &v)
	for h, slot := range b.peers {
		if !wanted[h] {
			delete(b.peers, h)
			c.slots.Remove(slot)
			m.send(c, outgoing{message: wire.Peer{
				Op: abi.PeerRemove, Slot: uint32(slot), DeviceSlot: uint32(b.slot), // both are small
			}})
		}
	}
}

// publish makes v the verdict of a binding, unless it is that already.
func (m *Manager) publish(b *binding, v *shm.DeviceVerdict) {
	if b.client.verdict.Bound(b.slot) && b.verdict == *v {
		return
	}
	b.verdict = *v
	if err := b.client.verdict.Publish(b.slot, v); err != nil {
		m.opt.Log.Error("publish verdict", "client", b.client.id, "error", err)
	}
}

// addPeer makes h visible to b and returns its peer slot there.
func (m *Manager) addPeer(b, h *binding) (int, bool) {
	if slot, ok := b.peers[h]; ok {
		return slot, true
	}
	c := b.client
	slot, ok := c.slots.Free()
	if !ok {
		return 0, false
	}
	c.slots.Add(slot)
	b.peers[h] = slot
	m.send(c, outgoing{
		message: wire.Peer{
			Op: abi.PeerAdd, Slot: uint32(slot), DeviceSlot: uint32(b.slot), PeerSlot: uint32(h.slot), // all are small
		},
		file: h.client.segment.File(),
		keep: h.client.keep,
	})
	return slot, true
}

// send queues a message; a client that lets its queue grow full is evicted.
func (m *Manager) send(c *client, out outgoing) {
	if !c.out.put(out) {
		m.detachLocked(c, errdefs.Errorf(errdefs.Exhausted, "client does not read: %d messages wait for it", outboxMax))
	}
}
