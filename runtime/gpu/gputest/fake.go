// Package gputest holds a gpu.Driver in memory and the suite that every driver
// must pass.
package gputest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/heddle-project/heddle/runtime/errdefs"
	"github.com/heddle-project/heddle/runtime/gpu"
)

// Fake is a node whose devices are what the test says.
type Fake struct {
	mu      sync.Mutex
	devices []gpu.Device
	usage   map[gpu.UUID]gpu.Usage
	shares  map[gpu.UUID][]gpu.ProcessShare
	failure error
	closed  bool
}

var _ gpu.Driver = (*Fake)(nil)

// New returns a fake with these devices, all idle.
func New(devices ...gpu.Device) *Fake {
	return &Fake{
		devices: devices,
		usage:   map[gpu.UUID]gpu.Usage{},
		shares:  map[gpu.UUID][]gpu.ProcessShare{},
	}
}

// H100 is a device for tests that need just any; n makes its UUID.
func H100(n byte) gpu.Device {
	return gpu.Device{
		UUID:            gpu.UUID{0: 0x9a, 15: n},
		Index:           int(n),
		Name:            "Fake H100",
		PCIBusID:        fmt.Sprintf("00000000:%02X:00.0", n+1),
		MemoryBytes:     80 << 30,
		Multiprocessors: 132,
		MIG:             gpu.MIGMode{Supported: true},
		ComputeMode:     gpu.ComputeDefault,
	}
}

// SetUsage changes what a device is doing.
func (f *Fake) SetUsage(uuid gpu.UUID, u gpu.Usage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.usage[uuid] = u
}

// SetProcessShares makes a device sample its processes.
func (f *Fake) SetProcessShares(uuid gpu.UUID, shares []gpu.ProcessShare) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shares[uuid] = shares
}

// Fail lets every later call fail with err, until it is nil.
func (f *Fake) Fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failure = err
}

// check must be called with the lock held.
func (f *Fake) check() error {
	if f.closed {
		return fmt.Errorf("fake driver is closed: %w", errdefs.ErrUnavailable)
	}
	return f.failure
}

// Versions implements gpu.Driver.
func (f *Fake) Versions(context.Context) (gpu.Versions, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return gpu.Versions{Driver: "999.1", NVML: "12.999.1", CUDA: "12.9"}, f.check()
}

// Devices implements gpu.Driver.
func (f *Fake) Devices(context.Context) ([]gpu.Device, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.devices), f.check()
}

// known must be called with the lock held.
func (f *Fake) known(uuid gpu.UUID) error {
	if err := f.check(); err != nil {
		return err
	}
	if !slices.ContainsFunc(f.devices, func(d gpu.Device) bool { return d.UUID == uuid }) {
		return fmt.Errorf("device %v: %w", uuid, errdefs.ErrNotFound)
	}
	return nil
}

// Usage implements gpu.Driver.
func (f *Fake) Usage(_ context.Context, uuid gpu.UUID) (gpu.Usage, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.known(uuid); err != nil {
		return gpu.Usage{}, err
	}
	return f.usage[uuid], nil
}

// ProcessShares implements gpu.Driver.
func (f *Fake) ProcessShares(_ context.Context, uuid gpu.UUID, _ time.Time) ([]gpu.ProcessShare, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.known(uuid); err != nil {
		return nil, err
	}
	shares, ok := f.shares[uuid]
	if !ok {
		return nil, fmt.Errorf("process shares of %v: %w", uuid, errdefs.ErrUnsupported)
	}
	return slices.Clone(shares), nil
}

// Close implements gpu.Driver.
func (f *Fake) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	return nil
}
