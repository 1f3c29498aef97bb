package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/heddle-project/heddle/runtime/sim"
)

// grid is the set of workloads from which the cells are made.
type grid struct {
	source    string
	services  []sim.Workload
	trainings []sim.Workload
}

// loadGrid reads the kernel tables.
func loadGrid() (*grid, error) {
	if folder := sharedKernels(); folder != "" {
		return readGrid("../shared/data/kernels", folder,
			[]string{"resnet50_4_fwd.csv", "mobilenetv2_4_fwd.csv"},
			[]string{"resnet50_32_fb1.csv", "mobilenetv2_64_fb1.csv", "resnet101_32_fb1.csv"})
	}
	folder := filepath.Join("tests", "play", "workloads")
	return readGrid(folder, folder, []string{"inference.csv", "small-inference.csv"}, []string{"training.csv", "small-training.csv"})
}

// sharedKernels looks for the folder beside the repository, or any folder above it.
func sharedKernels() string {
	if shared := os.Getenv("HEDDLE_SHARED"); shared != "" {
		return filepath.Join(shared, "data", "kernels")
	}
	dir, err := filepath.Abs(".")
	for err == nil && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		folder := filepath.Join(dir, "shared", "data", "kernels")
		if _, err := os.Stat(folder); err == nil {
			return folder
		}
	}
	return ""
}

func readGrid(source, folder string, services, trainings []string) (*grid, error) {
	g := &grid{source: source}
	for _, list := range []struct {
		names []string
		to    *[]sim.Workload
	}{{services, &g.services}, {trainings, &g.trainings}} {
		for _, name := range list.names {
			f, err := os.Open(filepath.Join(folder, name))
			if err != nil {
				return nil, err
			}
			kernels, err := sim.ReadTable(name, f)
			f.Close()
			if err != nil {
				return nil, err
			}
			*list.to = append(*list.to, sim.Workload{Name: name[:len(name)-len(filepath.Ext(name))], Kernels: kernels})
		}
	}
	return g, nil
}

// load is how requests come to a service.
type load struct {
	name      string
	part      float64       // of capacity, at random times; 0 = as soon as the last one is answered
	syncEvery int           // the host waits after so many kernels ...
	hostTime  time.Duration // ... and works for so long
}

func loads() []load {
	return []load{
		{name: "poisson 0.3", part: 0.3},
		{name: "poisson 0.7", part: 0.7},
		{name: "closed loop"},
		{name: "host-bound", syncEvery: 25, hostTime: time.Millisecond},
	}
}

// cells are all combinations. A device that takes turns is there to be seen beside the other.
func (g *grid) cells() []*cell {
	var cells []*cell
	for _, shared := range []bool{true, false} {
		for _, service := range g.services {
			for _, l := range loads() {
				for _, training := range g.trainings {
					for _, trainers := range []int{1, 4} {
						cells = append(cells, newCell(shared, service, l, training, trainers))
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
