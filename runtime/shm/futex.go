package shm

import (
	"errors"
	"fmt"
	"math"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The two operations of futex(2) that shared words need, without the PRIVATE flag: waiter and
// waker are different processes. Both work on a read-only mapping.
const (
	futexOpWait = 0
	futexOpWake = 1
)

// futexWait sleeps while *word is seen, at most timeout. Being woken, a changed word, a signal and
// the timeout all return nil: the caller reads the word again anyway.
func futexWait(word *uint32, seen uint32, timeout time.Duration) error {
	if timeout <= 0 {
		return nil
	}
	ts := unix.NsecToTimespec(timeout.Nanoseconds())
	_, _, errno := unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexOpWait,
		uintptr(seen), uintptr(unsafe.Pointer(&ts)), 0, 0)
	switch {
	case errno == 0, errors.Is(errno, unix.EAGAIN), errors.Is(errno, unix.EINTR), errors.Is(errno, unix.ETIMEDOUT):
		return nil
	default:
		return fmt.Errorf("futex wait: %w", errno)
	}
}

// futexWake wakes all who sleep on word.
func futexWake(word *uint32) error {
	_, _, errno := unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexOpWake,
		math.MaxInt32, 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("futex wake: %w", errno)
	}
	return nil
}
