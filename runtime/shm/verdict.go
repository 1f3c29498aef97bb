package shm

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/heddle-project/heddle/runtime/abi"
	"github.com/heddle-project/heddle/runtime/errdefs"
)

// Peers is a set of peer slots, bit n of word n/64.
type Peers [abi.PeerWords]uint64

// Add puts slot n, below abi.PeersMax, into the set.
func (p *Peers) Add(n int) { p[n/64] |= 1 << (n % 64) }

// Has reports whether slot n is in the set.
func (p *Peers) Has(n int) bool { return p[n/64]&(1<<(n%64)) != 0 }

// DeviceVerdict is what the daemon decided for one client on one device.
type DeviceVerdict struct {
	Gate        uint32 // abi.Gate bits
	Priority    uint32
	Weight      uint32
	Window      time.Duration
	Estimate    time.Duration
	Quiet       time.Duration
	MaxHold     time.Duration
	MarginPPM   uint32
	SMSharePPM  uint32
	MemoryQuota uint64 // bytes, 0 = none
	Yields      Peers
	CoRun       Peers

	CoRunBound     time.Duration // of own outstanding work while a peer of CoRun is busy
	MinGap         time.Duration // shorter predicted gaps are not filled
	MaxBlock       time.Duration // longer launches are held, 0 = none are
	Token          time.Duration // longest time for which the gap token may be kept
	StreamPriority int32         // of new streams: 1 greatest, -1 least, 0 as the program says
	TimeSharePPM   uint32        // of the device's time that yield points leave to the client
	KeepPPM        uint32        // below which a client with yield points yields to nobody
}

// valid tells whether a client could make sense of the verdict.
func (d *DeviceVerdict) valid() bool {
	return d.Gate&^uint32(abi.GateKnown) == 0 && d.Priority < abi.ClassesMax &&
		d.StreamPriority >= -1 && d.StreamPriority <= 1 &&
		min(d.Window, d.Estimate, d.Quiet, d.MaxHold, d.CoRunBound, d.MinGap, d.MaxBlock, d.Token) >= 0
}

// ClockParams tell a client how to read the common clock; see package clock.
type ClockParams struct {
	Source    uint32 // abi.Clock values
	Shift     uint32
	Mult      uint64
	BaseTicks uint64
	BaseNs    uint64
}

// Verdict is the segment that the daemon writes for one client. It is used by one goroutine at a
// time.
type Verdict struct {
	*mapping
	seg *abi.VerdictSegment

	// What was published, kept here: what lies in shared memory is never read back.
	gates       [abi.DevicesMax]uint32
	generations [abi.DevicesMax]uint32
	measure     uint32 // GateMeasure while it is in all gate words
	profile     profileTable
}

// NewVerdict makes the verdict segment for a client, with no slot bound. The clock and the fail
// mode are part of its first content: a client reads them once, when it attaches.
func NewVerdict(generation uint64, clock ClockParams, failMode uint32) (*Verdict, error) {
	m, err := create("heddle-verdict", abi.SizeofVerdictSegment, sealsSingleWriter, func(data []byte) {
		seg := view[abi.VerdictSegment](data)
		writeHeader(&seg.Header, abi.MagicVerdict, len(data), generation)
		p := &seg.Process
		p.FailMode = failMode
		p.ClockSource = clock.Source
		p.ClockShift = clock.Shift
		p.ClockMult = clock.Mult
		p.ClockBaseTicks = clock.BaseTicks
		p.ClockBaseNs = clock.BaseNs
	})
	if err != nil {
		return nil, err
	}
	return &Verdict{mapping: m, seg: view[abi.VerdictSegment](m.data)}, nil
}

