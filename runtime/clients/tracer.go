package clients

import (
	"slices"
	"sync/atomic"

	"github.com/heddle-project/heddle/runtime/abi"
	"github.com/heddle-project/heddle/runtime/errdefs"
	"github.com/heddle-project/heddle/runtime/shm"
	"github.com/heddle-project/heddle/runtime/wire"
)

// tracer reads what clients tell for one timeline.
type tracer struct {
	m       *Manager
	filter  TraceFilter
	traced  map[*client]*traced
	losses  map[uint64]TraceLoss // not handed on, by client
	rounds  int
	waiting atomic.Int64 // events that were handed on and not received
	next    Trace        // what was read and not handed on
}

// traced is a client of a timeline.
type traced struct {
	client  *client
	events  *shm.TraceReader
	kernels *shm.KernelReader
	known   map[uint64]struct{} // kernels that were described
	devices [abi.DevicesMax]wire.UUID
	holders [abi.PeersMax]uint64 // clients by peer slot
	gone    bool
}

// beginTrace counts a timeline in. end counts it out.
func (m *Manager) beginTrace(f TraceFilter) (*tracer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.traces == tracesMax {
		return nil, errdefs.Errorf(errdefs.Exhausted, "%d timelines are being recorded already", tracesMax)
	}
	m.traces++
	if m.timeline++; m.timeline == 0 { // 0 says that there is none
		m.timeline++
	}
	return &tracer{m: m, filter: f, traced: map[*client]*traced{}, losses: map[uint64]TraceLoss{}}, nil
}

// end lets the clients stop, and reads what they told until now.
func (t *tracer) end() {
	m := t.m
	m.mu.Lock()
	m.traces--
	for c := range t.traced {
		if c.traces--; c.traces == 0 && !c.gone {
			c.timeline = 0
			c.publishMeasure()
		}
	}
	m.mu.Unlock()
	t.readAll()
	for c := range t.traced {
		c.keep.release()
	}
}

// read copies what the clients told since the last time.
func (t *tracer) read() {
	t.look()
	t.readAll()
	for c, r := range t.traced {
		if r.gone {
			delete(t.traced, c)
			c.keep.release()
		}
	}
}

// look takes in the clients that came, marks those that left, and notes where they are.
func (t *tracer) look() {
	m := t.m
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.clients {
		if t.traced[c] == nil && c.distrusted == nil && t.matches(c) {
			t.add(c)
		}
	}
	for c, r := range t.traced {
		r.gone = c.gone || c.distrusted != nil
		for _, b := range c.bindings {
			if b != nil {
				r.place(b, t.rounds%traceLook == 0)
			}
		}
	}
	t.rounds++
}

func (r *traced) place(b *binding, peers bool) {
	r.devices[b.slot] = b.device.uuid
	if peers {
		for h, slot := range b.peers {
			r.holders[slot] = h.client.id
		}
	}
}

func (t *tracer) matches(c *client) bool {
	if len(t.filter.Clients) != 0 && !slices.Contains(t.filter.Clients, c.id) {
		return false
	}
	return len(t.filter.Devices) == 0 || slices.ContainsFunc(c.bindings[:], func(b *binding) bool {
		return b != nil && slices.Contains(t.filter.Devices, b.device.uuid)
	})
}

// add takes a client into the timeline. Its readers begin before it is asked to tell.
func (t *tracer) add(c *client) {
	c.keep.retain()
	t.traced[c] = &traced{
		client: c, events: shm.NewTraceReader(c.segment.ClientView), kernels: shm.NewKernelReader(c.segment.ClientView),
		known: map[uint64]struct{}{},
	}
	t.next.Clients = append(t.next.Clients, c.info())
	c.traces++
	c.timeline = t.m.timeline // a new number, so that it describes its kernels for this one, too
	c.publishMeasure()
}

func (t *tracer) readAll() {
	for c, r := range t.traced {
		if err := r.read(t); err != nil {
			t.m.detach(c, err)
		}
	}
}

func (r *traced) read(t *tracer) error {
	id := r.client.id
	_, err := r.kernels.Read(func(k shm.Kernel) {
		if _, known := r.known[k.Key]; !known && len(r.known) < traceKernels {
			r.known[k.Key] = struct{}{}
			t.next.Kernels = append(t.next.Kernels, TraceKernel{Client: id, Kernel: k})
		}
	})
	if err != nil {
		return err
	}
	loss := TraceLoss{Client: id}
	first := len(t.next.Events)
	loss.Overwritten, err = r.events.Read(func(e shm.Trace) {
		device := r.devices[e.Slot]
		if device == (wire.UUID{}) || len(t.filter.Devices) != 0 && !slices.Contains(t.filter.Devices, device) {
			return
		}
		event := TraceEvent{Client: id, Device: device, Trace: e}
		if e.Kind == abi.TraceHold && (e.Reason == abi.GateHeldPeer || e.Reason == abi.GateHeldToken) {
			event.Holder = r.holders[e.Peer]
		}
		t.next.Events = append(t.next.Events, event)
	})
	loss.Impossible = t.check(first)
	t.count(loss)
	return err
}

// check takes out the events from the first on that end in the future, or began before the clock: they
// would make a picture of all others too small to be seen. The clock is read after the events were.
func (t *tracer) check(first int) (impossible uint64) {
	latest := t.m.opt.Now() + uint64(traceAhead)
	all := len(t.next.Events)
	kept := slices.DeleteFunc(t.next.Events[first:], func(e TraceEvent) bool {
		return e.TimeNs == 0 || e.TimeNs > latest || uint64(e.Duration) > latest-e.TimeNs // not negative
	})
	t.next.Events = t.next.Events[:first+len(kept)]
	return uint64(all - len(t.next.Events))
}

// take returns what there is to hand on, nil = nothing. Events for which there is no room are dropped;
// who did them is told all the same, so that later ones can be understood.
func (t *tracer) take() *Trace {
	if t.waiting.Load()+int64(len(t.next.Events)) > traceWaiting {
		t.drop(t.next.Events)
		t.next.Events = nil
	}
	for _, loss := range t.losses {
		t.next.Losses = append(t.next.Losses, loss)
	}
	clear(t.losses)
	trace := t.next
	if len(trace.Events)+len(trace.Clients)+len(trace.Kernels)+len(trace.Losses) == 0 {
		return nil
	}
	t.next = Trace{}
	t.waiting.Add(int64(len(trace.Events)))
	return &trace
}

// giveBack undoes take, but for the events.
func (t *tracer) giveBack(trace *Trace) {
	t.waiting.Add(-int64(len(trace.Events)))
	t.next = Trace{Clients: trace.Clients, Kernels: trace.Kernels}
	t.drop(trace.Events)
	for _, loss := range trace.Losses {
		t.count(loss)
	}
}

func (t *tracer) drop(events []TraceEvent) {
	for len(events) > 0 {
		n := 1
		for n < len(events) && events[n].Client == events[0].Client {
			n++
		}
		t.count(TraceLoss{Client: events[0].Client, Dropped: uint64(n)}) // not negative
		events = events[n:]
	}
}

func (t *tracer) count(loss TraceLoss) {
	if loss == (TraceLoss{Client: loss.Client}) {
		return
	}
	sum := t.losses[loss.Client]
	sum.Client = loss.Client
	sum.Overwritten += loss.Overwritten
	sum.Dropped += loss.Dropped
	sum.Impossible += loss.Impossible
	t.losses[loss.Client] = sum
}
