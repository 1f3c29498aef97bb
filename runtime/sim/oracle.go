package sim

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/heddle-project/heddle/runtime/sched"
)

// Oracle tells what the lower classes could get from a filler that knows the future and never lets
// two kernels overlap: the most urgent class runs as if alone, and whenever the device is idle
// until its next kernel, the longest of the lower clients' next kernels that fits runs. It pays
// neither for launches nor for waits.
//
// It returns the Share of every client of the lower classes, in the order of the scenario, and 0
// for the others.
func Oracle(ctx context.Context, s Scenario) ([]float64, error) {
	urgent := s.urgent()
	alone := s
	alone.Policy = sched.None{}
	alone.Clients = nil
	var fillers []*filler
	for i := range s.Clients {
		if s.Clients[i].Class == urgent {
			alone.Clients = append(alone.Clients, s.Clients[i])
		} else {
			fillers = append(fillers, &filler{client: i, kernels: s.Clients[i].Workload.Kernels})
		}
	}
	type span struct{ start, end uint64 }
	var busy []span
	if len(alone.Clients) > 0 {
		_, err := play(ctx, alone, func(_ *proc, start, end uint64) { busy = append(busy, span{start, end}) })
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(busy, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	from, to := uint64(s.WarmUp), uint64(s.WarmUp+s.Duration)
	free := uint64(0)
	for _, b := range busy {
		fill(fillers, free, min(b.start, to), from)
		free = max(free, b.end)
	}
	fill(fillers, free, to, from)
	shares := make([]float64, len(s.Clients))
	for _, f := range fillers {
		shares[f.client] = f.work.Seconds() / s.Duration.Seconds()
	}
	return shares, nil
}

type filler struct {
	client  int
	kernels []Kernel
	next    int
	work    time.Duration
}

// fill runs what fits between two times; only work after from counts.
func fill(fillers []*filler, start, end, from uint64) {
	for {
		var best *filler
		for _, f := range fillers {
			t := f.kernels[f.next].Time
			if start+uint64(t) <= end && (best == nil || t > best.kernels[best.next].Time) {
				best = f
			}
		}
		if best == nil {
			return
		}
		t := best.kernels[best.next].Time
		best.next = (best.next + 1) % len(best.kernels)
		start += uint64(max(t, 1))
		if start >= from {
			best.work += t
		}
	}
}
