// Package oldkernel lets a test's process live as on an older OS kernel, or in a container that
// forbids newer things: a seccomp filter answers for what is missing.
package oldkernel

import (
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Lack is one thing that the kernel shall not have.
type Lack string

// The things that Heddle needs and that were not always there.
const (
	Memfd           Lack = "memfd"             // before Linux 3.17
	FutureWriteSeal Lack = "future-write-seal" // before Linux 5.1
	Pidfd           Lack = "pidfd"             // before Linux 5.3
	MemfdRight      Lack = "memfd-right"       // a profile that forbids memfd_create
)

// Enter takes things away from this process and all that it starts, for good. It must be called
// before anything uses them.
func Enter(lacks ...Lack) error {
	var program []unix.SockFilter
	for _, l := range lacks {
		answer, ok := answers()[l]
		if !ok {
			return fmt.Errorf("no such lack: %q", l)
		}
		program = append(program, answer...)
	}
	program = append(program, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up privileges: %w", err)
	}
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: unsafe.SliceData(program)} // few
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return fmt.Errorf("install filter: %w", errno)
	}
	return nil
}

// Where the filter finds the number of a call and the low words of its arguments; both of our
// machines are little-endian.
const (
	offsetNumber   = 0
	offsetArgument = 16
)

func answers() map[Lack][]unix.SockFilter {
	return map[Lack][]unix.SockFilter{
		Memfd:      slices.Concat(load(offsetNumber), unless(unix.BPF_JEQ, unix.SYS_MEMFD_CREATE, 1), refuse(unix.ENOSYS)),
		MemfdRight: slices.Concat(load(offsetNumber), unless(unix.BPF_JEQ, unix.SYS_MEMFD_CREATE, 1), refuse(unix.EPERM)),
		Pidfd:      slices.Concat(load(offsetNumber), unless(unix.BPF_JEQ, unix.SYS_PIDFD_OPEN, 1), refuse(unix.ENOSYS)),
		FutureWriteSeal: slices.Concat(
			load(offsetNumber), unless(unix.BPF_JEQ, unix.SYS_FCNTL, 5),
			load(offsetArgument+8), unless(unix.BPF_JEQ, unix.F_ADD_SEALS, 3),
			load(offsetArgument+16), unless(unix.BPF_JSET, unix.F_SEAL_FUTURE_WRITE, 1),
			refuse(unix.EINVAL),
		),
	}
}

// load takes a word of the call.
func load(offset uint32) []unix.SockFilter {
	return []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}}
}

// unless skips what follows if the word is another one.
func unless(compare uint16, word uint32, skip uint8) []unix.SockFilter {
	return []unix.SockFilter{{Code: unix.BPF_JMP | compare | unix.BPF_K, K: word, Jf: skip}}
}

func refuse(errno unix.Errno) []unix.SockFilter {
	return []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)}}
}
