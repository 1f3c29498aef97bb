package sim

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/heddle-project/heddle/runtime/profiles"
	"github.com/heddle-project/heddle/runtime/sim/device"
)

const (
	// rare is the part of all launches that kernels make up together which belong to no request, such
	// as those that ran once at the start.
	rare = 0.01
	// requestMost bounds a synthetic request.
	requestMost = kernelsMax
)

// FromProfile makes a workload of what was learnt of a real one, on a GPU model of the catalogue.
//
// A profile knows how often kernels were launched, and not in which order: the request has each as
// often as it was launched per request, and spreads them evenly. The kernel that was launched least
// comes once in a request; those that were launched still less, and together make up less than a
// hundredth of the launches, in none. Predictable gaps are pauses of the host inside a
// request; a gap that is not predictable ends one, and how many there were says how many pauses there
// are to a request.
func FromProfile(p *profiles.Profile, gpu string) (Workload, error) {
	model, ok := device.Lookup(gpu)
	if !ok {
		return Workload{}, fmt.Errorf("no GPU model is named %q", gpu)
	}
	d := profiles.Device{
		SMs: int(model.SMs), ThreadsPerSM: int(model.ThreadsPerSM), BlocksPerSM: int(model.BlocksPerSM),
		RegistersPerSM: int(model.RegistersPerSM), SharedPerSM: int(model.SharedMemoryPerSM),
	}
	unit := launchesPerRequest(p)
	if unit == 0 {
		return Workload{}, fmt.Errorf("the profile of %s has no kernel that was measured", p.ID.Workload)
	}
	pauses := pausesPerRequest(p)
	var request []placed
	for key, k := range p.Kernels() {
		count := int(math.Round(float64(k.Launches()) / unit))
		if k.Time.Mean <= 0 || count == 0 {
			continue
		}
		if len(request)+count > requestMost {
			return Workload{}, fmt.Errorf("a request of the profile of %s has more than %d kernels", p.ID.Workload, requestMost)
		}
		kernel := Kernel{Name: k.Name, Time: k.Mean(), SMs: int(k.Shape.SMNeed(d)), DRAM: k.DRAM(d), Spread: k.Time.Deviation() / k.Time.Mean}
		if kernel.SMs == 0 {
			kernel.SMs = d.SMs // it may need them all
		}
		for i := range count {
			at := placed{Kernel: kernel, at: (float64(i) + 0.5) / float64(count), key: key}
			// The pauses lie evenly among the kernel's launches, too.
			if after := pauses[key]; int(float64(i+1)*after.each/float64(count)) > int(float64(i)*after.each/float64(count)) {
				at.Pause = after.length
			}
			request = append(request, at)
		}
	}
	slices.SortFunc(request, func(a, b placed) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.key, b.key)) })
	w := Workload{Name: cmp.Or(p.Label, p.ID.Workload)}
	for i := range request {
		w.Kernels = append(w.Kernels, request[i].Kernel)
	}
	return w, nil
}

type placed struct {
	Kernel

	at  float64 // in the request
	key uint64
}

// launchesPerRequest is how often a kernel that comes once in a request was launched; 0 = nothing was
// measured.
func launchesPerRequest(p *profiles.Profile) float64 {
	var counts []float64
	total := 0.0
	for _, k := range p.Kernels() {
		if n := float64(k.Launches()); n > 0 && k.Time.Mean > 0 {
			counts = append(counts, n)
			total += n
		}
	}
	slices.Sort(counts)
	left := rare * total
	for _, n := range counts {
		if left -= n; left <= 0 {
			return n
		}
	}
	return 0
}

// pause is what follows a kernel.
type pause struct {
	each   float64 // times in a request
	length time.Duration
}

// pausesPerRequest finds the pauses inside a request by the kernel that they follow.
func pausesPerRequest(p *profiles.Profile) map[uint64]pause {
	pauses := map[uint64]pause{}
	weights, ends, least := map[uint64]float64{}, 0.0, math.Inf(1)
	for g := range p.Gaps() {
		switch length := p.Gap(g.Previous, g.Kernel); {
		case length == 0:
			ends += g.Weight
		case g.Mean >= float64(gapLeast):
			before, weight := pauses[g.Kernel], weights[g.Kernel]
			mean := (float64(before.length)*weight + g.Mean*g.Weight) / (weight + g.Weight)
			weights[g.Kernel] += g.Weight
			pauses[g.Kernel] = pause{length: time.Duration(mean)}
			least = min(least, g.Weight)
		}
	}
	if ends == 0 {
		ends = least // the pause that is rarest comes once
	}
	for key, after := range pauses {
		after.each = weights[key] / ends
		pauses[key] = after
	}
	return pauses
}
