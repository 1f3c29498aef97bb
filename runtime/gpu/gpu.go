// Package gpu is the vocabulary of devices and the interface to whatever
// knows them. A device is named by its UUID, never by an index: indexes change
// with reboots, MIG and CUDA_VISIBLE_DEVICES.
package gpu

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
)

// UUID is the identity of a GPU or of a MIG device.
type UUID [16]byte

// ErrUUID says that a text is no device UUID.
var ErrUUID = errors.New("not a device UUID")

// ParseUUID reads the form of NVML: GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx,
// with MIG- or without a prefix also.
func ParseUUID(text string) (UUID, error) {
	var u UUID
	digits := text
	for _, prefix := range []string{"GPU-", "MIG-"} {
		digits = strings.TrimPrefix(digits, prefix)
	}
	if len(digits) != 36 || digits[8] != '-' || digits[13] != '-' || digits[18] != '-' || digits[23] != '-' {
		return u, fmt.Errorf("%q: %w", text, ErrUUID)
	}
	n, err := hex.Decode(u[:], []byte(strings.ReplaceAll(digits, "-", "")))
	if err != nil || n != len(u) {
		return UUID{}, fmt.Errorf("%q: %w", text, ErrUUID)
	}
	return u, nil
}

// IsZero reports whether u names no device.
func (u UUID) IsZero() bool { return u == UUID{} }

// String is the bare form, without GPU- or MIG-.
func (u UUID) String() string {
	h := hex.EncodeToString(u[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// GPUString is the form in which NVML names a GPU.
func (u UUID) GPUString() string { return "GPU-" + u.String() }

// MIGString is the form in which NVML names a MIG device.
func (u UUID) MIGString() string { return "MIG-" + u.String() }

// MIGMode is whether a device is cut, now and after its next reset.
type MIGMode struct {
	Supported bool
	Current   bool
	Pending   bool
}

func (m MIGMode) String() string {
	word := func(on bool) string {
		if on {
			return "enabled"
		}
		return "disabled"
	}
	switch {
	case !m.Supported:
		return "unsupported"
	case m.Current != m.Pending:
		return word(m.Current) + ", pending " + word(m.Pending)
	default:
		return word(m.Current)
	}
}

// ComputeMode says how many processes may have a context on a device.
type ComputeMode string

// The compute modes.
const (
	ComputeDefault          ComputeMode = "default"
	ComputeProhibited       ComputeMode = "prohibited"
	ComputeExclusiveProcess ComputeMode = "exclusive process"
	ComputeUnknown          ComputeMode = "unknown"
)

// Device is one physical GPU: what does not change while it runs.
type Device struct {
	UUID            UUID
	Index           int // of this moment, for people only
	Name            string
	PCIBusID        string
	MemoryBytes     uint64
	Multiprocessors int // 0 = unknown
	MIG             MIGMode
	MIGDevices      []MIGDevice
	ComputeMode     ComputeMode
}

// MIGDevice is a pair of GPU instance and compute instance as a process sees
// it.
type MIGDevice struct {
	UUID        UUID
	Profile     string // as in the device's name, "1g.10gb"; empty = unknown
	MemoryBytes uint64
}

// Usage is what changes from second to second.
type Usage struct {
	MemoryUsedBytes    uint64
	UtilizationPercent int // -1 = unknown: MIG devices have none
	Processes          []Process
}

// Process is a process with a context on a device.
type Process struct {
	PID         int // in the driver's PID namespace
	MemoryBytes uint64
	MPS         bool // a client or the server of MPS
}

// ProcessShare is the share of a recent interval in which a process had a
// kernel on the device.
type ProcessShare struct {
	PID   int
	Share float64
}

// Versions of the software below.
type Versions struct {
	Driver string
	NVML   string
	CUDA   string // newest CUDA that the driver serves
}

// Driver knows the devices of this node. Its methods may be called from many
// goroutines. A device that vanished is errdefs.ErrNotFound.
type Driver interface {
	Versions(ctx context.Context) (Versions, error)
	Devices(ctx context.Context) ([]Device, error)
	Usage(ctx context.Context, uuid UUID) (Usage, error)
	// ProcessShares answers with errdefs.ErrUnsupported where the device does
	// not sample its processes.
	ProcessShares(ctx context.Context, uuid UUID, since time.Time) ([]ProcessShare, error)
	Close() error
}
