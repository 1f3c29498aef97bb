package device

import "strings"

// GPU is what the model has to know about a device. Bandwidths are bytes per nanosecond, times nanoseconds.
type GPU struct {
	Name, Alias                       string
	SMs                               uint32
	ThreadsPerSM, BlocksPerSM         uint32
	RegistersPerSM, SharedMemoryPerSM uint32
	HostToDevice, DeviceToHost, DRAM  float64
	Quantum, Switch                   int64 // of the time slices between groups
}

// The time slices of every model.
const (
	DefaultQuantum = 2_000_000
	DefaultSwitch  = 100_000
)

// Lookup returns the model of this name or alias; the case does not matter.
func Lookup(name string) (GPU, bool) {
	for _, g := range Models() {
		if strings.EqualFold(g.Name, name) || g.Alias != "" && strings.EqualFold(g.Alias, name) {
			return g, true
		}
	}
	return GPU{}, false
}

// Kernel is a launch: its grid, what a block takes of an SM, and how it runs alone.
type Kernel struct {
	Grid         uint64 // blocks
	Block        uint32 // threads of a block
	Registers    uint32 // per thread
	SharedMemory uint32 // bytes per block
	Time         float64
	DRAM         float64 // fraction of the memory bandwidth that it uses alone, 0 to 1
}

// What the hardware gives out at once: threads in warps, registers of a warp in units, and shared memory with a
// part of the system's own in every block.
const (
	warp         = 32
	registerUnit = 256
	systemShared = 1024
)

// BlocksFor is how many blocks of the kernel fit on one SM, 0 if not even one does.
func (g *GPU) BlocksFor(k Kernel) uint32 {
	warps := (uint64(k.Block) + warp - 1) / warp
	if warps == 0 || warps*warp > uint64(g.ThreadsPerSM) {
		return 0
	}
	fit := min(uint64(g.BlocksPerSM), uint64(g.ThreadsPerSM)/(warps*warp))
	if k.Registers > 0 {
		perWarp := (uint64(k.Registers)*warp + registerUnit - 1) / registerUnit * registerUnit
		fit = min(fit, uint64(g.RegistersPerSM)/(perWarp*warps))
	}
	if k.SharedMemory > 0 {
		fit = min(fit, uint64(g.SharedMemoryPerSM)/(uint64(k.SharedMemory)+systemShared))
	}
	return uint32(fit)
}

// Shape is how a kernel lies on a GPU.
type Shape struct {
	Need  uint32 // SMs that hold the whole grid at once
	Waves uint32
	Want  uint32 // SMs that it holds when alone
}

// Shape lays a kernel out. A block that fits on no SM counts as one per SM: a driver refuses such a launch.
func (g *GPU) Shape(k Kernel) Shape {
	fit := uint64(max(g.BlocksFor(k), 1))
	need := k.Grid / fit
	if k.Grid%fit != 0 {
		need++
	}
	n := uint32(min(max(need, 1), 1<<32-1))
	return Shape{Need: n, Waves: uint32((uint64(n) + uint64(g.SMs) - 1) / uint64(g.SMs)), Want: min(n, g.SMs)}
}

// MPSCap is how many SMs an active-thread percentage leaves: whole pairs, at least one.
func (g *GPU) MPSCap(percent uint32) uint32 {
	if percent == 0 || percent >= 100 {
		return g.SMs
	}
	pairs := uint64(g.SMs) * uint64(percent) / 100 / 2
	return min(uint32(max(pairs, 1))*2, g.SMs)
}
