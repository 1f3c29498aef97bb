package shm

import (
	"sync/atomic"

	"github.com/heddle-project/heddle/runtime/abi"
	"github.com/heddle-project/heddle/runtime/errdefs"
)

// Kernel is what a client says that a key stands for. Nothing of it is checked against the key: a
// client that lies about its kernels spoils its own predictions.
type Kernel struct {
	Key           uint64
	ModuleHash    uint64 // of the image it came from, 0 = unknown
	Grid, Block   [3]uint32
	DynamicShared uint32 // bytes of shared memory asked for at the launch
	StaticShared  uint32 // bytes of shared memory in the code
	Registers     uint32 // of one thread
	ThreadsMax    uint32 // largest block that the kernel can have
	BlocksPerSM   uint32 // blocks of this size that fit on one SM, 0 = unknown
	Graph         bool   // a whole graph under the name of its first kernel
	Cut           bool   // the name is longer than what is told
	Attributes    bool   // the driver told what the kernel needs
	Name          string // printable, valid UTF-8, no line breaks
}

// KernelReader follows the ring of kernel descriptions of one client.
type KernelReader struct{ ring }

// NewKernelReader begins with the oldest description that is still in the ring.
func NewKernelReader(v ClientView) *KernelReader {
	return &KernelReader{ring{view: v, what: "kernels", head: &v.seg.Process.KernelsHead, size: abi.Kernels}}
}

// Read calls f for every new description, oldest first, and returns how many were lost. One call
// looks at no more of them than the ring holds, however fast the client writes.
func (r *KernelReader) Read(f func(Kernel)) (lost uint64, err error) {
	return r.read(func(n uint64) (recordState, error) {
		kernel, state, err := r.kernel(n)
		if err == nil && state == recordComplete {
			f(kernel)
		}
		return state, err
	})
}

func (r *KernelReader) kernel(n uint64) (Kernel, recordState, error) {
	shared := &r.view.seg.Kernels[n%abi.Kernels]
	if state := stateOf(n, &shared.Sequence); state != recordComplete {
		return Kernel{}, state, nil
	}
	var name [abi.KernelName]byte
	k := Kernel{
		Key:           atomic.LoadUint64(&shared.Key),
		ModuleHash:    atomic.LoadUint64(&shared.ModuleHash),
		DynamicShared: atomic.LoadUint32(&shared.DynamicShared),
		StaticShared:  atomic.LoadUint32(&shared.StaticShared),
		Registers:     atomic.LoadUint32(&shared.Registers),
		ThreadsMax:    atomic.LoadUint32(&shared.ThreadsMax),
		BlocksPerSM:   atomic.LoadUint32(&shared.BlocksPerSM),
	}
	for axis := range k.Grid {
		k.Grid[axis] = atomic.LoadUint32(&shared.Grid[axis])
		k.Block[axis] = atomic.LoadUint32(&shared.Block[axis])
	}
	flags := atomic.LoadUint32(&shared.Flags)
	length := atomic.LoadUint32(&shared.Length)
	copyWords(name[:], shared.Name[:])
	if state := r.copied(n); state != recordComplete {
		return Kernel{}, state, nil
	}
	if k.Key == 0 {
		return Kernel{}, 0, errdefs.Errorf(errdefs.Corrupt, "kernel record %d: no key", n)
	}
	if length > abi.KernelName {
		return Kernel{}, 0, errdefs.Errorf(errdefs.Corrupt, "kernel record %d: name of %d bytes, at most %d fit", n, length, abi.KernelName)
	}
	k.Graph = flags&abi.KernelGraph != 0
	k.Cut = flags&abi.KernelCut != 0
	k.Attributes = flags&abi.KernelAttributes != 0
	k.Name = Printable(name[:length])
	return k, recordComplete, nil
}
