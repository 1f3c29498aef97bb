package sim

import (
	"slices"
	"time"
)

// Result is what a run measured after its warm-up.
type Result struct {
	Clients []ClientResult
	// Busy is the part of the device's SMs that kernels held, over time.
	Busy float64
}

// ClientResult is one client's part of it.
type ClientResult struct {
	Name string
	// Requests answered, and how long they took from their arrival.
	Requests      int
	P50, P95, P99 time.Duration
	// RoundsPerSecond of the workload.
	RoundsPerSecond float64
	// Share is the device time of the work done over the time that passed. It is 1 for a client
	// that had the device for itself and kept it busy, whatever the SMs that it used.
	Share    float64
	Held     time.Duration
	Overruns int
}

func (r *run) result() *Result {
	if !r.begun {
		r.begin()
	}
	out := &Result{Busy: (r.gpu.smTime() - r.heldBefore).Seconds() / float64(r.gpu.sms()) / r.scenario.Duration.Seconds()}
	seconds := r.scenario.Duration.Seconds()
	for i, p := range r.procs {
		slices.Sort(p.latency)
		work := p.service - r.warm[i]
		out.Clients = append(out.Clients, ClientResult{
			Name: p.client.Name, Requests: len(p.latency),
			P50: quantileOf(p.latency, 0.50), P95: quantileOf(p.latency, 0.95), P99: quantileOf(p.latency, 0.99),
			RoundsPerSecond: float64(work) / float64(max(1, p.client.Workload.Time())) / seconds,
			Share:           work.Seconds() / seconds,
			Held:            time.Duration(p.heldNs), Overruns: p.overruns,
		})
	}
	return out
}

// quantileOf interpolates between the ranks of sorted values.
func quantileOf(sorted []uint64, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := q * float64(len(sorted)-1)
	low := int(rank)
	high := min(low+1, len(sorted)-1)
	part := rank - float64(low)
	return time.Duration(float64(sorted[low])*(1-part) + float64(sorted[high])*part)
}
