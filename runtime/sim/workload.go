package sim

import (
	"cmp"
	"slices"
	"time"

	"github.com/heddle-project/heddle/runtime/sched"
)

// Kernel is one launch of a workload.
type Kernel struct {
	Name string
	Time time.Duration // alone on the device
	SMs  int           // that hold its grid at once; more than the device has means several waves
	DRAM float64       // part of its time that is bound by memory, 0 to 1
	// Spread is the standard deviation of its time, as a part of Time; 0 = that of the scenario.
	Spread float64
	// Pause makes the host wait for the launch, and work for so long before the next; 0 = it goes on.
	Pause time.Duration
}

// Workload is what a program does over and over: it launches the kernels in order and waits for
// the last.
type Workload struct {
	Name    string
	Kernels []Kernel
	// SyncEvery makes the host wait after so many kernels, and work for HostTime before it goes on;
	// 0 = only after the last. Services that are bound by their host look like this.
	SyncEvery int
	HostTime  time.Duration
}

// Time returns the device time of one round, alone.
func (w *Workload) Time() time.Duration {
	total := time.Duration(0)
	for i := range w.Kernels {
		total += w.Kernels[i].Time
	}
	return total
}

// Arrivals say when the requests of a service come.
type Arrivals interface {
	// Next returns the time of the request after one that came at the given time, both in
	// nanoseconds since the start. done is when the service answered that one.
	Next(came, done uint64) uint64
}

// Client is one program of a scenario.
type Client struct {
	Name     string
	Workload Workload
	Class    int
	Weight   int
	SLO      float64
	// Arrivals of requests; nil = a training job, which begins the next round at once.
	Arrivals func(seed uint64) Arrivals
}

// quantile returns the SMs with which the given part of the workload's device time is satisfied.
func (w *Workload) quantile(part float64) int {
	order := slices.SortedFunc(slices.Values(w.Kernels), func(a, b Kernel) int { return cmp.Compare(a.SMs, b.SMs) })
	left := time.Duration(float64(w.Time()) * part)
	for i := range order {
		if left -= order[i].Time; left <= 0 {
			return order[i].SMs
		}
	}
	return order[len(order)-1].SMs
}

// satisfied is the part of a workload's time that its peak demand covers. The rest is what a
// controller has to watch: few services never fill a device.
const satisfied = 0.75

// demand describes the workload to a policy, as the profiles of its kernels would.
func (w *Workload) demand() sched.Demand {
	d := sched.Demand{Known: true}
	dram := 0.0
	for i := range w.Kernels {
		k := &w.Kernels[i]
		dram += k.DRAM * float64(k.Time)
		d.Longest = max(d.Longest, k.Time)
	}
	d.DRAM = dram / float64(max(1, w.Time()))
	d.PeakSMs = w.quantile(satisfied)
	return d
}
