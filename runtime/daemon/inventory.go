package daemon

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/heddle-project/heddle/runtime/errdefs"
	"github.com/heddle-project/heddle/runtime/gpu"
)

// inventory remembers the devices between two looks at the driver.
type inventory struct {
	mu      sync.Mutex
	devices []gpu.Device
	mig     map[gpu.UUID]bool // of MIG devices
	models  map[gpu.UUID]model
	shared  map[gpu.UUID]bool // kernels of different processes run side by side
}

// model is what the launches of a device are compared with those of others by.
type model struct {
	name            string
	multiprocessors int // 0 = unknown
}

func (v *inventory) refresh(ctx context.Context, driver gpu.Driver) error {
	devices, err := driver.Devices(ctx)
	if err != nil {
		return err
	}
	mig := map[gpu.UUID]bool{}
	models := map[gpu.UUID]model{}
	for i := range devices {
		d := &devices[i]
		models[d.UUID] = model{d.Name, d.Multiprocessors}
		for _, m := range d.MIGDevices {
			mig[m.UUID] = true
			models[m.UUID] = model{name: d.Name + " MIG " + m.Profile}
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.devices, v.mig, v.models = devices, mig, models
	return nil
}

func (v *inventory) all() []gpu.Device {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.devices
}

func (v *inventory) count() int { return len(v.all()) }

// name is how NVML writes the UUID of a device that a client opened.
func (v *inventory) name(uuid gpu.UUID) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.mig[uuid] {
		return uuid.MIGString()
	}
	return uuid.GPUString()
}

// model returns the model of a device or of a MIG device.
func (v *inventory) model(uuid gpu.UUID) (model, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	m, ok := v.models[uuid]
	return m, ok
}

// multiprocessors is how many a device of a model has, 0 = there is none on this node.
func (v *inventory) multiprocessors(name string) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, m := range v.models {
		if m.name == name {
			return m.multiprocessors
		}
	}
	return 0
}

// uuids are those of all devices and MIG devices.
func (v *inventory) uuids() []gpu.UUID {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Collect(maps.Keys(v.models))
}

// named finds devices and MIG devices by UUID; none named = all. A device that is cut stands for its
// MIG devices, too: they are where its clients are.
func (v *inventory) named(names []string) ([]gpu.UUID, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	var found []gpu.UUID
	for _, d := range v.devices {
		whole := len(names) == 0 || slices.Contains(names, d.UUID.GPUString())
		if whole {
			found = append(found, d.UUID)
		}
		for _, m := range d.MIGDevices {
			if whole || slices.Contains(names, m.UUID.MIGString()) {
				found = append(found, m.UUID)
			}
		}
	}
	for _, name := range names {
		uuid, err := gpu.ParseUUID(name)
		if err != nil {
			return nil, errdefs.Errorf(errdefs.Invalid, "%w", err)
		}
		if _, ok := v.models[uuid]; !ok {
			return nil, errdefs.Errorf(errdefs.NotFound, "no device %s on this node", name)
		}
	}
	return found, nil
}

// setShared notes the devices on which kernels of different processes run side by side.
func (v *inventory) setShared(shared map[gpu.UUID]bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.shared = shared
}

// sharing returns how many multiprocessors a device has, 0 = unknown, and whether kernels of different
// processes run side by side on it.
func (v *inventory) sharing(uuid gpu.UUID) (multiprocessors int, shared bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.models[uuid].multiprocessors, v.shared[uuid]
}
