package clients

import (
	"slices"

	"github.com/heddle-project/heddle/runtime/abi"
	"github.com/heddle-project/heddle/runtime/shm"
	"github.com/heddle-project/heddle/runtime/wire"
)

func newArena(generation uint64, class int) (*arena, error) {
	a, err := shm.NewArena(generation)
	if err != nil {
		return nil, err
	}
	file, err := a.ReadOnly()
	if err != nil {
		_ = a.Close()
		return nil, err
	}
	return &arena{Arena: a, class: class, keep: share(a), readOnly: file, keepReadOnly: share(file)}, nil
}

func (a *arena) release() {
	if a == nil {
		return
	}
	a.keep.release()
	a.keepReadOnly.release()
}

// shareArenas gives every client that watches others a place to say that it
// sleeps, and every client that is watched the arenas of those below it.
func (m *Manager) shareArenas(d *device) {
	// A client that is evicted on the way leaves the list.
	bindings := slices.Clone(d.bindings)
	for _, b := range bindings {
		if b.client.gone {
			continue
		}
		if b.verdict.Gate&abi.GateYield == 0 || b.member != nil && b.member.class == b.client.priority {
			continue
		}
		b.leaveArena()
		if a := m.arenaOf(d, b.client.priority); a != nil {
			m.joinArena(b, a)
		}
	}
	for _, b := range bindings {
		if b.client.gone || b.verdict.Gate&abi.GatePublish == 0 {
			continue
		}
		for class := b.client.priority + 1; class < abi.ClassesMax; class++ {
			if a := d.arenas[class]; a != nil && b.reads[class] != a {
				if b.member == a {
					b.leaveArena() // from now on it only looks at it
				}
				b.reads[class] = a
				m.send(b.client, outgoing{
					message: wire.Arena{
						DeviceSlot: uint32(b.slot), Priority: uint32(class), Member: abi.MemberNone, // both are small
					},
					file: a.readOnly,
					keep: a.keepReadOnly,
				})
			}
		}
	}
}

func (m *Manager) arenaOf(d *device, class int) *arena {
	if d.arenas[class] == nil {
		a, err := newArena(m.opt.Generation, class)
		if err != nil {
			// Its clients still wake up by themselves, only later.
			m.opt.Log.Error("make arena", "error", err)
			return nil
		}
		d.arenas[class] = a
	}
	return d.arenas[class]
}

// joinArena gives b the first free place. Without one it gets no arena, and
// finds out by its own time limits that it may run.
func (m *Manager) joinArena(b *binding, a *arena) {
	index, ok := a.taken.Free()
	if !ok {
		return
	}
	a.taken.Add(index)
	b.member, b.index = a, index
	b.reads[a.class] = nil // the client has one mapping for each class
	m.send(b.client, outgoing{
		message: wire.Arena{
			DeviceSlot: uint32(b.slot), Priority: uint32(a.class), Member: int32(index), // all are small
		},
		file: a.File(),
		keep: a.keep,
	})
}

// leaveArena frees the place of b, and what b left in the arena.
func (b *binding) leaveArena() {
	if b.member == nil {
		return
	}
	b.member.taken.Remove(b.index)
	_ = b.member.Forget(b.index) // fails only for a place that does not exist
	b.member = nil
}
