package main

import (
	"fmt"
	"time"

	"github.com/heddle-project/heddle/runtime/sim"
	"github.com/heddle-project/heddle/tests/bench/kernels"
)

// load is how requests come to a service.
type load struct {
	name      string
	part      float64       // of capacity, at random times; 0 = as soon as the last one is answered
	syncEvery int           // the host waits after so many kernels ...
	hostTime  time.Duration // ... and works for so long
}

// pausing is a service that is bound by its host: it pauses inside a request.
func pausing(pause time.Duration) load {
	return load{name: fmt.Sprintf("pauses of %v", pause), syncEvery: 25, hostTime: pause}
}

func loads() []load {
	return []load{
		{name: "poisson 0.3", part: 0.3},
		{name: "poisson 0.7", part: 0.7},
		{name: "closed loop"},
		// The first is shorter than the longest kernel of a training of ResNet-50, the second is not.
		pausing(time.Millisecond),
		pausing(1500 * time.Microsecond),
	}
}

// cells are all combinations. A device that takes turns is there to be seen beside the other.
func cells(set *kernels.Set) []*cell {
	var cells []*cell
	for _, shared := range []bool{true, false} {
		for _, service := range set.Services {
			for _, l := range loads() {
				for _, training := range set.Trainings {
					for _, trainers := range []int{1, 4} {
						cells = append(cells, newCell(shared, service.Workload, l, training.Workload, trainers))
					}
				}
			}
		}
	}
	return cells
}

// The bars: what a service may lose, more where it takes less than short.
const (
	barLong, barShort = 1.02, 1.04
	short             = 5 * time.Millisecond
)

func newCell(shared bool, service sim.Workload, l load, training sim.Workload, trainers int) *cell {
	service.SyncEvery, service.HostTime = l.syncEvery, l.hostTime
	c := &cell{
		Service: service.Name, Load: l.name, Training: training.Name, Trainers: trainers, Shared: shared, Limit: barLong,
		pauses: l.hostTime > 0 && l.part == 0,
	}
	if service.Time() < short {
		c.Limit = barShort
	}
	how := "side by side"
	if !shared {
		how = "in turns"
	}
	c.Name = fmt.Sprintf("%s %s, %d x %s, %s", c.Service, c.Load, trainers, c.Training, how)
	high := sim.Client{Name: service.Name, Workload: service, Class: 2, Weight: 100, Arrivals: sim.Closed(0)}
	if l.part > 0 {
		high.Arrivals = sim.Poisson(l.part / service.Time().Seconds())
	}
	c.clients = []sim.Client{high}
	for range trainers {
		c.clients = append(c.clients, sim.Client{Name: training.Name, Workload: training, Class: 7, Weight: 100})
	}
	return c
}
