package clients

import (
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heddle-project/heddle/runtime/errdefs"
	"github.com/heddle-project/heddle/runtime/wire"
)

// Why a client left, as the log says it. What it did wrong has words of its own.
var (
	errSaidBye      = errors.New("said goodbye")
	errDied         = errors.New("process ended") // by itself or by a signal: the OS kernel tells only its parent which
	errDisconnected = errors.New("disconnected")  // it closed its connection, or executed another program, and lives
	errDeaf         = errors.New("stopped reading")
	errLetGo        = errors.New("let go") // heddled stops
)

// parting finds out why a conversation ended with err. Sockets, writes and the pidfd each tell of
// the same end, in any order; the reason must not depend on which was first.
func parting(c *client, err error) error {
	switch {
	case errors.Is(err, errSaidBye):
		return err
	case errors.Is(err, wire.ErrCut):
		// Who was killed in the middle of a message has done nothing wrong.
		if c.ending() {
			return errDied
		}
		return err
	case errors.Is(err, errdefs.ErrCorrupt), errors.Is(err, errdefs.ErrExhausted):
		return err
	case errors.Is(err, net.ErrClosed):
		// It was heddled that closed: for all clients, or because this one could not be written to.
		switch unsent := c.out.failure(); {
		case unsent == nil:
			return errLetGo
		case errors.Is(unsent, os.ErrDeadlineExceeded):
			return errDeaf
		}
	case !errors.Is(err, io.EOF) && !errors.Is(err, unix.ECONNRESET):
		return err
	}
	if c.ending() {
		return errDied
	}
	return errDisconnected
}

// ending reports whether the client's process has ended, or is past the point from which nothing
// but its end can follow. The pidfd alone would not do: a dying process closes its files some time
// before its pidfd says so.
func (c *client) ending() bool {
	if c.pidfd == nil {
		return false
	}
	all, err := allExiting("/proc/" + strconv.Itoa(c.identity.PID) + "/task")
	fd := int32(c.pidfd.Fd()) // descriptors are small
	// In this order: if the process is not over now, what was read before was its own, and not that
	// of another one under its number.
	if exited(fd, 0) {
		return true
	}
	if err != nil {
		return exited(fd, unseenMilliseconds)
	}
	return all
}

// unseenMilliseconds is how long an end may take of a process whose threads cannot be seen.
const unseenMilliseconds = 10

// allExiting reports whether every thread in a task folder of /proc is on its way out. A thread is
// marked before it lets go of its files, so when a connection ended with its process, all are.
func allExiting(dir string) (bool, error) {
	tasks, err := os.ReadDir(dir)
	if err != nil {
		return false, err
	}
	for _, task := range tasks {
		stat, err := readWhole(dir + "/" + task.Name() + "/stat")
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			continue // gone since
		}
		if err != nil {
			return false, err
		}
		exiting, err := isExiting(string(stat))
		if err != nil || !exiting {
			return false, err
		}
	}
	return true, nil
}

// isExiting looks for the kernel's own mark in a stat file of /proc: PF_EXITING among the flags,
// the seventh word behind the name, which may itself contain anything.
func isExiting(stat string) (bool, error) {
	const flagsAt, pfExiting = 6, 0x4
	words := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(words) <= flagsAt {
		return false, errdefs.Errorf(errdefs.Corrupt, "stat of a thread: %q", stat)
	}
	flags, err := strconv.ParseUint(words[flagsAt], 10, 32)
	return flags&pfExiting != 0, err
}
