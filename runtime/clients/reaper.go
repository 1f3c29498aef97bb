package clients

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// reaper learns of the death of processes. A connection alone does not tell:
// a child that inherited the socket keeps it open after its parent died. All
// pidfds are in one epoll set, and the set itself waits in the poller of the
// Go runtime, so that a thousand clients cost one goroutine.
type reaper struct {
	epoll *os.File

	mu    sync.Mutex
	watch map[int32]func()
}

func newReaper() (*reaper, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("watch processes: %w", err)
	}
	// Only a non-blocking descriptor is given to the poller.
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, errors.Join(fmt.Errorf("watch processes: %w", err), unix.Close(fd))
	}
	return &reaper{epoll: os.NewFile(uintptr(fd), "epoll"), watch: map[int32]func(){}}, nil
}

// add calls dead, once, when the process of pidfd is gone. It must be removed
// before pidfd is closed.
func (r *reaper) add(pidfd *os.File, dead func()) error {
	fd := int32(pidfd.Fd()) // descriptors are small
	r.mu.Lock()
	r.watch[fd] = dead
	r.mu.Unlock()
	event := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT, Fd: fd}
	if err := r.control(unix.EPOLL_CTL_ADD, fd, &event); err != nil {
		r.remove(pidfd)
		return fmt.Errorf("watch process: %w", err)
	}
	return nil
}

func (r *reaper) remove(pidfd *os.File) {
	fd := int32(pidfd.Fd()) // descriptors are small
	r.mu.Lock()
	delete(r.watch, fd)
	r.mu.Unlock()
	_ = r.control(unix.EPOLL_CTL_DEL, fd, nil) // may be gone with its file
}

func (r *reaper) control(op int, fd int32, event *unix.EpollEvent) error {
	raw, err := r.epoll.SyscallConn()
	if err != nil {
		return err
	}
	var callErr error
	err = raw.Control(func(epoll uintptr) {
		callErr = unix.EpollCtl(int(epoll), op, int(fd), event)
	})
	return errors.Join(err, callErr)
}

// run reports deaths until close.
func (r *reaper) run() {
	raw, err := r.epoll.SyscallConn()
	if err != nil {
		return // closed before it began
	}
	var events [64]unix.EpollEvent
	for {
		n := 0
		err := raw.Read(func(epoll uintptr) bool {
			n, err = unix.EpollWait(int(epoll), events[:], 0)
			return n != 0
		})
		if err != nil {
			return
		}
		for _, e := range events[:max(n, 0)] {
			if dead := r.take(e.Fd); dead != nil {
				dead()
			}
		}
	}
}

// take returns whom to tell of a death, and forgets them. Between the event
// and now the number of the descriptor may have become another client's, whose
// process lives.
func (r *reaper) take(fd int32) func() {
	r.mu.Lock()
	defer r.mu.Unlock()
	dead, ok := r.watch[fd]
	if !ok || !exited(fd, 0) {
		return nil
	}
	delete(r.watch, fd)
	return dead
}

// exited reports whether the process of a pidfd has ended, as a zombie too, or
// does so within some milliseconds.
func exited(fd int32, milliseconds int) bool {
	poll := []unix.PollFd{{Fd: fd, Events: unix.POLLIN}}
	n, err := unix.Poll(poll, milliseconds)
	return err == nil && n == 1 && poll[0].Revents&unix.POLLIN != 0
}

func (r *reaper) close() error { return r.epoll.Close() }
