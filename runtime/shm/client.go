package shm

import (
	"encoding/binary"
	"os"
	"sync/atomic"
	"time"

	"github.com/heddle-project/heddle/runtime/abi"
	"github.com/heddle-project/heddle/runtime/errdefs"
)

// Bounds beyond which a value proves that no honest client wrote it.
const (
	busyStreamsMax = 1 << 24 // streams alive in one process; drivers give up far below
	memoryMax      = 1 << 50 // bytes; no address space of a device is larger
)

// Client is a client's segment, mapped for reading.
type Client struct {
	*mapping
	ClientView
}

// OpenClient verifies and maps the segment behind a descriptor that a client passed. On success
// the Client owns file. An error of kind Corrupt or Unsupported is the client's fault.
func OpenClient(file *os.File) (*Client, error) {
	m, err := open(file, sealsSingleWriter)
	if err != nil {
		return nil, err
	}
	v, err := viewClient(m.data)
	if err != nil {
		m.file = nil // still the caller's
		return nil, joinClose(err, m)
	}
	return &Client{mapping: m, ClientView: v}, nil
}

// Close unmaps the segment. No view may be used afterwards; a second call does nothing.
func (c *Client) Close() error {
	c.ClientView = ClientView{}
	return c.close()
}

// ClientView reads a client's segment. Its methods may be called from several goroutines and
// allocate nothing unless they fail.
type ClientView struct {
	seg  *abi.ClientSegment
	size int
}

func viewClient(data []byte) (ClientView, error) {
	if len(data) < abi.SizeofClientSegment {
		return ClientView{}, errdefs.Errorf(errdefs.Corrupt, "client segment has %d bytes, want %d", len(data), abi.SizeofClientSegment)
	}
	v := ClientView{seg: view[abi.ClientSegment](data), size: len(data)}
	return v, v.Check()
}

// Check reads the header again: it is written once, so that any change is a sign of damage.
func (v ClientView) Check() error {
	return readHeader(&v.seg.Header).check(abi.MagicClient, v.size, abi.SizeofClientSegment)
}

// Header returns the segment's header.
func (v ClientView) Header() Header { return readHeader(&v.seg.Header) }

// ProcessSnapshot is what a client says of itself as a whole.
type ProcessSnapshot struct {
	PID              uint32 // as the client sees itself; never an identity
	AttachCount      uint32
	UnnamedAddresses uint64
	Launches         uint64 // all launches, summed over the threads' counters
	LogDropped       uint64
}

// Process reads the process-wide words and sums up the launch counters.
func (v ClientView) Process() (ProcessSnapshot, error) {
	if err := v.Check(); err != nil {
		return ProcessSnapshot{}, err
	}
	p := &v.seg.Process
	s := ProcessSnapshot{
		PID:              atomic.LoadUint32(&p.PID),
		AttachCount:      atomic.LoadUint32(&p.AttachCount),
		UnnamedAddresses: atomic.LoadUint64(&p.UnnamedAddresses),
		LogDropped:       atomic.LoadUint64(&p.LogDropped),
	}
	for i := range v.seg.Threads {
		s.Launches += atomic.LoadUint64(&v.seg.Threads[i].Launches)
	}
	return s, nil
}

// DeviceSnapshot is one device slot of a client, read once. Times are nanoseconds of the clock in
// the client's verdict, 0 where nothing is known; they can lie in the future of the reader.
type DeviceSnapshot struct {
	UUID         [abi.UUIDBytes]byte
	BusyStreams  uint32
	Doorbell     uint32
	IdleSince    uint64
	BusyUntil    uint64
	NextLaunch   uint64
	HeadEstimate time.Duration
	Want         time.Duration // of the launch that waits for others, 0 = none waits

	Busy          time.Duration // ended spans only
	BusySince     uint64
	Held          time.Duration // ended waits only
	HeldSince     uint64
	Holds         uint64
	Overruns      uint64
	Paced         time.Duration // waits for its own window
	GraphLaunches uint64
	DeviceTime    time.Duration // of completed launches, measured where it was, else predicted

	MemoryBytes     uint64
	MemoryPeakBytes uint64
	Allocations     uint64
	Frees           uint64
}

// Used reports whether the client has opened a device in this slot.
func (s *DeviceSnapshot) Used() bool { return s.UUID != [abi.UUIDBytes]byte{} }

