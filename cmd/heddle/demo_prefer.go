package main

import "golang.org/x/sys/unix"

// The software GPU has no processor of its own: it is computed inside the processes that use it.
// If another program takes their processor, the device stands still, which no device does. So the
// players are started with the lowest real-time priority where that is allowed, in all four runs
// alike.
//
// prefer calls start on a thread whose children get that priority, and says whether they do. It
// must be called on a locked thread.
func prefer(start func() error) (preferred bool, err error) {
	realTime := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: 1}
	normal := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL}
	before, err := unix.SchedGetAttr(0, 0)
	if err != nil || before.Policy != unix.SCHED_NORMAL || unix.SchedSetAttr(0, &realTime, 0) != nil {
		return false, start() // not allowed, or somebody has already chosen
	}
	err = start()
	normal.Nice = before.Nice
	_ = unix.SchedSetAttr(0, &normal, 0) // down is always allowed
	return true, err
}