// Publish makes d the verdict for a device slot: parameters first, the gate word last with
// release, so that a client that sees the new gate sees its parameters. It wakes the client if it
// sleeps on the slot's gate, or waits for the slot to be bound.
func (v *Verdict) Publish(slot int, d *DeviceVerdict) error {
	if slot < 0 || slot >= abi.DevicesMax {
		return errdefs.Errorf(errdefs.Invalid, "device slot %d, there are %d", slot, abi.DevicesMax)
	}
	if !d.valid() {
		return fmt.Errorf("publish verdict %+v: %w", *d, errdefs.ErrInvalid)
	}
	t := &v.seg.Devices[slot]
	atomic.StoreUint32(&t.Priority, d.Priority)
	atomic.StoreUint32(&t.Weight, d.Weight)
	atomic.StoreUint64(&t.WindowNs, uint64(d.Window))
	atomic.StoreUint64(&t.EstimateNs, uint64(d.Estimate))
	atomic.StoreUint64(&t.QuietNs, uint64(d.Quiet))
	atomic.StoreUint64(&t.MaxHoldNs, uint64(d.MaxHold))
	atomic.StoreUint32(&t.MarginPpm, d.MarginPPM)
	atomic.StoreUint32(&t.SMSharePpm, d.SMSharePPM)
	atomic.StoreUint64(&t.MemoryQuotaBytes, d.MemoryQuota)
	for i := range d.Yields {
		atomic.StoreUint64(&t.Yields[i], d.Yields[i])
		atomic.StoreUint64(&t.Corun[i], d.CoRun[i])
	}
	atomic.StoreUint64(&t.CorunNs, uint64(d.CoRunBound))
	atomic.StoreUint64(&t.MinGapNs, uint64(d.MinGap))
	atomic.StoreUint64(&t.MaxBlockNs, uint64(d.MaxBlock))
	atomic.StoreUint64(&t.TokenNs, uint64(d.Token))
	atomic.StoreInt32(&t.StreamPriority, d.StreamPriority)
	atomic.StoreUint32(&t.TimeSharePpm, d.TimeSharePPM)
	atomic.StoreUint32(&t.KeepPpm, d.KeepPPM)
	changed := v.gates[slot] != d.Gate
	bound := v.generations[slot] == 0
	v.gates[slot] = d.Gate
	v.generations[slot]++
	if v.generations[slot] == 0 { // 0 means not bound, also after four billion verdicts
		v.generations[slot] = 1
	}
	atomic.StoreUint32(&t.Gate, d.Gate|v.measure)
	atomic.StoreUint32(&t.Generation, v.generations[slot])
	return v.publishGate(slot, changed, bound)
}

// publishGate brings the process-wide gate word up to date and wakes whom it concerns.
func (v *Verdict) publishGate(slot int, changed, bound bool) error {
	all := v.measure
	for _, g := range v.gates {
		all |= g
	}
	atomic.StoreUint32(&v.seg.Process.Gate, all)
	t := &v.seg.Devices[slot]
	if changed {
		if err := futexWake(&t.Gate); err != nil {
			return err
		}
		if err := futexWake(&v.seg.Process.Gate); err != nil {
			return err
		}
	}
	if bound {
		return futexWake(&t.Generation)
	}
	return nil
}

// PublishMeasure asks the client to measure the device time of one launch in every, 0 = of none, and
// says for which timeline it shall tell of every launch, by its number, 0 = for none. A client that hears of it late measures
// too little or too much for a moment. While there is something to measure or to tell, the gate words
// have GateMeasure, which takes launches off the fast path and holds none.
func (v *Verdict) PublishMeasure(every, trace uint32) {
	atomic.StoreUint32(&v.seg.Process.MeasureEvery, every)
	atomic.StoreUint32(&v.seg.Process.Trace, trace)
	v.measure = 0
	if every != 0 || trace != 0 {
		v.measure = abi.GateMeasure
	}
	all := v.measure
	for slot, g := range v.gates {
		all |= g
		if v.generations[slot] != 0 {
			atomic.StoreUint32(&v.seg.Devices[slot].Gate, g|v.measure)
		}
	}
	atomic.StoreUint32(&v.seg.Process.Gate, all)
}

// Bound reports whether a verdict was ever published for the slot.
func (v *Verdict) Bound(slot int) bool { return v.generations[slot] != 0 }

// Close unmaps the segment; a client that still maps it keeps its last content. A second call
// does nothing.
func (v *Verdict) Close() error {
	v.seg = nil
	return v.close()
}
