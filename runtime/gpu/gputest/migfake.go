package gputest

import (
	"context"
	"slices"
	"sync"

	"github.com/heddle-project/heddle/runtime/errdefs"
	"github.com/heddle-project/heddle/runtime/gpu"
)

// MIG cuts devices in memory, by the rules of real ones: placements do not overlap, slices and engines
// are no more than the device has, numbers are used again, and what is held is not destroyed.
type MIG struct {
	mu      sync.Mutex
	devices map[gpu.UUID]*cut
	made    byte // MIG devices so far, for UUIDs

	// Before, if set, is called before each change with its name ("create GPU instance"), and its error
	// is the answer instead. It may panic, as the end of a process would come.
	Before func(call string) error
	// After is Before after the change was made.
	After func(call string)
}

var _ gpu.MIG = (*MIG)(nil)

// cut is one device.
type cut struct {
	profiles  []gpu.Profile
	mode      bool
	instances []gpu.GPUInstance
	held      map[int]bool // GPU instances on which programs run
}

// NewMIG returns devices with these profiles, MIG on and uncut.
func NewMIG(profiles []gpu.Profile, devices ...gpu.UUID) *MIG {
	m := &MIG{devices: map[gpu.UUID]*cut{}}
	for _, device := range devices {
		m.devices[device] = &cut{profiles: profiles, mode: true, held: map[int]bool{}}
	}
	return m
}

// Hold lets programs run on a GPU instance, or end.
func (m *MIG) Hold(device gpu.UUID, instance int, held bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.devices[device].held[instance] = held
}

// change finds a device that may be changed now.
func (m *MIG) change(device gpu.UUID, call string) (*cut, error) {
	if m.Before != nil {
		if err := m.Before(call); err != nil {
			return nil, err
		}
	}
	return m.find(device)
}

func (m *MIG) find(device gpu.UUID) (*cut, error) {
	c := m.devices[device]
	switch {
	case c == nil:
		return nil, errdefs.Errorf(errdefs.NotFound, "no device %v", device)
	case !c.mode:
		return nil, errdefs.Errorf(errdefs.Unsupported, "MIG is off")
	}
	return c, nil
}

func (m *MIG) done(call string) {
	if m.After != nil {
		m.After(call)
	}
}

// MIGMode implements gpu.MIG.
func (m *MIG) MIGMode(_ context.Context, device gpu.UUID) (gpu.MIGMode, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.devices[device]
	if c == nil {
		return gpu.MIGMode{}, errdefs.Errorf(errdefs.NotFound, "no device %v", device)
	}
	return gpu.MIGMode{Supported: true, Current: c.mode, Pending: c.mode}, nil
}

// SetMIGMode implements gpu.MIG.
func (m *MIG) SetMIGMode(_ context.Context, device gpu.UUID, on bool) (gpu.Activation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.devices[device]
	if c == nil {
		return 0, errdefs.Errorf(errdefs.NotFound, "no device %v", device)
	}
	if len(c.instances) != 0 {
		return gpu.ActivationInUse, nil
	}
	c.mode = on
	return gpu.ActivationDone, nil
}

// Profiles implements gpu.MIG.
func (m *MIG) Profiles(_ context.Context, device gpu.UUID) ([]gpu.Profile, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, err := m.find(device)
	if err != nil {
		return nil, err
	}
	return slices.Clone(c.profiles), nil
}

// GPUInstances implements gpu.MIG.
func (m *MIG) GPUInstances(_ context.Context, device gpu.UUID) ([]gpu.GPUInstance, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, err := m.find(device)
	if err != nil {
		return nil, err
	}
	list := slices.Clone(c.instances)
	for i := range list {
		list[i].Compute = slices.Clone(list[i].Compute)
	}
	slices.SortFunc(list, func(a, b gpu.GPUInstance) int { return a.Placement.Start - b.Placement.Start })
	return list, nil
}

func (c *cut) profile(id int) *gpu.Profile {
	for i := range c.profiles {
		if c.profiles[i].ID == id {
			return &c.profiles[i]
		}
	}
	return nil
}

func (c *cut) instance(id int) int {
	return slices.IndexFunc(c.instances, func(in gpu.GPUInstance) bool { return in.ID == id })
}

