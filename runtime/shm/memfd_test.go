package shm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heddle-project/heddle/runtime/abi"
	"github.com/heddle-project/heddle/runtime/errdefs"
)

// clientFile makes a client's segment as the interposer does and returns a descriptor of it.
func clientFile(t *testing.T, size, seals int, edit func(*abi.ClientSegment)) *os.File {
	t.Helper()
	m, err := create("heddle-client", size, seals, func(data []byte) {
		if size < abi.SizeofClientSegment {
			return
		}
		seg := view[abi.ClientSegment](data)
		writeHeader(&seg.Header, abi.MagicClient, size, 0)
		if edit != nil {
			edit(seg)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.FcntlInt(m.file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.close(); err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "client")
	t.Cleanup(func() { f.Close() })
	return f
}

func TestOpenClientRefusesWhatIsNotASealedSegment(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, make([]byte, abi.SizeofClientSegment), 0o600); err != nil {
		t.Fatal(err)
	}
	onDisk, err := os.Open(plain)
	if err != nil {
		t.Fatal(err)
	}
	defer onDisk.Close()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()

	const good = abi.SizeofClientSegment
	tests := []struct {
		name string
		file *os.File
		kind error
	}{
		{"a file on disk", onDisk, errdefs.ErrCorrupt},
		{"a pipe", read, errdefs.ErrCorrupt},
		{"no seal on the size", clientFile(t, good, unix.F_SEAL_FUTURE_WRITE, nil), errdefs.ErrCorrupt},
		{"no seal on new writers", clientFile(t, good, sealsSize, nil), errdefs.ErrCorrupt},
		{"seals that can still be changed", clientFile(t, good, sealsSingleWriter&^unix.F_SEAL_SEAL, nil), errdefs.ErrCorrupt},
		{"a segment that is too short", clientFile(t, 64, sealsSingleWriter, nil), errdefs.ErrCorrupt},
		{"a segment that is too long for its version", clientFile(t, good+64, sealsSingleWriter, nil), errdefs.ErrCorrupt},
		{"a segment beyond all bounds", clientFile(t, sizeMax+4096, sealsSingleWriter, nil), errdefs.ErrCorrupt},
		{"another kind of segment", clientFile(t, good, sealsSingleWriter, func(s *abi.ClientSegment) { s.Header.Magic = abi.MagicArena }), errdefs.ErrCorrupt},
		{"a header that says another size", clientFile(t, good, sealsSingleWriter, func(s *abi.ClientSegment) { s.Header.Size++ }), errdefs.ErrCorrupt},
		{"a version of before the oldest", clientFile(t, good, sealsSingleWriter, func(s *abi.ClientSegment) { s.Header.ABIVersion = 0 }), errdefs.ErrUnsupported},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := OpenClient(tt.file)
			if !errors.Is(err, tt.kind) {
				t.Errorf("OpenClient = %v, %v; want %v", c, err, tt.kind)
			}
			if _, err := tt.file.Stat(); err != nil {
				t.Errorf("a refused descriptor is no longer the caller's: %v", err)
			}
		})
	}
}

func TestOpenClientAcceptsALaterVersionThatGrewAtItsEnd(t *testing.T) {
	c, err := OpenClient(clientFile(t, abi.SizeofClientSegment+4096, sealsSingleWriter, func(s *abi.ClientSegment) {
		s.Header.ABIVersion = abi.ABIVersion + 1
		s.Process.PID = 7
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if p, err := c.Process(); err != nil || p.PID != 7 {
		t.Errorf("Process = %+v, %v", p, err)
	}
}

func TestNobodyElseCanWriteToASegment(t *testing.T) {
	v, err := NewVerdict(1, ClockParams{}, abi.FailOpen)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	size := abi.SizeofVerdictSegment
	if _, err := unix.Mmap(int(v.File().Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); !errors.Is(err, unix.EPERM) {
		t.Errorf("mapping the descriptor for writing: %v, want EPERM", err)
	}
	// A receiver can open the file again for writing; the seal holds all the same.
	again, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", v.File().Fd()), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(again)
	if _, err := unix.Mmap(again, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); !errors.Is(err, unix.EPERM) {
		t.Errorf("mapping it after opening it again: %v, want EPERM", err)
	}
	if _, err := unix.Write(again, []byte("x")); !errors.Is(err, unix.EPERM) {
		t.Errorf("write: %v, want EPERM", err)
	}
	if err := unix.Ftruncate(again, 0); !errors.Is(err, unix.EPERM) {
		t.Errorf("truncate: %v, want EPERM", err)
	}
	if err := unix.Fallocate(again, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, 4096); !errors.Is(err, unix.EPERM) {
		t.Errorf("punch a hole: %v, want EPERM", err)
	}
}

func TestArenaReadOnlyDescriptorCannotBeMappedForWriting(t *testing.T) {
	a, err := NewArena(3)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	f, err := a.ReadOnly()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := unix.Mmap(int(f.Fd()), 0, abi.SizeofArenaSegment, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); !errors.Is(err, unix.EACCES) {
		t.Errorf("map for writing: %v, want EACCES", err)
	}
	if info, err := f.Stat(); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may open it again for writing: %v, %v", info.Mode(), err)
	}
	rw, err := unix.Mmap(int(a.File().Fd()), 0, abi.SizeofArenaSegment, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatalf("a member maps the arena: %v", err)
	}
	defer unix.Munmap(rw)
	member := view[abi.ArenaSegment](rw)
	member.Sleepers[1] = 1<<3 | 1<<4
	member.TokenHolder = 67 + 1
	member.Heads[67], member.Heads[68] = 11, 12
	if err := a.Forget(67); err != nil {
		t.Fatal(err)
	}
	if got := a.Sleepers(); got != (Peers{0, 1 << 4, 0, 0}) {
		t.Errorf("sleepers after member 67 left: %v", got)
	}
	if member.TokenHolder != 0 {
		t.Errorf("token still held by %d", member.TokenHolder)
	}
	if member.Heads[67] != 0 || member.Heads[68] != 12 {
		t.Errorf("heads of members 67 and 68 after 67 left: %d, %d", member.Heads[67], member.Heads[68])
	}
	for _, bad := range []int{-1, abi.MembersMax} {
		if err := a.Forget(bad); !errors.Is(err, errdefs.ErrInvalid) {
			t.Errorf("Forget(%d) = %v", bad, err)
		}
	}
}

func TestDoorbellWakesAWaiterAcrossMappings(t *testing.T) {
	c, err := OpenClient(clientFile(t, abi.SizeofClientSegment, sealsSingleWriter, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// A word that differs from what was seen never sleeps.
	if err := c.WaitDoorbell(0, 1, time.Hour); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- c.WaitDoorbell(3, 0, time.Hour) }()
	for {
		if err := c.WakeDoorbells(); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			return
		default:
		}
	}
}

func TestCloseTwiceIsHarmless(t *testing.T) {
	a, err := NewArena(0)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := a.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
}
