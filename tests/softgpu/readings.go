package softgpu

import (
	"bytes"
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// GPU is one device as the node was made, with the memory in use now.
type GPU struct {
	Model       string // key in the model table
	Name        string
	UUID        string // "GPU-…", as CUDA and NVML write it
	BusID       string // "00000000:10:00.0"
	MemoryBytes uint64
	UsedBytes   uint64
	BusyNs      uint64 // simulated time with a kernel on it
	Kernels     uint64 // completed
}

// Process is one living process that has opened the driver.
type Process struct {
	PID       int
	Name      string
	UsedBytes []uint64 // by GPU, with what it has on MIG devices of it
	Contexts  []int    // likewise
	Calls     Calls
}

// Calls counts uses of the driver.
type Calls struct {
	Launches  uint64
	Opaque    uint64 // launches without a known effect
	Graphs    uint64
	Copies    uint64
	CopyBytes uint64
	Memsets   uint64
	Syncs     uint64
	Queries   uint64
	Records   uint64 // of events
	Allocs    uint64
	Frees     uint64
	Hosts     uint64 // host functions
	Stubs     uint64 // calls of names that are not implemented
	Faults    uint64 // injected faults that struck
}

// GPUs returns the node's devices.
func (n *Node) GPUs() []GPU {
	gpus := make([]GPU, n.gpuCount())
	for i := range gpus {
		d := &n.state.Devices[i]
		u := &n.state.Units[d.Unit%MaxUnits]
		gpus[i] = GPU{
			Model:       text(d.Model[:]),
			Name:        text(d.Product[:]),
			UUID:        uuid("GPU", d.UUID),
			BusID:       fmt.Sprintf("%08X:%02X:%02X.0", d.PCIDomain, d.PCIBus, d.PCIDevice),
			MemoryBytes: d.MemoryBytes,
			UsedBytes:   atomic.LoadUint64(&d.UsedBytes),
			BusyNs:      atomic.LoadUint64(&u.BusyNs),
			Kernels:     atomic.LoadUint64(&u.Kernels),
		}
	}
	return gpus
}

func (n *Node) gpuCount() int { return min(int(n.state.Header.DeviceCount), MaxDevices) }

// Processes returns the living processes, by slot.
func (n *Node) Processes() []Process {
	var list []Process
	for i := range n.state.Procs {
		p := &n.state.Procs[i]
		if atomic.LoadUint32(&p.State) != SlotUsed || !n.alive(i) {
			continue
		}
		entry := Process{PID: int(atomic.LoadUint32(&p.PID)), Name: text(p.Name[:]), Calls: n.callsOf(i)}
		entry.UsedBytes = make([]uint64, n.gpuCount())
		entry.Contexts = make([]int, n.gpuCount())
		for u := range min(atomic.LoadUint32(&n.state.Header.UnitCount), MaxUnits) {
			if gpu := n.state.Units[u].Device; n.state.Units[u].State == SlotUsed && int(gpu) < n.gpuCount() {
				entry.UsedBytes[gpu] += atomic.LoadUint64(&p.UsedBytes[u])
				entry.Contexts[gpu] += int(atomic.LoadUint32(&p.Contexts[u]))
			}
		}
		list = append(list, entry)
	}
	return list
}

// alive asks the OS whether the slot's owner still holds its lock, as the C side does.
func (n *Node) alive(slot int) bool {
	const base = 1 << 40 // SOFTGPU_LOCK_BASE
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: 0, Start: base + int64(slot), Len: 1}
	err := unix.FcntlFlock(n.file.Fd(), unix.F_OFD_GETLK, &lock)
	return err != nil || lock.Type != unix.F_UNLCK
}

// Calls returns the sum over all processes, the living and the gone.
func (n *Node) Calls() Calls {
	var sum [Counters]uint64
	for c := range sum {
		sum[c] = atomic.LoadUint64(&n.state.Header.Calls[c])
	}
	for i := range n.state.Procs {
		for c := range sum {
			sum[c] += atomic.LoadUint64(&n.state.Procs[i].Calls[c])
		}
	}
	for i := range n.state.Tallies {
		t := &n.state.Tallies[i]
		sum[CountLaunch] += atomic.LoadUint64(&t.Launches)
		sum[CountOpaque] += atomic.LoadUint64(&t.Opaque)
	}
	return callsFrom(&sum)
}

func (n *Node) callsOf(slot int) Calls {
	var sum [Counters]uint64
	for c := range sum {
		sum[c] = atomic.LoadUint64(&n.state.Procs[slot].Calls[c])
	}
	for i := range n.state.Tallies {
		t := &n.state.Tallies[i]
		if atomic.LoadUint32(&t.Proc) == uint32(slot) {
			sum[CountLaunch] += atomic.LoadUint64(&t.Launches)
			sum[CountOpaque] += atomic.LoadUint64(&t.Opaque)
		}
	}
	return callsFrom(&sum)
}

func callsFrom(c *[Counters]uint64) Calls {
	return Calls{
		Launches:  c[CountLaunch],
		Opaque:    c[CountOpaque],
		Graphs:    c[CountGraph],
		Copies:    c[CountCopy],
		CopyBytes: c[CountCopyBytes],
		Memsets:   c[CountMemset],
		Syncs:     c[CountSync],
		Queries:   c[CountQuery],
		Records:   c[CountEventRecord],
		Allocs:    c[CountAlloc],
		Frees:     c[CountFree],
		Hosts:     c[CountHost],
		Stubs:     c[CountStub],
		Faults:    c[CountFault],
	}
}

// StubCalls returns how often each name without an implementation was called, in libcuda and in NVML.
func (n *Node) StubCalls() map[string]uint64 {
	calls := map[string]uint64{}
	for i := range n.state.Stubs {
		s := &n.state.Stubs[i]
		if count := atomic.LoadUint64(&s.Calls); count > 0 {
			calls[text(s.Name[:])] += count
		}
	}
	return calls
}

func text(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}