// Device reads one slot. The words are read one after the other while the client runs on: each is
// right by itself, together they are only nearly of one moment.
func (v ClientView) Device(slot int) (DeviceSnapshot, error) {
	if slot < 0 || slot >= abi.DevicesMax {
		return DeviceSnapshot{}, errdefs.Errorf(errdefs.Invalid, "device slot %d, there are %d", slot, abi.DevicesMax)
	}
	if err := v.Check(); err != nil {
		return DeviceSnapshot{}, err
	}
	d := &v.seg.Devices[slot]
	s := DeviceSnapshot{
		BusyStreams:     atomic.LoadUint32(&d.BusyStreams),
		Doorbell:        atomic.LoadUint32(&d.Doorbell),
		IdleSince:       atomic.LoadUint64(&d.IdleSinceNs),
		BusyUntil:       atomic.LoadUint64(&d.BusyUntilNs),
		NextLaunch:      atomic.LoadUint64(&d.NextLaunchNs),
		HeadEstimate:    duration(atomic.LoadUint64(&d.HeadEstimateNs)),
		Want:            duration(atomic.LoadUint64(&d.WantNs)),
		Busy:            duration(atomic.LoadUint64(&d.BusyNs)),
		BusySince:       atomic.LoadUint64(&d.BusySinceNs),
		Held:            duration(atomic.LoadUint64(&d.HeldNs)),
		HeldSince:       atomic.LoadUint64(&d.HeldSinceNs),
		Holds:           atomic.LoadUint64(&d.Holds),
		Overruns:        atomic.LoadUint64(&d.Overruns),
		Paced:           duration(atomic.LoadUint64(&d.PacedNs)),
		GraphLaunches:   atomic.LoadUint64(&d.GraphLaunches),
		DeviceTime:      duration(atomic.LoadUint64(&d.DeviceNs)),
		MemoryBytes:     atomic.LoadUint64(&d.MemoryBytes),
		MemoryPeakBytes: atomic.LoadUint64(&d.MemoryPeakBytes),
		Allocations:     atomic.LoadUint64(&d.Allocations),
		Frees:           atomic.LoadUint64(&d.Frees),
		UUID:            loadUUID(&d.UUID),
	}
	if s.BusyStreams > busyStreamsMax {
		return DeviceSnapshot{}, errdefs.Errorf(errdefs.Corrupt, "device slot %d: %d busy streams", slot, s.BusyStreams)
	}
	if s.MemoryBytes > memoryMax || s.MemoryPeakBytes > memoryMax {
		return DeviceSnapshot{}, errdefs.Errorf(errdefs.Corrupt, "device slot %d: %d bytes of memory, peak %d", slot, s.MemoryBytes, s.MemoryPeakBytes)
	}
	if s.Busy < 0 || s.Held < 0 || s.HeadEstimate < 0 || s.Want < 0 || s.DeviceTime < 0 {
		return DeviceSnapshot{}, errdefs.Errorf(errdefs.Corrupt, "device slot %d: a duration of over 292 years", slot)
	}
	return s, nil
}

// BusySpan returns the time with work on the device up to now, the present span included.
func (s *DeviceSnapshot) BusySpan(now uint64) time.Duration {
	return s.Busy + since(s.BusySince, now)
}

// HeldSpan returns the time spent waiting at the gate up to now, the present wait included.
func (s *DeviceSnapshot) HeldSpan(now uint64) time.Duration {
	return s.Held + since(s.HeldSince, now)
}

// since is 0 for a start that is unset or, by a peer's clock, still to come.
func since(start, now uint64) time.Duration {
	if start == 0 || start > now {
		return 0
	}
	return max(0, duration(now-start))
}

// duration is negative if ns does not fit: no honest count of nanoseconds does not.
func duration(ns uint64) time.Duration { return time.Duration(ns) }

// WaitDoorbell sleeps until the slot's doorbell no longer shows seen, timeout has passed or
// somebody wakes it for no reason; the caller looks again in every case.
func (v ClientView) WaitDoorbell(slot int, seen uint32, timeout time.Duration) error {
	return futexWait(&v.seg.Devices[slot].Doorbell, seen, timeout)
}

// WakeDoorbells wakes everybody who waits for this client to fall idle. The daemon does so when
// the client is gone and can no longer ring itself.
func (v ClientView) WakeDoorbells() error {
	for i := range v.seg.Devices {
		if err := futexWake(&v.seg.Devices[i].Doorbell); err != nil {
			return err
		}
	}
	return nil
}

// loadUUID reads 16 bytes as two words, so that it, too, reads every byte once.
func loadUUID(u *[abi.UUIDBytes]byte) (out [abi.UUIDBytes]byte) {
	words := (*[2]uint64)(bytesAsWords(u[:]))
	binary.NativeEndian.PutUint64(out[:8], atomic.LoadUint64(&words[0]))
	binary.NativeEndian.PutUint64(out[8:], atomic.LoadUint64(&words[1]))
	return out
}
