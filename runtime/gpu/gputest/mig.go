package gputest

import (
	"errors"
	"slices"
	"testing"

	"github.com/heddle-project/heddle/runtime/errdefs"
	"github.com/heddle-project/heddle/runtime/gpu"
)

// MIGSuite checks what every gpu.MIG must do, on a device that changes its mode without a reset, that
// nobody uses, and that is left as it was found: uncut and with MIG off.
func MIGSuite(t *testing.T, m gpu.MIG, device gpu.UUID) {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	refused := func(what string, err, kind error) {
		t.Helper()
		if !errors.Is(err, kind) {
			t.Errorf("%s: %v, want an error of the kind %v", what, err, kind)
		}
	}
	list := func() []gpu.GPUInstance {
		t.Helper()
		found, err := m.GPUInstances(ctx, device)
		must(err)
		return found
	}
	setMode := func(on bool) {
		t.Helper()
		activation, err := m.SetMIGMode(ctx, device, on)
		must(err)
		mode, err := m.MIGMode(ctx, device)
		if want := (gpu.MIGMode{Supported: true, Current: on, Pending: on}); err != nil || activation != gpu.ActivationDone || mode != want {
			t.Fatalf("set to %v: %v, %v, %v", on, activation, mode, err)
		}
	}
	_, err := m.Profiles(ctx, gpu.UUID{1, 2, 3})
	refused("a device that is not there", err, errdefs.ErrNotFound)
	setMode(true)

	profiles, err := m.Profiles(ctx, device)
	must(err)
	largest, smallest := profiles[0], profiles[0]
	for _, p := range profiles {
		if p.Name == "" || p.MemoryBytes == 0 || p.Multiprocessors == 0 || p.InstancesMax == 0 || len(p.Starts) == 0 || p.MemorySlices == 0 {
			t.Errorf("incomplete profile %+v", p)
		}
		if p.MemorySlices > largest.MemorySlices {
			largest = p
		}
		if p.MemorySlices < smallest.MemorySlices || p.MemorySlices == smallest.MemorySlices && p.InstancesMax > smallest.InstancesMax {
			smallest = p
		}
	}
	if got := list(); len(got) != 0 {
		t.Fatalf("on an uncut device: %+v", got)
	}
	at := gpu.Placement{Start: smallest.Starts[len(smallest.Starts)-1], Size: smallest.MemorySlices}
	gi, err := m.CreateGPUInstance(ctx, device, smallest.ID, at)
	must(err)
	if gi.Profile != smallest.ID || gi.Placement != at || len(gi.Compute) != 0 {
		t.Errorf("asked for %s at %s, got %+v", smallest.Name, at, gi)
	}
	if got := list(); len(got) != 1 || got[0].ID != gi.ID { // though it has no compute instance
		t.Errorf("listed: %+v", got)
	}
	ci, err := m.CreateComputeInstance(ctx, device, gi.ID)
	must(err)
	if got := list(); len(got) != 1 || !slices.Equal(got[0].Compute, []gpu.ComputeInstance{ci}) || ci.UUID.IsZero() {
		t.Errorf("listed: %+v, made %+v", got, ci)
	}

	_, err = m.CreateGPUInstance(ctx, device, smallest.ID, at)
	refused("a second instance in one place", err, errdefs.ErrExhausted)
	_, err = m.CreateGPUInstance(ctx, device, largest.ID, gpu.Placement{Start: largest.Starts[0], Size: largest.MemorySlices})
	refused("the whole device beside a part of it", err, errdefs.ErrExhausted)
	_, err = m.CreateGPUInstance(ctx, device, smallest.ID, gpu.Placement{Start: 63, Size: smallest.MemorySlices})
	refused("a place that is none", err, errdefs.ErrInvalid)
	_, err = m.CreateGPUInstance(ctx, device, 12345, at)
	refused("a profile that is none", err, errdefs.ErrInvalid)
	_, err = m.CreateComputeInstance(ctx, device, gi.ID)
	refused("a second whole compute instance", err, errdefs.ErrExhausted)
	refused("a GPU instance with a compute instance", m.DestroyGPUInstance(ctx, device, gi.ID), errdefs.ErrBusy)
	refused("a compute instance that is not there", m.DestroyComputeInstance(ctx, device, gi.ID, ci.ID+1), errdefs.ErrNotFound)
	refused("a GPU instance that is not there", m.DestroyGPUInstance(ctx, device, gi.ID+1), errdefs.ErrNotFound)

	must(m.DestroyComputeInstance(ctx, device, gi.ID, ci.ID))
	must(m.DestroyGPUInstance(ctx, device, gi.ID))
	refused("destroyed twice", m.DestroyGPUInstance(ctx, device, gi.ID), errdefs.ErrNotFound)
	again, err := m.CreateGPUInstance(ctx, device, smallest.ID, at)
	must(err)
	other, err := m.CreateComputeInstance(ctx, device, again.ID)
	must(err)
	if again.ID != gi.ID || other.UUID == ci.UUID {
		t.Errorf("made again: instance %d and device %v, before %d and %v; a number is used again, a UUID is not", again.ID, other.UUID, gi.ID, ci.UUID)
	}
	must(m.DestroyComputeInstance(ctx, device, again.ID, other.ID))
	must(m.DestroyGPUInstance(ctx, device, again.ID))
	setMode(false)
	_, err = m.CreateGPUInstance(ctx, device, smallest.ID, at)
	refused("with MIG off", err, errdefs.ErrUnsupported)
}
