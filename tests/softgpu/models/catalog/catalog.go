// Package catalog holds what the software GPU knows about each GPU model: the facts that a driver reports
// (names, sizes, MIG profiles). The data lies in data/*.toml; ../models.c is generated from it for the C side,
// and runtime/sim/device/models.go for the device model in Go.
package catalog

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

//go:generate go run ./gen

//go:embed data/*.toml
var data embed.FS

// Model is one GPU model. Sizes carry their unit in the name, as in the data files.
type Model struct {
	Key          string `toml:"key"` // how tests and SOFTGPU_GPUS name it, e.g. "A100-80"
	Alias        string `toml:"alias"`
	Name         string `toml:"name"` // the product name that CUDA and NVML report
	Architecture string `toml:"architecture"`

	ComputeCapability       [2]int `toml:"compute_capability"`
	SMs                     int    `toml:"sms"`
	MemoryMiB               int    `toml:"memory_mib"`
	ReservedMiB             int    `toml:"reserved_mib"` // of the memory: the driver's own
	L2MiB                   int    `toml:"l2_mib"`
	CoresPerSM              int    `toml:"cores_per_sm"`
	ThreadsPerSM            int    `toml:"threads_per_sm"`
	BlocksPerSM             int    `toml:"blocks_per_sm"`
	RegistersPerSM          int    `toml:"registers_per_sm"`
	SharedMemoryPerSMKiB    int    `toml:"shared_memory_per_sm_kib"`
	SharedMemoryPerBlockKiB int    `toml:"shared_memory_per_block_kib"` // most, with opting in
	MemoryBusBits           int    `toml:"memory_bus_bits"`
	MemoryBandwidthGBs      int    `toml:"memory_bandwidth_gbs"`
	CopyEngines             int    `toml:"copy_engines"`
	CopyBandwidthGBs        int    `toml:"copy_bandwidth_gbs"` // one engine, pinned host memory
	SMClockMHz              int    `toml:"sm_clock_mhz"`
	MemoryClockMHz          int    `toml:"memory_clock_mhz"`
	PowerLimitW             int    `toml:"power_limit_w"`
	PCIeGeneration          int    `toml:"pcie_generation"`
	NVLinks                 int    `toml:"nvlinks"`
	PCIDevice               int    `toml:"pci_device"`
	PCISubsystem            int    `toml:"pci_subsystem"`

	MIG MIG `toml:"mig"`
}

// MIG says how a model can be divided.
type MIG struct {
	ComputeSlices int       `toml:"compute_slices"`
	MemorySlices  int       `toml:"memory_slices"`
	Resetless     bool      `toml:"resetless"` // the mode changes without a reset of the device
	Profiles      []Profile `toml:"profiles"`
}

// Profile is one GPU instance profile of a model. Its identity is (model, ID): names repeat across models
// with different shapes.
type Profile struct {
	Name      string   `toml:"name"`
	Enum      int      `toml:"enum"` // what NVML calls take
	ID        int      `toml:"id"`   // what NVML answers and nvidia-smi prints
	Slices    int      `toml:"slices"`
	MemoryMiB int      `toml:"memory_mib"`
	Instances int      `toml:"instances"` // how many fit on an empty device
	Starts    []int    `toml:"starts"`    // legal first memory slices
	Size      int      `toml:"size"`      // memory slices taken
	SMs       int      `toml:"sms"`
	Copy      int      `toml:"copy"`
	Decoders  int      `toml:"decoders"`
	Encoders  int      `toml:"encoders"`
	JPEG      int      `toml:"jpeg"`
	OFA       int      `toml:"ofa"`
	Compute   [][2]int `toml:"compute"` // compute instances: slices, most per GPU instance
}

// All returns every model, in the order of their names in the data folder.
func All() ([]Model, error) {
	names, err := fs.Glob(data, "data/*.toml")
	if err != nil {
		return nil, fmt.Errorf("list models: %w", err)
	}
	models := make([]Model, 0, len(names))
	for _, name := range names {
		text, err := data.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read model: %w", err)
		}
		m, err := Parse(text)
		if err != nil {
			return nil, fmt.Errorf("parse model %s: %w", path.Base(name), err)
		}
		models = append(models, m)
	}
	return models, nil
}

// Lookup returns the model with this key or alias; the case does not matter.
func Lookup(key string) (Model, error) {
	models, err := All()
	if err != nil {
		return Model{}, err
	}
	i := slices.IndexFunc(models, func(m Model) bool {
		return strings.EqualFold(m.Key, key) || m.Alias != "" && strings.EqualFold(m.Alias, key)
	})
	if i < 0 {
		return Model{}, fmt.Errorf("find model %q: no such model", key)
	}
	return models[i], nil
}

// Parse reads one data file; an unknown key and an impossible shape are errors.
func Parse(text []byte) (Model, error) {
	var m Model
	dec := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields()
	if err := dec.Decode(&m); err != nil {
		return Model{}, err
	}
	if err := m.validate(); err != nil {
		return Model{}, err
	}
	return m, nil
}

func (m *Model) validate() error {
	var errs []error
	if m.Key == "" || m.Name == "" {
		errs = append(errs, errors.New("key and name are needed"))
	}
	if m.SMs <= 0 || m.MemoryMiB <= 0 || m.SMClockMHz <= 0 || m.MemoryBandwidthGBs <= 0 {
		errs = append(errs, errors.New("sms, memory, clock and bandwidth are above zero"))
	}
	ids := map[int]bool{}
	for _, p := range m.MIG.Profiles {
		if ids[p.ID] {
			errs = append(errs, fmt.Errorf("profile %s: id %d repeats", p.Name, p.ID))
		}
		ids[p.ID] = true
		if err := p.fits(m); err != nil {
			errs = append(errs, fmt.Errorf("profile %s: %w", p.Name, err))
		}
	}
	return errors.Join(errs...)
}

func (p *Profile) fits(m *Model) error {
	if p.Size <= 0 || p.Slices <= 0 || p.Slices > m.MIG.ComputeSlices {
		return fmt.Errorf("%d slices of %d", p.Slices, m.MIG.ComputeSlices)
	}
	for _, start := range p.Starts {
		if start < 0 || start+p.Size > m.MIG.MemorySlices {
			return fmt.Errorf("memory slices %d to %d of %d", start, start+p.Size, m.MIG.MemorySlices)
		}
	}
	if p.SMs <= 0 || p.SMs > m.SMs || p.MemoryMiB <= 0 || p.MemoryMiB > m.MemoryMiB {
		return fmt.Errorf("%d SMs and %d MiB of a device with %d and %d", p.SMs, p.MemoryMiB, m.SMs, m.MemoryMiB)
	}
	if p.Instances < 1 || p.Instances > len(p.Starts) {
		return fmt.Errorf("%d instances with %d placements", p.Instances, len(p.Starts))
	}
	return nil
}