// CreateGPUInstance implements gpu.MIG.
func (m *MIG) CreateGPUInstance(_ context.Context, device gpu.UUID, profile int, at gpu.Placement) (gpu.GPUInstance, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, err := m.change(device, "create GPU instance")
	if err != nil {
		return gpu.GPUInstance{}, err
	}
	p := c.profile(profile)
	if p == nil || at.Size != p.MemorySlices || !slices.Contains(p.Starts, at.Start) {
		return gpu.GPUInstance{}, errdefs.Errorf(errdefs.Invalid, "profile %d at %s", profile, at)
	}
	compute, most := p.ComputeSlices, 0
	engines, all := p.Engines, gpu.Engines{}
	for _, q := range c.profiles {
		if q.ComputeSlices > most {
			most, all = q.ComputeSlices, q.Engines
		}
	}
	for _, in := range c.instances {
		if in.Placement.Start < at.End() && at.Start < in.Placement.End() {
			return gpu.GPUInstance{}, errdefs.Errorf(errdefs.Exhausted, "%s is taken", in.Placement)
		}
		compute += c.profile(in.Profile).ComputeSlices
		engines = engines.Add(c.profile(in.Profile).Engines)
	}
	if compute > most || !engines.Within(all) {
		return gpu.GPUInstance{}, errdefs.Errorf(errdefs.Exhausted, "not enough compute slices or engines")
	}
	id := 1
	for c.instance(id) >= 0 {
		id++
	}
	in := gpu.GPUInstance{ID: id, Profile: profile, Placement: at}
	c.instances = append(c.instances, in)
	m.done("create GPU instance")
	return in, nil
}

// DestroyGPUInstance implements gpu.MIG.
func (m *MIG) DestroyGPUInstance(_ context.Context, device gpu.UUID, id int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, err := m.change(device, "destroy GPU instance")
	if err != nil {
		return err
	}
	at := c.instance(id)
	switch {
	case at < 0:
		return errdefs.Errorf(errdefs.NotFound, "no GPU instance %d", id)
	case len(c.instances[at].Compute) != 0 || c.held[id]:
		return errdefs.Errorf(errdefs.Busy, "GPU instance %d is in use", id)
	}
	c.instances = slices.Delete(c.instances, at, at+1)
	m.done("destroy GPU instance")
	return nil
}

// CreateComputeInstance implements gpu.MIG.
func (m *MIG) CreateComputeInstance(_ context.Context, device gpu.UUID, instance int) (gpu.ComputeInstance, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, err := m.change(device, "create compute instance")
	if err != nil {
		return gpu.ComputeInstance{}, err
	}
	at := c.instance(instance)
	switch {
	case at < 0:
		return gpu.ComputeInstance{}, errdefs.Errorf(errdefs.NotFound, "no GPU instance %d", instance)
	case len(c.instances[at].Compute) != 0:
		return gpu.ComputeInstance{}, errdefs.Errorf(errdefs.Exhausted, "GPU instance %d is full", instance)
	}
	m.made++
	ci := gpu.ComputeInstance{UUID: gpu.UUID{0: 0xc1, 15: m.made}}
	c.instances[at].Compute = append(c.instances[at].Compute, ci)
	m.done("create compute instance")
	return ci, nil
}

// DestroyComputeInstance implements gpu.MIG.
func (m *MIG) DestroyComputeInstance(_ context.Context, device gpu.UUID, instance, id int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, err := m.change(device, "destroy compute instance")
	if err != nil {
		return err
	}
	at := c.instance(instance)
	if at < 0 {
		return errdefs.Errorf(errdefs.NotFound, "no GPU instance %d", instance)
	}
	ci := slices.IndexFunc(c.instances[at].Compute, func(ci gpu.ComputeInstance) bool { return ci.ID == id })
	switch {
	case ci < 0:
		return errdefs.Errorf(errdefs.NotFound, "no compute instance %d", id)
	case c.held[instance]:
		return errdefs.Errorf(errdefs.Busy, "compute instance %d is in use", id)
	}
	c.instances[at].Compute = slices.Delete(c.instances[at].Compute, ci, ci+1)
	m.done("destroy compute instance")
	return nil
}
