package shm

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/heddle-project/heddle/runtime/abi"
	"github.com/heddle-project/heddle/runtime/errdefs"
)

// NoStream is the number of a stream that is not known.
const NoStream = math.MaxUint32

// Trace is one thing that a client tells for a timeline.
type Trace struct {
	Kind     uint32        // abi.Trace values, from abi.TraceLaunch to abi.TraceGap
	TimeNs   uint64        // when it began
	Duration time.Duration // of the driver's call, on the device, of the wait, of the idle time
	Kernel   uint64        // key, 0 = unknown; of a gap, of the kernel before it
	Guess    time.Duration // device time or length of the gap, as the client predicted it, 0 = it did not
	Stream   uint32        // the client's own number of it, or NoStream
	Slot     int           // of the device
	Reason   uint32        // of a hold: abi.Gate results; may be one of a later version
	Peer     int           // of a hold: slot of the peer
	Measured bool          // of a launch: its device time follows
	Graph    bool          // the launch of a whole graph
	Overrun  bool          // of a hold: ended by the longest hold
	Yield    bool          // of a hold: at a yield point, not of a launch
}

// TraceReader follows the timeline that one client tells.
type TraceReader struct {
	ring
	dropped uint64 // as the client counted at the last look
}

// NewTraceReader begins with what is written from now on: what is older belongs to another timeline.
func NewTraceReader(v ClientView) *TraceReader {
	p := &v.seg.Process
	return &TraceReader{
		ring:    ring{view: v, what: "trace", head: &p.TraceHead, size: abi.Trace, next: atomic.LoadUint64(&p.TraceHead)},
		dropped: atomic.LoadUint64(&p.TraceDropped),
	}
}

// Read calls f for every new record, oldest first, and returns how many were lost or never written.
// Records of a kind that only later versions know are passed over. One call looks at no more records
// than the ring holds, however fast the client writes.
func (r *TraceReader) Read(f func(Trace)) (lost uint64, err error) {
	lost, err = r.read(func(n uint64) (recordState, error) {
		record, state, err := r.record(n)
		if err == nil && state == recordComplete && record.Kind <= abi.TraceGap {
			f(record)
		}
		return state, err
	})
	if err != nil {
		return lost, err
	}
	dropped := atomic.LoadUint64(&r.view.seg.Process.TraceDropped)
	if dropped < r.dropped {
		return lost, errdefs.Errorf(errdefs.Corrupt, "trace records dropped went back from %d to %d", r.dropped, dropped)
	}
	lost += dropped - r.dropped
	r.dropped = dropped
	return lost, nil
}

func (r *TraceReader) record(n uint64) (Trace, recordState, error) {
	shared := &r.view.seg.Trace[n%abi.Trace]
	if state := stateOf(n, &shared.Sequence); state != recordComplete {
		return Trace{}, state, nil
	}
	t := Trace{
		Kind:     atomic.LoadUint32(&shared.Kind),
		TimeNs:   atomic.LoadUint64(&shared.TimeNs),
		Duration: duration(atomic.LoadUint64(&shared.DurationNs)),
		Kernel:   atomic.LoadUint64(&shared.Kernel),
		Guess:    duration(atomic.LoadUint64(&shared.GuessNs)),
		Stream:   atomic.LoadUint32(&shared.Stream),
		Reason:   atomic.LoadUint32(&shared.Reason),
	}
	slot, peer := atomic.LoadUint32(&shared.DeviceSlot), atomic.LoadUint32(&shared.Peer)
	flags := atomic.LoadUint32(&shared.Flags)
	if state := r.copied(n); state != recordComplete {
		return Trace{}, state, nil
	}
	if slot >= abi.DevicesMax || peer >= abi.PeersMax {
		return Trace{}, 0, errdefs.Errorf(errdefs.Corrupt, "trace record %d: device slot %d of %d, peer slot %d of %d",
			n, slot, abi.DevicesMax, peer, abi.PeersMax)
	}
	if t.Kind == 0 || t.Duration < 0 || t.Guess < 0 {
		return Trace{}, 0, errdefs.Errorf(errdefs.Corrupt, "trace record %d: kind %d, %d ns, predicted %d ns", n, t.Kind, t.Duration, t.Guess)
	}
	t.Slot, t.Peer = int(slot), int(peer)
	t.Measured = flags&abi.TraceMeasured != 0
	t.Graph = flags&abi.TraceGraph != 0
	t.Overrun = flags&abi.TraceOverrun != 0
	t.Yield = flags&abi.TraceYield != 0
	return t, recordComplete, nil
}
