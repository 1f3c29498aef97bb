// Package partition plans how GPUs are cut: which layouts a board allows, how one becomes another with
// the least disturbance, and which layout leaves most room for what may come. It is pure: devices come
// in as what their driver said, plans go out, and whoever carries them out looks at the device again.
package partition

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/heddle-project/heddle/runtime/errdefs"
	"github.com/heddle-project/heddle/runtime/gpu"
)

// slicesMax bounds the memory slices of a board; the largest today has 8.
const slicesMax = 32

// Board is what can be made of one device, as its driver lists it.
type Board struct {
	profiles []gpu.Profile // the largest first
	memory   int           // slices
	compute  int           // slices
	engines  gpu.Engines
}

// NewBoard makes a board of a device's profiles. What there is of slices and engines is what the profile
// of the whole device has.
func NewBoard(profiles []gpu.Profile) (*Board, error) {
	if len(profiles) == 0 {
		return nil, errdefs.Errorf(errdefs.Unsupported, "the device has no profiles")
	}
	b := &Board{profiles: slices.Clone(profiles)}
	for i := range b.profiles {
		p := &b.profiles[i]
		if p.MemorySlices < 1 || p.ComputeSlices < 1 || len(p.Starts) == 0 {
			return nil, errdefs.Errorf(errdefs.Corrupt, "profile %s (%d) takes no slices or has no place", p.Name, p.ID)
		}
		for _, start := range p.Starts {
			if start < 0 || start+p.MemorySlices > slicesMax {
				return nil, errdefs.Errorf(errdefs.Corrupt, "profile %s (%d) starts at %d", p.Name, p.ID, start)
			}
			b.memory = max(b.memory, start+p.MemorySlices)
		}
		b.compute = max(b.compute, p.ComputeSlices)
		e := p.Engines
		b.engines = gpu.Engines{
			Copy: max(b.engines.Copy, e.Copy), Decode: max(b.engines.Decode, e.Decode), Encode: max(b.engines.Encode, e.Encode),
			JPEG: max(b.engines.JPEG, e.JPEG), OFA: max(b.engines.OFA, e.OFA),
		}
	}
	// The most constrained first: it is what a search should place first, and what is created first.
	slices.SortStableFunc(b.profiles, func(x, y gpu.Profile) int {
		if x.MemorySlices != y.MemorySlices {
			return y.MemorySlices - x.MemorySlices
		}
		return y.ComputeSlices - x.ComputeSlices
	})
	return b, nil
}

// Profiles are those of the board, the largest first. The board keeps them.
func (b *Board) Profiles() []gpu.Profile { return b.profiles }

// MemorySlices is how many the board has.
func (b *Board) MemorySlices() int { return b.memory }

// ComputeSlices is how many the board has.
func (b *Board) ComputeSlices() int { return b.compute }

// Profile finds a profile by its number on this board.
func (b *Board) Profile(id int) (*gpu.Profile, error) {
	for i := range b.profiles {
		if b.profiles[i].ID == id {
			return &b.profiles[i], nil
		}
	}
	return nil, errdefs.Errorf(errdefs.NotFound, "no profile %d; the board has %s", id, b.names())
}

// Named finds a profile by its name.
func (b *Board) Named(name string) (*gpu.Profile, error) {
	for i := range b.profiles {
		if b.profiles[i].Name == name {
			return &b.profiles[i], nil
		}
	}
	return nil, errdefs.Errorf(errdefs.NotFound, "no profile %q; the board has %s", name, b.names())
}

func (b *Board) names() string {
	names := make([]string, len(b.profiles))
	for i := range b.profiles {
		names[i] = b.profiles[i].Name
	}
	return strings.Join(names, ", ")
}

// room is what is taken of a board.
type room struct {
	memory  uint32 // a bit for each slice
	compute int
	engines gpu.Engines
}

// window is the memory slices of an instance of p that starts there.
func window(p *gpu.Profile, start int) uint32 {
	return (1<<uint(p.MemorySlices) - 1) << uint(start)
}

// fits reports whether an instance can be put beside what is there.
func (b *Board) fits(r *room, p *gpu.Profile, start int) bool {
	return r.memory&window(p, start) == 0 && r.compute+p.ComputeSlices <= b.compute && r.engines.Add(p.Engines).Within(b.engines)
}

func (r *room) take(p *gpu.Profile, start int) {
	r.memory |= window(p, start)
	r.compute += p.ComputeSlices
	r.engines = r.engines.Add(p.Engines)
}

// free is how many memory slices are not taken.
func (b *Board) free(r *room) int { return b.memory - bits.OnesCount32(r.memory) }

// Instance is a GPU instance in a layout.
type Instance struct {
	Profile int // ID
	Start   int // memory slice
}

// Layout is how a device is cut, by start. The empty one is a layout, too.
type Layout []Instance

// String is like "4g.40gb at 0, 3g.40gb at 4", with the board's names.
func (b *Board) String(l Layout) string {
	if len(l) == 0 {
		return "nothing"
	}
	parts := make([]string, len(l))
	for i, in := range l {
		name := fmt.Sprintf("profile %d", in.Profile)
		if p, err := b.Profile(in.Profile); err == nil {
			name = p.Name
		}
		parts[i] = fmt.Sprintf("%s at %d", name, in.Start)
	}
	return strings.Join(parts, ", ")
}

// Sorted returns the layout by start.
func (l Layout) Sorted() Layout {
	l = slices.Clone(l)
	slices.SortFunc(l, func(x, y Instance) int { return x.Start - y.Start })
	return l
}

// Check says why a layout cannot be, nil if it can.
func (b *Board) Check(l Layout) error {
	_, err := b.room(l)
	return err
}

// room adds up a layout.
func (b *Board) room(l Layout) (room, error) {
	var r room
	count := map[int]int{}
	for i, in := range l {
		p, err := b.Profile(in.Profile)
		if err != nil {
			return room{}, err
		}
		if !slices.Contains(p.Starts, in.Start) {
			return room{}, errdefs.Errorf(errdefs.Invalid, "%s cannot start at slice %d, only at %s", p.Name, in.Start, numbers(p.Starts))
		}
		if count[p.ID]++; count[p.ID] > p.InstancesMax {
			return room{}, errdefs.Errorf(errdefs.Exhausted, "%d instances of %s, the board allows %d", count[p.ID], p.Name, p.InstancesMax)
		}
		if !b.fits(&r, p, in.Start) {
			return room{}, b.clash(&r, l[:i], p, in.Start)
		}
		r.take(p, in.Start)
	}
	return r, nil
}

// clash says what an instance does not fit.
func (b *Board) clash(r *room, there Layout, p *gpu.Profile, start int) error {
	for _, other := range there {
		q, err := b.Profile(other.Profile)
		if err == nil && window(q, other.Start)&window(p, start) != 0 {
			return errdefs.Errorf(errdefs.Exhausted, "%s at slice %d lies on %s at slice %d", p.Name, start, q.Name, other.Start)
		}
	}
	if r.compute+p.ComputeSlices > b.compute {
		return errdefs.Errorf(errdefs.Exhausted, "%s needs %d compute slices, of %d there are %d left", p.Name, p.ComputeSlices, b.compute, b.compute-r.compute)
	}
	return errdefs.Errorf(errdefs.Exhausted, "%s needs media or copy engines that others have", p.Name)
}

func numbers(list []int) string {
	parts := make([]string, len(list))
	for i, n := range list {
		parts[i] = fmt.Sprint(n)
	}
	return strings.Join(parts, ", ")
}
