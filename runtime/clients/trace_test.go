package clients

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/heddle-project/heddle/runtime/abi"
	"github.com/heddle-project/heddle/runtime/errdefs"
	"github.com/heddle-project/heddle/runtime/wire"
)

// record writes a record of a timeline as the interposer does.
func (p *program) record(edit func(*abi.TraceRecord)) {
	n := p.seg.Process.TraceHead
	r := &p.seg.Trace[n%abi.Trace]
	atomic.StoreUint64(&r.Sequence, 0)
	r.Kind, r.Kernel, r.DeviceSlot, r.Reason, r.Peer, r.TimeNs = abi.TraceLaunch, 1<<60, 0, 0, 0, n+1
	if edit != nil {
		edit(r)
	}
	atomic.StoreUint64(&p.seg.Process.TraceHead, n+1)
	atomic.StoreUint64(&r.Sequence, n+1)
}

func bound(p *program) bool { return atomic.LoadUint32(&p.verdict.Devices[0].Generation) != 0 }

func (p *program) timeline() uint32 { return atomic.LoadUint32(&p.verdict.Process.Trace) }

// tape is what a timeline told.
type tape struct {
	mu      sync.Mutex
	clients map[uint64]string
	kernels []TraceKernel
	events  []TraceEvent
	losses  map[uint64]TraceLoss
	stop    func() error
}

func (t *tape) put(trace *Trace) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range trace.Clients {
		t.clients[trace.Clients[i].ID] = trace.Clients[i].Name
	}
	t.kernels = append(t.kernels, trace.Kernels...)
	for _, e := range trace.Events {
		if _, ok := t.clients[e.Client]; !ok {
			return fmt.Errorf("event of client %d, who was not introduced", e.Client)
		}
		t.events = append(t.events, e)
	}
	for _, l := range trace.Losses {
		sum := t.losses[l.Client]
		t.losses[l.Client] = TraceLoss{
			l.Client, sum.Overwritten + l.Overwritten, sum.Dropped + l.Dropped, sum.Impossible + l.Impossible,
		}
	}
	return nil
}

func (t *tape) when(ok func() bool) func() bool {
	return func() bool {
		t.mu.Lock()
		defer t.mu.Unlock()
		return ok()
	}
}

func newTape() *tape { return &tape{clients: map[uint64]string{}, losses: map[uint64]TraceLoss{}} }

func roll(t *testing.T, s *server, tp *tape, f TraceFilter, sink func(*Trace) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Trace(ctx, f, sink) }()
	tp.stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() { _ = tp.stop() })
}

func TestClientsTellWhatTheyDoWhileATimelineRuns(t *testing.T) {
	s := serve(t)
	a := attach(t, s.path, hello("a"))
	a.open(0, gpu0)
	eventually(t, "a is bound", func() bool { return bound(a) })
	a.record(nil) // before
	if a.timeline() != 0 || a.gate(0)&abi.GateMeasure != 0 {
		t.Fatal("it tells without a timeline")
	}
	tape := newTape()
	roll(t, s, tape, TraceFilter{}, tape.put)
	eventually(t, "a is asked", func() bool {
		return a.timeline() != 0 && a.gate(0)&abi.GateMeasure != 0 &&
			atomic.LoadUint32(&a.verdict.Process.MeasureEvery) == traceMeasure
	})
	a.tellKernel(1 << 60)
	a.tellKernel(1 << 60) // described again
	for range 3 {
		a.record(nil)
	}
	b := attach(t, s.path, hello("b"))
	b.open(0, gpu1)
	eventually(t, "b is asked as it comes", func() bool { return b.timeline() != 0 })
	b.record(nil)
	eventually(t, "both are heard", tape.when(func() bool {
		return len(tape.events) == 4 && len(tape.kernels) == 1 && tape.kernels[0].Key == 1<<60
	}))
	_ = b.conn.Close()
	eventually(t, "b is gone", func() bool { return len(s.List()) == 1 })
	a.record(nil)
	if err := tape.stop(); err != nil {
		t.Error(err)
	}
	if a.timeline() != 0 || a.gate(0)&abi.GateMeasure != 0 {
		t.Error("a goes on telling")
	}
	count := map[wire.UUID]int{}
	for _, e := range tape.events {
		if e.Client == a.welcome.ClientID && e.TimeNs == 1 {
			t.Errorf("%+v was there before", e)
		}
		count[e.Device]++
	}
	if count[gpu0] != 4 || count[gpu1] != 1 || len(tape.losses) != 0 || tape.clients[b.welcome.ClientID] != "b" {
		t.Errorf("events by device: %v, losses %v, clients %v", count, tape.losses, tape.clients)
	}
}

