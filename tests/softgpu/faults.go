package softgpu

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Injection is a fault that the driver or the management library shall answer with.
type Injection struct {
	Entry       string        // exported name, e.g. "cuLaunchKernel"; "*" is any of CUDA, "nvml*" any of NVML
	Result      uint32        // CUresult or nvmlReturn_t to answer; 0: what it would answer anyway
	PID         int           // 0: any process
	OnGPU       int           // NVML: 1 + index of the GPU that the call is about; 0: any
	After       uint64        // calls that pass first
	Times       uint64        // that it strikes then; 0 is 1
	Delay       time.Duration // what a struck call takes longer, in real time
	Late        bool          // NVML's changes: the change is made first
	Kill        bool          // the caller is killed there
	Sticky      bool          // the context is lost; under MPS, every client of the server
	Always      bool          // strikes every time from then on, not Times
	Probability float64       // above 0: strikes with it per call, from Seed
	Seed        uint64
}

// ErrTooManyFaults means that every place for a fault is taken.
var ErrTooManyFaults = errors.New("too many armed faults")

// Armed is an injected fault.
type Armed struct {
	node *Node
	slot *Fault
	once sync.Once
}

// Inject arms a fault. It takes effect at the next call of its entry by any process of the node.
func (n *Node) Inject(in Injection) (*Armed, error) {
	if in.Entry == "" || len(in.Entry) >= NameBytes {
		return nil, fmt.Errorf("inject fault into %q: no such entry", in.Entry)
	}
	for i := range n.state.Faults {
		f := &n.state.Faults[i]
		if atomic.LoadUint32(&f.Armed) != 0 {
			continue
		}
		*f = Fault{
			Flags:       in.flags(),
			Result:      in.Result,
			PID:         uint32(in.PID),
			After:       in.After,
			Times:       in.Times,
			DelayNs:     uint64(max(in.Delay, 0)),
			Device:      uint32(in.OnGPU),
			Seed:        in.Seed,
			Probability: in.Probability,
		}
		copy(f.Entry[:], in.Entry)
		// Counted in first: whoever strikes counts a one-shot fault out, and may do so at once.
		atomic.AddUint32(&n.state.Header.FaultsArmed, 1)
		atomic.StoreUint32(&f.Armed, 1)
		return &Armed{node: n, slot: f}, nil
	}
	return nil, fmt.Errorf("inject fault into %s: %w", in.Entry, ErrTooManyFaults)
}

func (in Injection) flags() uint32 {
	var flags uint32
	if in.Sticky {
		flags |= FaultSticky
	}
	if in.Always {
		flags |= FaultAlways
	}
	if in.Probability > 0 {
		flags |= FaultRandom
	}
	if in.Late {
		flags |= FaultLate
	}
	if in.Kill {
		flags |= FaultKill
	}
	return flags
}

// Hits says how often the fault has struck.
func (a *Armed) Hits() uint64 { return atomic.LoadUint64(&a.slot.Hits) }

// Disarm takes the fault away; it may be called again. A fault that has struck once and is spent was taken
// away by the driver that it struck.
func (a *Armed) Disarm() {
	a.once.Do(func() {
		if atomic.SwapUint32(&a.slot.Armed, 0) != 0 {
			atomic.AddUint32(&a.node.state.Header.FaultsArmed, ^uint32(0))
		}
	})
}

// SetMPS says whether processes that start from now on are clients of a MPS server on this GPU.
func (n *Node) SetMPS(gpu int, on bool) {
	atomic.StoreUint32(&n.state.Devices[gpu].MPS, word(on))
}

// SetLost makes a GPU fall off the bus, or puts it back.
func (n *Node) SetLost(gpu int, lost bool) {
	atomic.StoreUint32(&n.state.Devices[gpu].Lost, word(lost))
}

func word(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}
