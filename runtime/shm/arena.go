package shm

import (
	"fmt"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/heddle-project/heddle/runtime/abi"
	"github.com/heddle-project/heddle/runtime/errdefs"
)

// Arena is the segment that the clients of one class on one device share. The daemon makes it,
// and cleans up after members that died.
type Arena struct {
	*mapping
	seg *abi.ArenaSegment
}

// NewArena makes an empty arena. Only its size is sealed: its members write to it. Who has a
// read-only descriptor could open it again through /proc for writing, so the file's mode gives that
// right to heddled's user alone.
func NewArena(generation uint64) (*Arena, error) {
	m, err := create("heddle-arena", abi.SizeofArenaSegment, sealsSize, func(data []byte) {
		writeHeader(&view[abi.ArenaSegment](data).Header, abi.MagicArena, len(data), generation)
	})
	if err != nil {
		return nil, err
	}
	if err := m.file.Chmod(0o600); err != nil {
		return nil, joinClose(fmt.Errorf("segment %s: %w", m.file.Name(), err), m)
	}
	return &Arena{mapping: m, seg: view[abi.ArenaSegment](m.data)}, nil
}

// ReadOnly opens the arena once more, for clients that only look. The caller closes the result.
func (a *Arena) ReadOnly() (*os.File, error) {
	path := fmt.Sprintf("/proc/self/fd/%d", a.file.Fd())
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), a.file.Name()), nil
}

// Forget removes what a departed member left behind: its sleeper bit, its head, and the gap token if
// it was the holder.
func (a *Arena) Forget(member int) error {
	if member < 0 || member >= abi.MembersMax {
		return errdefs.Errorf(errdefs.Invalid, "arena member %d, there are %d", member, abi.MembersMax)
	}
	atomic.AndUint64(&a.seg.Sleepers[member/64], ^(uint64(1) << (member % 64)))
	atomic.StoreUint64(&a.seg.Heads[member], 0)
	atomic.CompareAndSwapUint64(&a.seg.TokenHolder, uint64(member)+1, 0)
	return nil
}

// Sleepers returns the members that say they sleep.
func (a *Arena) Sleepers() Peers {
	var p Peers
	for i := range a.seg.Sleepers {
		p[i] = atomic.LoadUint64(&a.seg.Sleepers[i])
	}
	return p
}

// Close unmaps the arena; a second call does nothing.
func (a *Arena) Close() error {
	a.seg = nil
	return a.close()
}
