package partition

import (
	"slices"

	"github.com/heddle-project/heddle/runtime/gpu"
)

// Weights say how likely a profile is to be asked for, by its number; a profile that is not there counts
// as 1.
type Weights map[int]float64

func (w Weights) of(id int) float64 {
	if weight, ok := w[id]; ok {
		return weight
	}
	return 1
}

// Fragments is how much of what is free cannot be used, because it lies in the wrong places: for each
// profile, how many instances the free slices would be enough for, less how many there are places for,
// times what one takes. 0 = all of it can. (In the manner of Weng et al., USENIX ATC 2023, and Zambianco
// et al., arXiv 2511.18906.)
func (b *Board) Fragments(l Layout, w Weights) (float64, error) {
	r, err := b.room(l)
	if err != nil {
		return 0, err
	}
	return b.fragments(&r, w), nil
}

func (b *Board) fragments(r *room, w Weights) float64 {
	sum := 0.0
	for i := range b.profiles {
		p := &b.profiles[i]
		compute := (b.compute - r.compute) / p.ComputeSlices
		potential := min(b.free(r)/p.MemorySlices, compute, len(p.Starts))
		sum += w.of(p.ID) * float64(p.MemorySlices*(potential-min(b.places(r, p), compute)))
	}
	return sum
}

// places is for how many instances of one profile there is a place. Starts of one profile never overlap.
func (b *Board) places(r *room, p *gpu.Profile) (n int) {
	for _, start := range p.Starts {
		if r.memory&window(p, start) == 0 {
			n++
		}
	}
	return n
}

// Best is the start at which one more instance of a profile leaves the fewest fragments, and how many more
// these are than before. Of equal ones it takes the highest for a profile that can also lie where larger
// ones cannot, else the lowest. The error is Exhausted if there is no place.
func (b *Board) Best(l Layout, profile int, w Weights) (start int, growth float64, err error) {
	r, err := b.room(l)
	if err != nil {
		return 0, 0, err
	}
	p, err := b.Profile(profile)
	if err != nil {
		return 0, 0, err
	}
	before := b.fragments(&r, w)
	start = -1
	for _, at := range p.Starts {
		if b.Check(append(slices.Clip(l), Instance{profile, at})) != nil {
			continue
		}
		after := r
		after.take(p, at)
		if grown := b.fragments(&after, w) - before; start < 0 || grown < growth || grown == growth && at > start {
			start, growth = at, grown
		}
	}
	if start < 0 {
		return 0, 0, b.full(l, p)
	}
	return start, growth, nil
}

// full says why there is no place for a profile.
func (b *Board) full(l Layout, p *gpu.Profile) error {
	var first error
	for _, at := range p.Starts {
		if err := b.Check(append(slices.Clip(l), Instance{p.ID, at})); err != nil && first == nil {
			first = err
		}
	}
	return first
}
