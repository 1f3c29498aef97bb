package profiles

import "math"

// Shape is what a launch asks of an SM, as its client told it: nothing of it can be relied on.
type Shape struct {
	Grid, Block   [3]uint32
	DynamicShared uint32 // bytes of shared memory asked for at the launch
	StaticShared  uint32 // bytes of shared memory in the code
	Registers     uint32 // of one thread
	ThreadsMax    uint32 // largest block that the kernel can have, 0 = unknown
	BlocksPerSM   uint32 // blocks of this size that fit on one SM, 0 = unknown
}

// Device is what an SM of a device offers. Zeros are unknown.
type Device struct {
	SMs            int
	ThreadsPerSM   int
	BlocksPerSM    int
	RegistersPerSM int
	SharedPerSM    int // bytes
}

// Blocks is the number of blocks in the grid.
func (s *Shape) Blocks() uint64 { return product(s.Grid) }

// Threads is the number of threads in a block.
func (s *Shape) Threads() uint64 { return product(s.Block) }

// Resident is how many blocks an SM holds at once: what the driver said, else what follows from
// threads, registers and shared memory; 0 = unknown.
func (s *Shape) Resident(d Device) uint64 {
	if s.BlocksPerSM != 0 {
		return uint64(s.BlocksPerSM)
	}
	threads := s.Threads()
	if threads == 0 || d.ThreadsPerSM <= 0 {
		return 0
	}
	fit := uint64(d.ThreadsPerSM) / threads
	limit := func(offered int, asked uint64) {
		if offered > 0 && asked > 0 {
			fit = min(fit, uint64(offered)/asked)
		}
	}
	limit(d.BlocksPerSM, 1)
	if s.Registers != 0 && threads <= math.MaxUint32 {
		limit(d.RegistersPerSM, uint64(s.Registers)*threads)
	}
	limit(d.SharedPerSM, uint64(s.DynamicShared)+uint64(s.StaticShared))
	return fit
}

// SMNeed is how many SMs hold the whole grid at once, more than the device has if it takes several
// waves; 0 = unknown.
func (s *Shape) SMNeed(d Device) uint32 {
	resident, blocks := s.Resident(d), s.Blocks()
	if resident == 0 || blocks == 0 {
		return 0
	}
	return uint32(min((blocks-1)/resident+1, math.MaxUint32))
}

// Waves is how many times the device is filled until the grid is through; 0 = unknown.
func (s *Shape) Waves(d Device) uint32 {
	need := s.SMNeed(d)
	if need == 0 || d.SMs <= 0 {
		return 0
	}
	return uint32((uint64(need)-1)/uint64(d.SMs) + 1)
}
