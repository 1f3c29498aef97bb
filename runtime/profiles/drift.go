package profiles

const (
	// moved is how far off the time of a launch must be to say that the kernel takes another one now,
	// or that something was in its way.
	moved = 1.1
	// driftMemory is over how many samples the parts are averaged that took longer and that were
	// quicker. Others disturb a part of a workload's launches, and never make one quicker: from the
	// one part or the other it is the workload that changed. If all did, 44 or 34 samples show it.
	driftMemory  = 32
	driftLonger  = 0.75
	driftQuicker = 0.65
	// driftKernels is of how many kernels a workload must be. The first one of each request waits for
	// what others have on the device, so that one or two say nothing.
	driftKernels = 5
	// driftAgreed is how many launches must agree with a kernel's times after a drift to keep them.
	driftAgreed = 3
)

// drift notices that a workload does more or less than before in all of its kernels, as with another
// batch size: sooner than kernel by kernel, and also beside others.
type drift struct {
	longer, quicker float64 // parts of the last samples of known kernels
	kernel          uint64  // of the last one: a kernel that runs over and over counts once
	alarms          uint32
}

// add learns in which direction a sample lay of a kernel that is known.
func (d *drift) add(kernel uint64, direction int) (alarm bool) {
	if kernel == d.kernel {
		return false
	}
	d.kernel = kernel
	longer, quicker := 0.0, 0.0
	switch {
	case direction > 0:
		longer = 1
	case direction < 0:
		quicker = 1
	}
	d.longer += (longer - d.longer) / driftMemory
	d.quicker += (quicker - d.quicker) / driftMemory
	if d.longer < driftLonger && d.quicker < driftQuicker {
		return false
	}
	d.longer, d.quicker = 0, 0
	d.alarms++
	return true
}

// direction says on which side of the kernel's times a sample lies: 1 if it took longer, -1 if it was
// quicker, 0 if neither or if that it took longer tells nothing of the kernel.
func (k *Kernel) direction(s *Sample) int {
	took, mean := float64(max(0, min(s.DeviceTime, timeMax))), k.Time.Mean
	middle := float64(k.Times.Quantile(0.5)) // few that were preempted move the mean
	switch {
	case took > moved*max(mean, middle) && !s.Together:
		return 1
	case took*moved < min(mean, middle):
		return -1
	default:
		return 0
	}
}

// doubt forgets a kernel's times if they are of before the workload's last drift, and this sample does
// not agree with them. One that agrees may have been disturbed into it.
func (k *Kernel) doubt(alarms uint32, direction int) (changed bool) {
	if k.alarms == alarms {
		return false
	}
	if direction == 0 {
		if k.agreed++; k.agreed == driftAgreed {
			k.alarms, k.agreed = alarms, 0
		}
		return false
	}
	k.alarms, k.agreed = alarms, 0
	k.Changes++
	k.forgetTimes()
	k.Alone = false
	return true
}
