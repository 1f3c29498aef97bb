package shm

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/heddle-project/heddle/runtime/errdefs"
)

const (
	// sealsSize forbid every change of size: the end of SIGBUS for readers.
	sealsSize = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
	// sealsSingleWriter forbid new writable mappings as well; the writer's own stays.
	sealsSingleWriter = sealsSize | unix.F_SEAL_FUTURE_WRITE

	// sizeMax bounds what a stranger's segment can make us map.
	sizeMax = 1 << 20
)

// A mapping is one mapped segment and the descriptor behind it.
type mapping struct {
	file *os.File
	data []byte
}

// create makes a segment of size bytes, lets fill write its first content, seals it and returns it
// mapped for writing.
func create(name string, size int, seals int, fill func(data []byte)) (*mapping, error) {
	fd, err := memfdCreate(name)
	if err != nil {
		return nil, fmt.Errorf("create memfd %s: %w", name, err)
	}
	m := &mapping{file: os.NewFile(uintptr(fd), name)}
	if err := m.initialize(fd, size, seals, fill); err != nil {
		return nil, errors.Join(fmt.Errorf("segment %s: %w", name, err), m.close())
	}
	return m, nil
}

func memfdCreate(name string) (int, error) {
	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate(name, flags|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) {
		// Before Linux 6.3 a memfd could not be made without the right to execute it.
		return unix.MemfdCreate(name, flags)
	}
	return fd, err
}

func (m *mapping) initialize(fd, size, seals int, fill func([]byte)) error {
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		return fmt.Errorf("set size: %w", err)
	}
	data, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map: %w", err)
	}
	m.data = data
	fill(data)
	// The order is the point: FUTURE_WRITE leaves the mapping made above writable and no other.
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		if errors.Is(err, unix.EINVAL) {
			return errdefs.Errorf(errdefs.Unsupported, "seal: %w (needs Linux 5.1)", err)
		}
		return fmt.Errorf("seal: %w", err)
	}
	return nil
}

// open verifies a descriptor that somebody else made and maps it for reading. On success the
// mapping owns file; on failure file is still the caller's.
func open(file *os.File, seals int) (*mapping, error) {
	size, err := verify(file, seals)
	if err != nil {
		return nil, err
	}
	// MAP_POPULATE: later reads must not fault in pages one by one on the daemon's time.
	data, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return nil, fmt.Errorf("map segment: %w", err)
	}
	return &mapping{file: file, data: data}, nil
}

// verify makes sure that reading the file's memory cannot hurt: it is a memfd in ordinary memory,
// its size is sane and can never change, and it has the seals that its kind of segment must have.
func verify(file *os.File, seals int) (int, error) {
	fd := int(file.Fd())
	have, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil {
		return 0, errdefs.Errorf(errdefs.Corrupt, "descriptor is not a memfd: %w", err)
	}
	if have&seals != seals {
		return 0, errdefs.Errorf(errdefs.Corrupt, "segment has seals %#x, needs %#x", have, seals)
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return 0, fmt.Errorf("look at segment: %w", err)
	}
	// A segment of huge pages would have seals too, and can fault when the pool runs dry.
	if fs.Type != unix.TMPFS_MAGIC {
		return 0, errdefs.Errorf(errdefs.Corrupt, "segment lies on file system %#x", fs.Type)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, fmt.Errorf("look at segment: %w", err)
	}
	if st.Size <= 0 || st.Size > sizeMax {
		return 0, errdefs.Errorf(errdefs.Corrupt, "segment has %d bytes, at most %d make sense", st.Size, sizeMax)
	}
	return int(st.Size), nil
}

// File returns the descriptor to pass on. It stays the segment's: do not close it.
func (m *mapping) File() *os.File { return m.file }

// close unmaps and closes; a second call does nothing.
func (m *mapping) close() error {
	var errs []error
	if m.data != nil {
		errs = append(errs, unix.Munmap(m.data))
		m.data = nil
	}
	if m.file != nil {
		errs = append(errs, m.file.Close())
		m.file = nil
	}
	return errors.Join(errs...)
}
