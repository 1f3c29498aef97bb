package gpu

import (
	"context"
	"fmt"
)

// Profile is one way in which a device can be cut: the shape of a GPU instance. Its identity is the
// device's UUID and ID; the same name is another shape on another board.
type Profile struct {
	ID   int    // as NVML numbers it on this board
	Name string // "1g.10gb+me"

	ComputeSlices   int
	MemorySlices    int // what each placement takes
	MemoryBytes     uint64
	Multiprocessors int
	Engines         Engines
	InstancesMax    int // on an empty device
	Starts          []int
}

// Engines are the parts of a device that come in whole numbers besides its multiprocessors.
type Engines struct{ Copy, Decode, Encode, JPEG, OFA int }

// Add returns the sum of both.
func (e Engines) Add(o Engines) Engines {
	return Engines{e.Copy + o.Copy, e.Decode + o.Decode, e.Encode + o.Encode, e.JPEG + o.JPEG, e.OFA + o.OFA}
}

// Within reports whether there are no more of any kind than in most.
func (e Engines) Within(most Engines) bool {
	return e.Copy <= most.Copy && e.Decode <= most.Decode && e.Encode <= most.Encode && e.JPEG <= most.JPEG && e.OFA <= most.OFA
}

// Placement is where a GPU instance lies, in memory slices.
type Placement struct{ Start, Size int }

// End is the first memory slice behind it.
func (p Placement) End() int { return p.Start + p.Size }

func (p Placement) String() string { return fmt.Sprintf("%d:%d", p.Start, p.Size) }

// GPUInstance is a part of a device. Its ID is used again once it is destroyed, so it names an instance
// only together with the rest.
type GPUInstance struct { //nolint:revive // MIG calls it that; an instance alone is neither it nor a compute instance
	ID        int
	Profile   int // ID of its profile
	Placement Placement
	Compute   []ComputeInstance // none: nothing can run on it, and no list of MIG devices shows it
}

// ComputeInstance is a part of a GPU instance that programs see as one MIG device.
type ComputeInstance struct {
	ID      int
	Profile int // as NVML numbers it: 0 for one compute slice, 1 for two
	UUID    UUID
}

// Activation is what came of a change of the MIG mode. The call that asks for it succeeds in any case.
type Activation int

// What can come of it.
const (
	ActivationDone  Activation = iota
	ActivationInUse            // programs hold the device: the mode is pending
	ActivationReset            // the device has to be reset first: the mode is pending
)

func (a Activation) String() string {
	switch a {
	case ActivationDone:
		return "done"
	case ActivationInUse:
		return "pending, the device is in use"
	case ActivationReset:
		return "pending until the device is reset"
	default:
		return "unknown"
	}
}

// MIG cuts devices. All changes name their placement: what the driver chooses by itself depends on the
// order of the calls. Errors are of the kinds of errdefs: Busy while somebody holds what is to be
// destroyed, Exhausted where an instance does not fit, Invalid for a placement that the profile does not
// have, NotFound for what is gone, a device that is lost included, Unsupported while MIG is off or not
// there, and PermissionDenied.
type MIG interface {
	MIGMode(ctx context.Context, device UUID) (MIGMode, error)
	// SetMIGMode is for maintenance: it may need a reset, and it ends what runs on the device.
	SetMIGMode(ctx context.Context, device UUID, on bool) (Activation, error)
	// Profiles lists how the device can be cut, as its driver says, whatever is on it now.
	Profiles(ctx context.Context, device UUID) ([]Profile, error)
	// GPUInstances lists all, those without a compute instance and those that others made included.
	GPUInstances(ctx context.Context, device UUID) ([]GPUInstance, error)
	CreateGPUInstance(ctx context.Context, device UUID, profile int, at Placement) (GPUInstance, error)
	// DestroyGPUInstance needs its compute instances gone.
	DestroyGPUInstance(ctx context.Context, device UUID, id int) error
	// CreateComputeInstance makes the one that fills the GPU instance.
	CreateComputeInstance(ctx context.Context, device UUID, instance int) (ComputeInstance, error)
	DestroyComputeInstance(ctx context.Context, device UUID, instance, id int) error
}