func TestATimelineTellsOfThoseWhoAreMeant(t *testing.T) {
	s := serve(t)
	a, b := attach(t, s.path, hello("a")), attach(t, s.path, hello("b"))
	for _, p := range []*program{a, b} {
		p.open(0, gpu0)
		p.open(1, gpu1)
	}
	one, device := newTape(), newTape()
	roll(t, s, one, TraceFilter{Clients: []uint64{a.welcome.ClientID}}, one.put)
	eventually(t, "a is asked", func() bool { return a.timeline() != 0 })
	if b.timeline() != 0 {
		t.Error("b is asked, too")
	}
	first := a.timeline()
	roll(t, s, device, TraceFilter{Devices: []wire.UUID{gpu1}}, device.put)
	eventually(t, "both are asked, a under a new number", func() bool { return b.timeline() != 0 && a.timeline() != first })
	for _, p := range []*program{a, b} {
		p.record(nil)
		p.record(func(r *abi.TraceRecord) { r.DeviceSlot = 1 })
		p.record(func(r *abi.TraceRecord) { r.DeviceSlot = 2 }) // where it is not
	}
	eventually(t, "each timeline has its part", func() bool {
		return one.when(func() bool { return len(one.events) == 2 })() && device.when(func() bool { return len(device.events) == 2 })()
	})
	if err := one.stop(); err != nil {
		t.Error(err)
	}
	if a.timeline() == 0 {
		t.Error("the end of one timeline is taken for that of the other")
	}
	if err := device.stop(); err != nil {
		t.Error(err)
	}
	if a.timeline() != 0 || b.timeline() != 0 {
		t.Error("they go on telling")
	}
}

func TestAHoldNamesItsHolder(t *testing.T) {
	s := serve(t)
	s.policy.grants["high"] = Grant{Tenant: "t", Priority: 2, Weight: 1}
	low, high := attach(t, s.path, hello("low")), attach(t, s.path, hello("high"))
	low.open(0, gpu0)
	high.open(0, gpu0)
	eventually(t, "low yields", func() bool { return low.gate(0)&abi.GateYield != 0 })
	tape := newTape()
	roll(t, s, tape, TraceFilter{}, tape.put)
	eventually(t, "low is asked", func() bool { return low.timeline() != 0 })
	for _, reason := range []uint32{abi.GateHeldPeer, abi.GateHeldToken, abi.GateHeldWindow} {
		low.record(func(r *abi.TraceRecord) { r.Kind, r.Reason = abi.TraceHold, reason })
	}
	eventually(t, "the holds are told", tape.when(func() bool { return len(tape.events) == 3 }))
	for i, want := range []uint64{high.welcome.ClientID, high.welcome.ClientID, 0} {
		if got := tape.events[i].Holder; got != want {
			t.Errorf("hold %d by client %d, want %d", i, got, want)
		}
	}
}

