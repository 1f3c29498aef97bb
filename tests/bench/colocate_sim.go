package main

import (
	"context"
	"slices"
	"time"

	"github.com/heddle-project/heddle/runtime/config"
	heddled "github.com/heddle-project/heddle/runtime/daemon"
	"github.com/heddle-project/heddle/runtime/sched"
	"github.com/heddle-project/heddle/runtime/sim"
)

// simulate plays in virtual time what real plays in processes: the same kernels, requests and times,
// by the policy as heddled would make it of an empty configuration.
func (c *colocation) simulate(ctx context.Context, p *play) (measured, error) {
	policy := sched.Policy(sched.None{})
	if p.policy != "" {
		cfg := config.Default(config.System{})
		var err error
		if policy, err = sched.NewPolicy(p.policy, heddled.Settings(&cfg)); err != nil {
			return measured{}, err
		}
	}
	result, err := sim.Run(ctx, sim.Scenario{
		GPU: colocateGPU, Shared: true, Clients: c.clients(p), Policy: policy, Costs: sim.RealLike,
		Duration: c.duration, WarmUp: c.warmUp, Seed: 1,
	})
	if err != nil {
		return measured{}, err
	}
	var m measured
	for i := range result.Clients {
		if i == 0 && p.service {
			m.p50, m.p99 = result.Clients[i].P50.Seconds()*1e3, result.Clients[i].P99.Seconds()*1e3
			continue
		}
		m.share += result.Clients[i].Share
	}
	return m, nil
}

func (c *colocation) clients(p *play) []sim.Client {
	var list []sim.Client
	if p.service {
		gaps := make([]time.Duration, len(p.gaps))
		for i, gap := range p.gaps {
			gaps[i] = time.Duration(gap * c.stretch * 1e9)
		}
		list = append(list, sim.Client{
			Name: "service", Workload: c.stretched(p.cell.service.Workload), Class: 2, Weight: 100,
			// The processes begin with the first gap, whatever the seed.
			Arrivals: func(uint64) sim.Arrivals { return sim.Gaps(gaps)(0) },
		})
	}
	for range p.trainers {
		list = append(list, sim.Client{Name: "training", Workload: c.stretched(p.cell.training.Workload), Class: 7, Weight: 100})
	}
	return list
}

func (c *colocation) stretched(w sim.Workload) sim.Workload {
	w.Kernels = slices.Clone(w.Kernels)
	for i := range w.Kernels {
		w.Kernels[i].Time = time.Duration(float64(w.Kernels[i].Time) * c.stretch)
	}
	return w
}
