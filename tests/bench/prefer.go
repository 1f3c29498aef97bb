package main

import "golang.org/x/sys/unix"

// prefer calls start on a thread whose children get the lowest real-time priority, where that is
// allowed: the software GPU is computed inside the processes that use it, and would stand still
// whenever another program took their processor. It must be called on a locked thread.
func prefer(start func() error) error {
	realTime := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: 1}
	normal := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL}
	before, err := unix.SchedGetAttr(0, 0)
	if err != nil || before.Policy != unix.SCHED_NORMAL || unix.SchedSetAttr(0, &realTime, 0) != nil {
		return start() // not allowed, or somebody has already chosen
	}
	err = start()
	normal.Nice = before.Nice
	_ = unix.SchedSetAttr(0, &normal, 0) // down is always allowed
	return err
}
