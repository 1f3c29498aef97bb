package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heddle-project/heddle/runtime/abi"
	"github.com/heddle-project/heddle/runtime/errdefs"
	"github.com/heddle-project/heddle/runtime/shm"
)

// checkKernel tries what every client will need, instead of comparing version
// numbers: distributions carry things back, and containers take them away.
func (d *Daemon) checkKernel(context.Context) error {
	return lacks(osRelease(), trySegment, tryPidfd)
}

// trySegment makes a segment as every client gets one.
func trySegment() error {
	v, err := shm.NewVerdict(0, shm.ClockParams{}, abi.FailOpen)
	if err != nil {
		return err
	}
	return v.Close()
}

// tryPidfd opens what tells of a client's death.
func tryPidfd() error {
	fd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return fmt.Errorf("open pidfd: %w", err)
	}
	return unix.Close(fd)
}

// lacks tries things and says in one line which of them this machine cannot do.
// An error of another kind, such as too many open files, is returned as it is.
func lacks(release string, tries ...func() error) error {
	var missing []string
	for _, try := range tries {
		err := try()
		switch {
		case err == nil:
		case errors.Is(err, errdefs.ErrUnsupported), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM):
			missing = append(missing, err.Error())
		default:
			return err
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return errdefs.Errorf(errdefs.Unsupported,
		"Linux %s here cannot do what heddled needs (%s): use Linux 5.4 or newer, and allow memfd_create and pidfd_open where a seccomp profile forbids them",
		release, strings.Join(missing, "; "))
}

func osRelease() string {
	var uts unix.Utsname
	if unix.Uname(&uts) != nil {
		return "of an unknown version"
	}
	return unix.ByteSliceToString(uts.Release[:])
}
