package daemon

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"golang.org/x/sys/unix"

	"github.com/heddle-project/heddle/runtime/errdefs"
)

const (
	// Everybody may look for the sockets, and connect: who may do what is
	// decided by credentials, not by the file system.
	socketDirMode = 0o755
	socketMode    = 0o666
	stateDirMode  = 0o700

	// dialPatience is how long a socket that is in our way may take to answer.
	dialPatience = time.Second
)

// The names of the sockets for systemd's FileDescriptorName=.
const (
	activationAPI    = "api"
	activationAttach = "attach"
)

// activated returns the sockets that systemd passed, by name. It must be
// called once, before anything else opens descriptors.
func activated() (map[string]*net.UnixListener, error) {
	named, err := activation.ListenersWithNames()
	if err != nil {
		return nil, err
	}
	sockets := map[string]*net.UnixListener{}
	for name, listeners := range named {
		if len(listeners) != 1 || name != activationAPI && name != activationAttach {
			return nil, errdefs.Errorf(errdefs.Invalid,
				"systemd passed %d sockets named %q; want one with FileDescriptorName=%s, one with %s",
				len(listeners), name, activationAPI, activationAttach)
		}
		listener, ok := listeners[0].(*net.UnixListener)
		if !ok {
			return nil, errdefs.Errorf(errdefs.Invalid, "socket %q of systemd is not a unix stream socket", name)
		}
		listener.SetUnlinkOnClose(false) // it stays systemd's
		sockets[name] = listener
	}
	return sockets, nil
}

// listen makes the socket at path that everybody may connect to. What a killed
// heddled left there is removed; a socket that answers is not.
func listen(path string) (*net.UnixListener, error) {
	if err := makeDir(filepath.Dir(path), socketDirMode); err != nil {
		return nil, err
	}
	if err := clearPath(path); err != nil {
		return nil, err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if err := os.Chmod(path, socketMode); err != nil {
		return nil, errors.Join(fmt.Errorf("open socket to everybody: %w", err), listener.Close())
	}
	return listener, nil
}

// makeDir makes dir and what is missing above it, with mode whatever the umask
// says: under a common umask of 077 nobody else could reach the sockets. What
// is there already stays as its owner made it.
func makeDir(dir string, mode os.FileMode) error {
	info, err := os.Stat(dir)
	if err == nil && info.IsDir() {
		return nil
	}
	if err == nil {
		return errdefs.Errorf(errdefs.Exists, "%s is in the way and is no directory", dir)
	}
	if parent := filepath.Dir(dir); errors.Is(err, os.ErrNotExist) && parent != dir {
		if err := makeDir(parent, socketDirMode); err != nil {
			return err
		}
	}
	err = os.Mkdir(dir, mode)
	if errors.Is(err, os.ErrExist) {
		return nil // somebody else was faster
	}
	if err == nil {
		err = os.Chmod(dir, mode)
	}
	if err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	return nil
}

func clearPath(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("look for old socket: %w", err)
	case info.Mode().Type() != os.ModeSocket:
		return errdefs.Errorf(errdefs.Exists, "%s is in the way and is no socket: remove it, or configure another path", path)
	}
	conn, err := net.DialTimeout("unix", path, dialPatience)
	if err == nil {
		_ = conn.Close()
		return errdefs.Errorf(errdefs.Busy, "%s answers: another heddled is running", path)
	}
	if !errors.Is(err, unix.ECONNREFUSED) {
		return fmt.Errorf("look at old socket: %w", err)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("remove old socket: %w", err)
	}
	return nil
}
