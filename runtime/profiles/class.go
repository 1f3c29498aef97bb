package profiles

import (
	"math"
	"time"
)

// Class says what a kernel's time is spent on.
type Class int

// The classes.
const (
	ClassUnknown Class = iota
	ClassCompute
	ClassMemory
)

func (c Class) String() string {
	switch c {
	case ClassCompute:
		return "compute"
	case ClassMemory:
		return "memory"
	case ClassUnknown:
	}
	return "unknown"
}

// DRAM is the part of the memory's bandwidth that a kernel of the class is taken to use while
// nobody measured it.
func (c Class) DRAM() float64 {
	switch c {
	case ClassCompute:
		return 0.2
	case ClassMemory:
		return 0.9
	case ClassUnknown:
	}
	return 0.5
}

const (
	// bound is the part of a peak from which on a kernel counts as bound by it.
	bound = 0.6
	// brief kernels are over before they fill a pipe or the memory's queues.
	brief = 10 * time.Microsecond
	// A block that stages so much in shared memory, or a thread that keeps so much in registers,
	// does it to use again what it loaded.
	tiledShared    = 16 << 10
	tiledRegisters = 96
	// A kernel that keeps next to nothing and fills the SMs streams.
	streamShared    = 1 << 10
	streamRegisters = 40
)

// classify says what the kernel is bound by: from measured figures where there are some, else from
// its time and footprint, which is a guess that [ClassUnknown] answers when in doubt.
func classify(s *Shape, f *Figures, d Device, alone time.Duration) Class {
	dram, haveDRAM := f.Get(DRAM)
	compute, haveCompute := f.Get(SM)
	if haveDRAM || haveCompute {
		switch {
		case dram >= bound && dram >= compute:
			return ClassMemory
		case compute >= bound:
			return ClassCompute
		}
		return ClassUnknown
	}
	if alone < brief {
		return ClassUnknown
	}
	shared := uint64(s.DynamicShared) + uint64(s.StaticShared)
	if shared >= tiledShared || s.Registers >= tiledRegisters {
		return ClassCompute
	}
	if s.Registers == 0 || s.Registers > streamRegisters || shared > streamShared {
		return ClassUnknown
	}
	need, threads := s.SMNeed(d), s.Threads()
	if d.SMs <= 0 || d.ThreadsPerSM <= 0 || need < uint32(min(uint64(d.SMs), math.MaxUint32)) || threads > uint64(d.ThreadsPerSM) {
		return ClassUnknown
	}
	if s.Resident(d) >= (uint64(d.ThreadsPerSM)/2+threads-1)/threads {
		return ClassMemory
	}
	return ClassUnknown
}