func TestAReceiverWhoIsSlowLosesEventsAndNotTheirMeaning(t *testing.T) {
	s := serve(t)
	a := attach(t, s.path, hello("a"))
	a.open(0, gpu0)
	eventually(t, "a is bound", func() bool { return bound(a) })
	tr, err := s.beginTrace(TraceFilter{})
	if err != nil {
		t.Fatal(err)
	}
	tape := newTape()
	tr.read()
	written := 0
	put := func(trace *Trace) {
		if trace != nil {
			tr.waiting.Add(-int64(len(trace.Events)))
			if err := tape.put(trace); err != nil {
				t.Error(err)
			}
		}
	}
	tell := func() *Trace {
		for range abi.Trace {
			a.record(nil)
			written++
		}
		a.tellKernel(uint64(written))
		tr.read()
		return tr.take()
	}
	const room = 2
	tr.waiting.Add(traceWaiting - room*abi.Trace) // as if much were waiting already
	var queue []*Trace
	for range room + 3 {
		queue = append(queue, tell())
	}
	for range 3 {
		tr.giveBack(tell()) // as when the queue is full of small ones
	}
	for _, trace := range queue {
		put(trace)
	}
	put(tell()) // there is room again
	tr.end()
	put(tr.take())
	tr.waiting.Add(room*abi.Trace - traceWaiting)
	loss := tape.losses[a.welcome.ClientID]
	if loss.Dropped != 6*abi.Trace || loss.Overwritten != 0 || len(tape.events)+int(loss.Dropped) != written {
		t.Errorf("%d written: %d came, %+v", written, len(tape.events), loss)
	}
	if want := written / abi.Trace; len(tape.kernels) != want || tr.waiting.Load() != 0 {
		t.Errorf("%d kernels were described, want %d; %d events wait", len(tape.kernels), want, tr.waiting.Load())
	}
}

func TestTheEndOfAReceiverEndsItsTimeline(t *testing.T) {
	s := serve(t)
	a := attach(t, s.path, hello("a"))
	away := errors.New("went away")
	err := s.Trace(t.Context(), TraceFilter{}, func(*Trace) error { return away })
	if !errors.Is(err, away) || a.timeline() != 0 || s.timelines() != 0 {
		t.Errorf("error = %v, a tells timeline %d, %d are counted", err, a.timeline(), s.timelines())
	}
	for range tracesMax {
		roll(t, s, newTape(), TraceFilter{}, func(*Trace) error { return nil })
	}
	eventually(t, "as many run as may", func() bool { return s.timelines() == tracesMax })
	err = s.Trace(t.Context(), TraceFilter{}, func(*Trace) error { return nil })
	if !errors.Is(err, errdefs.ErrExhausted) {
		t.Errorf("one more: %v", err)
	}
}

func (s *server) timelines() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.traces
}

func TestEventsOfTheFutureAreNotTold(t *testing.T) {
	s := serve(t, func(o *Options) { o.Now = func() uint64 { return 1000 } })
	a := attach(t, s.path, hello("a"))
	a.open(0, gpu0)
	tape := newTape()
	roll(t, s, tape, TraceFilter{}, tape.put)
	eventually(t, "a is asked", func() bool { return a.timeline() != 0 })
	const latest = 1000 + uint64(traceAhead)
	for _, tt := range []struct{ time, duration uint64 }{
		{latest, 0}, {latest + 1, 0}, {500, latest - 500}, {500, latest - 499}, {0, 1}, {1 << 63, 1}, {1, 1},
	} {
		a.record(func(r *abi.TraceRecord) { r.TimeNs, r.DurationNs = tt.time, tt.duration })
	}
	eventually(t, "the others are told", tape.when(func() bool {
		return len(tape.events) == 3 && tape.losses[a.welcome.ClientID].Impossible == 4
	}))
}

func TestALiarIsEvictedFromTheTimeline(t *testing.T) {
	s := serve(t)
	liar, honest := attach(t, s.path, hello("liar")), attach(t, s.path, hello("honest"))
	liar.open(0, gpu0)
	honest.open(0, gpu0)
	tape := newTape()
	roll(t, s, tape, TraceFilter{}, tape.put)
	eventually(t, "both are asked", func() bool { return liar.timeline() != 0 && honest.timeline() != 0 })
	liar.record(func(r *abi.TraceRecord) { r.Kind = 0 })
	eventually(t, "the liar is evicted", func() bool { return s.evicted("liar") != "" })
	honest.record(nil)
	eventually(t, "the honest one is heard", tape.when(func() bool { return len(tape.events) == 1 }))
	if s.evicted("honest") != "" {
		t.Error("the honest client is evicted, too")
	}
}
