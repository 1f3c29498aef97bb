package gputest

import (
	"errors"
	"testing"
	"time"

	"github.com/heddle-project/heddle/runtime/errdefs"
	"github.com/heddle-project/heddle/runtime/gpu"
)

// Suite checks what every gpu.Driver must do, on a node that has at least one
// device: the fake, the software GPU and a real one.
func Suite(t *testing.T, open func(t *testing.T) gpu.Driver) {
	t.Run("versions are known", func(t *testing.T) {
		v, err := open(t).Versions(t.Context())
		if err != nil || v.Driver == "" || v.NVML == "" {
			t.Fatalf("%+v, %v", v, err)
		}
	})
	t.Run("every device has an identity of its own and memory", func(t *testing.T) {
		devices := mustDevices(t, open(t))
		seen := map[gpu.UUID]bool{}
		for _, d := range devices {
			if d.UUID.IsZero() || seen[d.UUID] {
				t.Errorf("device %d: UUID %v is zero or not its own", d.Index, d.UUID)
			}
			seen[d.UUID] = true
			if d.Name == "" || d.PCIBusID == "" || d.MemoryBytes == 0 {
				t.Errorf("incomplete device %+v", d)
			}
		}
	})
	t.Run("no device uses more memory than it has", func(t *testing.T) {
		drv := open(t)
		for _, d := range mustDevices(t, drv) {
			u, err := drv.Usage(t.Context(), d.UUID)
			if err != nil {
				t.Fatal(err)
			}
			if u.MemoryUsedBytes > d.MemoryBytes || u.UtilizationPercent > 100 {
				t.Errorf("%s: %+v of %d bytes", d.Name, u, d.MemoryBytes)
			}
		}
	})
	t.Run("a device that is not there is not found", func(t *testing.T) {
		drv := open(t)
		stranger := gpu.UUID{1, 2, 3}
		if _, err := drv.Usage(t.Context(), stranger); !errors.Is(err, errdefs.ErrNotFound) {
			t.Errorf("usage: %v", err)
		}
		_, err := drv.ProcessShares(t.Context(), stranger, time.Time{})
		if !errors.Is(err, errdefs.ErrNotFound) {
			t.Errorf("process shares: %v", err)
		}
	})
	t.Run("process shares are shares, or unsupported", func(t *testing.T) {
		drv := open(t)
		for _, d := range mustDevices(t, drv) {
			shares, err := drv.ProcessShares(t.Context(), d.UUID, time.Time{})
			if err != nil && !errors.Is(err, errdefs.ErrUnsupported) {
				t.Errorf("%s: %v", d.Name, err)
			}
			for _, s := range shares {
				if s.Share < 0 || s.Share > 1 {
					t.Errorf("%s: %+v", d.Name, s)
				}
			}
		}
	})
	t.Run("a closed driver is unavailable, and closing again is fine", func(t *testing.T) {
		drv := open(t)
		for range 2 {
			if err := drv.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := drv.Devices(t.Context()); !errors.Is(err, errdefs.ErrUnavailable) {
			t.Errorf("devices after close: %v", err)
		}
	})
}

func mustDevices(t *testing.T, drv gpu.Driver) []gpu.Device {
	t.Helper()
	devices, err := drv.Devices(t.Context())
	if err != nil || len(devices) == 0 {
		t.Fatalf("%d devices, %v", len(devices), err)
	}
	return devices
}
