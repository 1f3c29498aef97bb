package daemon

import (
	"context"
	"sync"

	"github.com/heddle-project/heddle/runtime/gpu"
)

// inventory remembers the devices between two looks at the driver.
type inventory struct {
	mu      sync.Mutex
	devices []gpu.Device
	mig     map[gpu.UUID]bool // of MIG devices
}

func (v *inventory) refresh(ctx context.Context, driver gpu.Driver) error {
	devices, err := driver.Devices(ctx)
	if err != nil {
		return err
	}
	mig := map[gpu.UUID]bool{}
	for _, d := range devices {
		for _, m := range d.MIGDevices {
			mig[m.UUID] = true
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.devices, v.mig = devices, mig
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
