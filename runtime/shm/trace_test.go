package shm

import (
	"errors"
	"math"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heddle-project/heddle/runtime/abi"
	"github.com/heddle-project/heddle/runtime/errdefs"
)

func writeTrace(seg *abi.ClientSegment, edit func(*abi.TraceRecord)) {
	n := atomic.AddUint64(&seg.Process.TraceHead, 1) - 1
	r := &seg.Trace[n%abi.Trace]
	*r = abi.TraceRecord{Kind: abi.TraceLaunch, TimeNs: n * 100, DurationNs: n, Kernel: n + 1}
	if edit != nil {
		edit(r)
	}
	atomic.StoreUint64(&r.Sequence, n+1)
}

func TestATimelineBeginsNowAndCountsWhatIsMissing(t *testing.T) {
	seg, v := newSegment()
	for range abi.Trace + 7 {
		writeTrace(seg, nil)
	}
	seg.Process.TraceDropped = 5
	r := NewTraceReader(v)
	for _, tt := range []struct{ write, drop, lost int }{{0, 0, 0}, {3, 0, 0}, {2, 4, 4}, {abi.Trace + 9, 0, 9}, {abi.Trace, 1, 1}} {
		for range tt.write {
			writeTrace(seg, nil)
		}
		seg.Process.TraceDropped += uint64(tt.drop)
		var got []Trace
		lost, err := r.Read(func(s Trace) { got = append(got, s) })
		if err != nil || lost != uint64(tt.lost) || len(got) != min(tt.write, abi.Trace) {
			t.Errorf("after %d writes and %d drops: %d records, lost %d, %v", tt.write, tt.drop, len(got), lost, err)
		}
		for i := 1; i < len(got); i++ {
			if got[i].Kernel != got[i-1].Kernel+1 {
				t.Errorf("kernel %d after %d", got[i].Kernel, got[i-1].Kernel)
			}
		}
	}
}

func TestATraceRecordSaysWhatHappened(t *testing.T) {
	seg, v := newSegment()
	r := NewTraceReader(v)
	writeTrace(seg, func(r *abi.TraceRecord) {
		r.Flags, r.GuessNs, r.Stream, r.DeviceSlot = abi.TraceMeasured|abi.TraceGraph|1<<9, 6, NoStream, 3
	})
	writeTrace(seg, func(r *abi.TraceRecord) { r.Kind = abi.TraceGap + 1 }) // of a later version
	writeTrace(seg, func(r *abi.TraceRecord) {
		r.Kind, r.Flags, r.Reason, r.Peer, r.Kernel = abi.TraceHold, abi.TraceOverrun|abi.TraceYield, 99, abi.PeersMax-1, 0
	})
	want := []Trace{
		{Kind: abi.TraceLaunch, Kernel: 1, Guess: 6, Stream: NoStream, Slot: 3, Measured: true, Graph: true},
		{Kind: abi.TraceHold, TimeNs: 200, Duration: 2, Reason: 99, Peer: abi.PeersMax - 1, Overrun: true, Yield: true},
	}
	var got []Trace
	if lost, err := r.Read(func(s Trace) { got = append(got, s) }); lost != 0 || err != nil {
		t.Errorf("lost %d, %v", lost, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

func TestTheTimelineOfALiarIsCorrupt(t *testing.T) {
	tests := []struct {
		name string
		edit func(*abi.TraceRecord)
	}{
		{"no kind", func(r *abi.TraceRecord) { r.Kind = 0 }},
		{"a call of centuries", func(r *abi.TraceRecord) { r.DurationNs = 1 << 63 }},
		{"a prediction of centuries", func(r *abi.TraceRecord) { r.GuessNs = math.MaxUint64 }},
		{"a device slot that is none", func(r *abi.TraceRecord) { r.DeviceSlot = abi.DevicesMax }},
		{"a peer slot that is none", func(r *abi.TraceRecord) { r.Peer = abi.PeersMax }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			seg, v := newSegment()
			r := NewTraceReader(v)
			writeTrace(seg, tt.edit)
			if _, err := r.Read(func(s Trace) { t.Errorf("delivered %+v", s) }); !errors.Is(err, errdefs.ErrCorrupt) {
				t.Errorf("error = %v", err)
			}
		})
	}
	for name, count := range map[string]func(*abi.ClientSegment) *uint64{
		"a head that goes back":   func(seg *abi.ClientSegment) *uint64 { return &seg.Process.TraceHead },
		"a count that goes back":  func(seg *abi.ClientSegment) *uint64 { return &seg.Process.TraceDropped },
		"a header that is broken": func(seg *abi.ClientSegment) *uint64 { return &seg.Header.Size },
	} {
		t.Run(name, func(t *testing.T) {
			seg, v := newSegment()
			*count(seg) += 3
			r := NewTraceReader(v)
			*count(seg) -= 2
			if _, err := r.Read(func(s Trace) { t.Errorf("delivered %+v", s) }); !errors.Is(err, errdefs.ErrCorrupt) {
				t.Errorf("error = %v", err)
			}
		})
	}
}

func FuzzTraceRing(f *testing.F) {
	f.Add(uint64(1), uint64(1), uint32(1), uint64(7), uint64(0))
	f.Add(uint64(1<<63), uint64(0), uint32(200), uint64(1<<63), uint64(3))
	f.Add(uint64(5000), uint64(905), uint32(4), uint64(1), uint64(math.MaxUint64))
	f.Fuzz(func(t *testing.T, head, sequence uint64, small uint32, wide, dropped uint64) {
		seg, v := newSegment()
		r := NewTraceReader(v)
		seg.Process.TraceHead, seg.Process.TraceDropped = head, dropped
		for i := range seg.Trace {
			s := &seg.Trace[i]
			s.Sequence = sequence + uint64(i)
			s.Kind, s.Flags, s.Reason, s.Stream, s.DeviceSlot, s.Peer = small, small, small, small, small>>8, small>>4
			s.TimeNs, s.DurationNs, s.Kernel, s.GuessNs = wide, wide>>1, wide, wide
		}
		for range 2 {
			n := 0
			_, err := r.Read(func(s Trace) {
				n++
				if s.Kind == 0 || s.Kind > abi.TraceGap || s.Duration < 0 || s.Guess < 0 ||
					s.Slot < 0 || s.Slot >= abi.DevicesMax || s.Peer < 0 || s.Peer >= abi.PeersMax {
					t.Fatalf("nonsense passed: %+v", s)
				}
			})
			if err != nil {
				requireKind(t, err)
			}
			if n > abi.Trace {
				t.Fatalf("%d records from a ring of %d", n, abi.Trace)
			}
		}
	})
}
