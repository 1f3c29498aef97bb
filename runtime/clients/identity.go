package clients

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heddle-project/heddle/runtime/errdefs"
	"github.com/heddle-project/heddle/runtime/shm"
	"github.com/heddle-project/heddle/runtime/wire"
)

// Identity is what heddled found out about a client without asking it. Parts
// that this heddled may not see are empty.
type Identity struct {
	PID         int // in heddled's PID namespace, 0 = not visible from here
	UID         int
	GID         int
	Groups      []int // supplementary
	Cgroup      string
	Container   string      // id, short form
	Executable  string      // its path, as the process sees it
	Genuine     func() bool // whether heddled finds the same file there; nil = cannot be seen
	Program     string      // short name, as the OS kernel keeps it
	Command     string      // with its arguments, for its own user and root
	ForeignTime bool        // lives in another time namespace
}

// credentials are what the OS kernel says about the other end of conn. The
// pidfd is nil if the process is not visible from here.
func credentials(conn *wire.Conn) (unix.Ucred, *os.File, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return unix.Ucred{}, nil, err
	}
	var cred *unix.Ucred
	pidfd := -1
	var callErr error
	err = raw.Control(func(fd uintptr) {
		cred, callErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		if callErr != nil {
			return
		}
		pidfd, callErr = peerPidfd(int(fd), int(cred.Pid))
	})
	if err = errors.Join(err, callErr); err != nil {
		return unix.Ucred{}, nil, fmt.Errorf("read credentials: %w", err)
	}
	if pidfd < 0 {
		return *cred, nil, nil
	}
	return *cred, os.NewFile(uintptr(pidfd), "pidfd"), nil
}

// peerPidfd opens the peer's pidfd: from the socket since Linux 6.5, by number
// before, where a number that was used again in between would name a stranger.
func peerPidfd(fd, pid int) (int, error) {
	pidfd, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PEERPIDFD)
	if err == nil {
		unix.CloseOnExec(pidfd)
		return pidfd, nil
	}
	if pid == 0 {
		return -1, nil
	}
	if errors.Is(err, unix.ENOPROTOOPT) || errors.Is(err, unix.EINVAL) {
		pidfd, err = unix.PidfdOpen(pid, 0)
	}
	if err != nil {
		return -1, fmt.Errorf("open pidfd: %w", err)
	}
	return pidfd, nil
}

// alive reports whether the process behind a pidfd still exists.
func alive(pidfd *os.File) bool {
	err := unix.PidfdSendSignal(int(pidfd.Fd()), 0, nil, 0)
	return err == nil || errors.Is(err, unix.EPERM)
}

const (
	// commandLimit is how much of a command line people see; it can be megabytes.
	commandLimit = 4096
	// factsLimit is more than the OS kernel can say about one process: its 65536
	// groups are the longest. What decides who a client is must not be cut: of
	// the group 12345 could remain the group 12.
	factsLimit = 1 << 20
)

// lookUp reads what /proc tells about the client. A file that is missing or
// forbidden leaves its field empty. If the process died meanwhile its number
// may have been another's, and nothing that was read counts.
func lookUp(cred unix.Ucred, pidfd *os.File) Identity {
	id := Identity{PID: int(cred.Pid), UID: int(cred.Uid), GID: int(cred.Gid)}
	if id.PID == 0 || pidfd == nil {
		return id
	}
	bare := id
	dir := "/proc/" + strconv.Itoa(id.PID)
	if text, err := readWhole(dir + "/cgroup"); err == nil {
		id.Cgroup = cgroupPath(text)
		id.Container = containerID(text)
	}
	if text, err := readSome(dir+"/cmdline", commandLimit); err == nil {
		id.Command = shm.Printable(bytes.ReplaceAll(bytes.TrimRight(text, "\x00"), []byte{0}, []byte{' '}))
	}
	if text, err := readWhole(dir + "/status"); err == nil {
		id.Groups = statusGroups(string(text))
		id.Program = shm.Printable([]byte(statusName(string(text))))
	}
	id.Executable, id.Genuine = executable(dir)
	id.ForeignTime = foreignTime(dir)
	if !alive(pidfd) {
		return bare
	}
	return id
}

// readWhole reads a file of /proc that must not be cut.
func readWhole(path string) ([]byte, error) {
	text, err := readSome(path, factsLimit)
	if err == nil && len(text) == factsLimit {
		return nil, errdefs.Errorf(errdefs.Exhausted, "%s has more than %d bytes", path, factsLimit)
	}
	return text, err
}

// readSome reads the first bytes of a file of /proc, which needs three calls
// this way and nine by package os: an attaching program waits meanwhile.
func readSome(path string, limit int) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }()
	text := make([]byte, 0, min(limit, 4096))
	for len(text) < limit {
		if len(text) == cap(text) {
			text = slices.Grow(text, len(text))
		}
		n, err := unix.Read(fd, text[len(text):min(cap(text), limit)])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if n == 0 {
			break
		}
		text = text[:len(text)+n]
	}
	return text, nil
}

// statusName takes the program's name out of /proc/PID/status, where it is the
// first line.
func statusName(status string) string {
	line, _, _ := strings.Cut(status, "\n")
	name, _ := strings.CutPrefix(line, "Name:\t")
	return name
}

// statusGroups takes the supplementary groups out of /proc/PID/status.
func statusGroups(status string) []int {
	for line := range strings.Lines(status) {
		list, ok := strings.CutPrefix(line, "Groups:")
		if !ok {
			continue
		}
		var groups []int
		for field := range strings.FieldsSeq(list) {
			if n, err := strconv.Atoi(field); err == nil {
				groups = append(groups, n)
			}
		}
		return groups
	}
	return nil
}

// foreignTime reports whether the process sees another CLOCK_MONOTONIC. Where
// that cannot be seen, it most likely does not.
func foreignTime(dir string) bool {
	own, err := os.Readlink("/proc/self/ns/time")
	if err != nil {
		return false // before Linux 5.6 there are no time namespaces
	}
	theirs, err := os.Readlink(dir + "/ns/time")
	return err == nil && theirs != own
}
