package main

import (
	"context"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// checkKernel tries what heddled and the interposer need instead of comparing version numbers:
// distributions carry features back, and containers take them away.
func checkKernel(context.Context, *examination) finding {
	var uts unix.Utsname
	release := "unknown"
	if err := unix.Uname(&uts); err == nil {
		release = unix.ByteSliceToString(uts.Release[:])
	}
	return kernelFinding(release, trySeals(), tryPidfd())
}

// kernelFinding is what two attempts say of a kernel.
func kernelFinding(release string, seals, pidfd error) finding {
	var missing []string
	if seals != nil {
		missing = append(missing, "sealed memory files ("+plainErrno(seals)+")")
	}
	if pidfd != nil {
		missing = append(missing, "pidfd ("+plainErrno(pidfd)+")")
	}
	if len(missing) > 0 {
		return fail("use Linux 5.4 or newer, and allow memfd_create and pidfd_open where a seccomp profile forbids them",
			"Linux %s lacks %s", release, strings.Join(missing, ", "))
	}
	return ok("Linux %s: sealed memory files, pidfd", release)
}

// trySeals makes a segment as heddled would: mapped by its writer, then closed to all others.
func trySeals() error {
	fd, err := unix.MemfdCreate("heddle-doctor", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Ftruncate(fd, int64(os.Getpagesize())); err != nil {
		return err
	}
	seals := unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_FUTURE_WRITE | unix.F_SEAL_SEAL
	_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
	return err
}

func tryPidfd() error {
	fd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// checkEnvironment looks for settings that make heddle run do less than it seems to.
func checkEnvironment(_ context.Context, x *examination) finding {
	if x.app.getenv("HEDDLE_DISABLE") == "1" {
		return warn("unset HEDDLE_DISABLE", "HEDDLE_DISABLE=1: programs started here run unscheduled")
	}
	if s := x.app.getenv("HEDDLE_SOCKET"); s != "" && x.status != nil && s != x.status.GetAttachSocket() {
		return warn("unset HEDDLE_SOCKET", "HEDDLE_SOCKET=%s, but heddled listens on %s", s, x.status.GetAttachSocket())
	}
	if p := x.app.getenv("HEDDLE_PRIORITY"); p != "" {
		if _, err := parseClass(p); err != nil {
			return warn("unset HEDDLE_PRIORITY or give a class", "HEDDLE_PRIORITY=%s: %v", p, err)
		}
	}
	var set []string
	for _, name := range []string{"HEDDLE_API", "HEDDLE_SOCKET", "HEDDLE_INTERPOSER", "HEDDLE_REAL_LIBCUDA", "HEDDLE_PRIORITY", "HEDDLE_WEIGHT", "HEDDLE_NAME", "HEDDLE_GANG", "SOFTGPU_STATE"} {
		if value := x.app.getenv(name); value != "" {
			set = append(set, name+"="+value)
		}
	}
	if len(set) == 0 {
		return ok("nothing set that changes what programs get")
	}
	return ok("%s", strings.Join(set, " "))
}
