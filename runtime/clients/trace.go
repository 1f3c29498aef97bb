package clients

import (
	"context"
	"time"

	"github.com/heddle-project/heddle/runtime/shm"
	"github.com/heddle-project/heddle/runtime/wire"
)

const (
	// tracePace is how often the rings of traced clients are read. They hold 4096 records, which a
	// program that launches every 2.5 us from one thread fills in 10 ms.
	tracePace = 2 * time.Millisecond
	// traceLook is in how many rounds one notes which clients the peer slots of others stand for: of
	// many clients on a device that is much to note.
	traceLook = 10
	// tracesMax bounds the timelines that are recorded at once: each reads all clients for itself.
	tracesMax = 4
	// traceQueue and traceWaiting bound what waits for a receiver who is slower than the clients, to
	// some 30 MB. What comes then is counted and dropped.
	traceQueue   = 1 << 10
	traceWaiting = 1 << 18 // events
	// traceKernels bounds the descriptions that are handed on of one client: nobody launches more
	// kernels than that, but a client may say so.
	traceKernels = 1 << 14
	// traceAhead is how far the clocks of two processors may be apart.
	traceAhead = time.Millisecond
	// traceMeasure is how many launches one is measured of in a timeline where the Learner needs none:
	// some of each kernel, for a small part of what a launch costs.
	traceMeasure = 256
)

// TraceFilter says of whom a timeline tells. Empty lists mean all.
type TraceFilter struct {
	Clients []uint64
	Devices []wire.UUID
}

// Trace is what clients told within a moment. Each event's client and kernel were described before it,
// or are in the same Trace; a kernel whose description was lost never is.
type Trace struct {
	Clients []Info // new in this timeline
	Kernels []TraceKernel
	Events  []TraceEvent // those of one client in the order in which it told them
	Losses  []TraceLoss
}

// TraceKernel is a kernel of a client.
type TraceKernel struct {
	Client uint64
	shm.Kernel
}

// TraceEvent is something that a client did. Nothing of it can be relied on.
type TraceEvent struct {
	Client uint64
	Device wire.UUID
	Holder uint64 // of a hold: the client for which it waited, 0 = none, or not known any more
	shm.Trace
}

// TraceLoss counts events that are missing from a timeline.
type TraceLoss struct {
	Client      uint64
	Overwritten uint64 // told faster than they were read
	Dropped     uint64 // read faster than they were received
	Impossible  uint64 // told with times that cannot be
}

// Trace lets the clients that match, and those that attach meanwhile, tell what they do, and calls sink
// with it, until ctx ends or sink fails. sink is called by one goroutine and may take its time: clients
// do not wait for it. What was told until the end is handed on after it. Unless another Trace runs,
// clients tell nothing any more when it has returned.
func (m *Manager) Trace(ctx context.Context, f TraceFilter, sink func(*Trace) error) error {
	t, err := m.beginTrace(f)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := make(chan *Trace, traceQueue)
	done := make(chan error, 1)
	go func() {
		var err error
		for trace := range out {
			if err == nil {
				err = sink(trace)
			}
			t.waiting.Add(-int64(len(trace.Events)))
			if err != nil {
				cancel()
			}
		}
		done <- err
	}()
	ticker := time.NewTicker(tracePace)
	defer ticker.Stop()
	for ctx.Err() == nil {
		t.read()
		if trace := t.take(); trace != nil {
			select {
			case out <- trace:
			default:
				t.giveBack(trace)
			}
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
	t.end()
	if trace := t.take(); trace != nil {
		out <- trace
	}
	close(out)
	return <-done
}
