// Package timeline draws what clients tell of their launches, waits and idle
// times as Chrome trace events, the JSON that ui.perfetto.dev and
// chrome://tracing show.
//
// A client is a process of the trace. Each of its devices has tracks for the
// calls that launch, the waits at the gate, the idle times and the predictions
// of them, and one for the device time of each stream. What is on one track
// never overlaps, and comes in the order of time.
package timeline

import (
	"bufio"
	"fmt"
	"io"
	"time"

	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
)

// Summary counts what was drawn.
type Summary struct {
	Clients  int
	Launches int
	Measured int // of the launches, those whose device time was measured
	Holds    int
	Gaps     int
	Missing  uint64 // events that were told and did not arrive
	Begun    time.Time
}

// Options are what a Writer needs to know of the world.
type Options struct {
	// Class names a scheduling class.
	Class func(priority uint32) string
	// Tool is the program that draws, with its version.
	Tool string
}

// Writer draws one timeline. It is used by one goroutine.
type Writer struct {
	opt     Options
	out     encoder
	start   uint64 // clock of the beginning
	last    uint64 // clock of the end of the last event
	summary Summary
	tids    int
	clients map[uint64]*process
	devices map[uint32]*heddlev1.TraceDevice
}

// NewWriter begins a timeline. Nothing is complete before Close.
func NewWriter(w io.Writer, opt Options) *Writer {
	t := &Writer{
		opt: opt, out: encoder{w: bufio.NewWriterSize(w, 1<<16)},
		clients: map[uint64]*process{}, devices: map[uint32]*heddlev1.TraceDevice{},
	}
	t.out.begin()
	return t
}

// Add draws what one message tells.
func (t *Writer) Add(m *heddlev1.RecordTraceResponse) error {
	if s := m.GetStart(); s != nil {
		t.start, t.summary.Begun = s.GetClockNs(), s.GetTime().AsTime()
	}
	for _, c := range m.GetClients() {
		t.introduce(c)
	}
	for _, d := range m.GetDevices() {
		t.devices[d.GetNumber()] = d
	}
	for _, k := range m.GetKernels() {
		if p := t.clients[k.GetClient()]; p != nil {
			p.kernel(k.GetKey()).describe(k)
		}
	}
	for _, e := range m.GetEvents() {
		if p := t.clients[e.GetClient()]; p != nil {
			t.draw(p, e)
		} else {
			t.summary.Missing++
		}
	}
	for _, l := range m.GetLosses() {
		t.lose(l)
	}
	return t.out.err
}

// Summary tells what was drawn so far.
func (t *Writer) Summary() Summary { return t.summary }

// Close draws what waited for more to be known of it, and completes the document.
func (t *Writer) Close() error {
	for _, p := range t.ordered() {
		for _, q := range p.queues() {
			t.settle(p, q, len(q.launches), t.last)
		}
	}
	t.out.end(map[string]string{
		"tool":           t.opt.Tool,
		"begun":          t.summary.Begun.UTC().Format(time.RFC3339Nano),
		"missing_events": fmt.Sprint(t.summary.Missing),
		"device_times": fmt.Sprintf("%d of %d launches measured, the others as predicted",
			t.summary.Measured, t.summary.Launches),
	})
	return t.out.err
}

func (t *Writer) lose(l *heddlev1.TraceLoss) {
	lost := l.GetOverwritten() + l.GetDropped() + l.GetImpossible()
	t.summary.Missing += lost
	p := t.clients[l.GetClient()]
	if p == nil || lost == 0 {
		return
	}
	if p.marks == 0 {
		p.marks = t.track(p, "missing events", 0)
	}
	t.out.instant(p.pid, p.marks, p.latest, fmt.Sprintf("%d events missing", lost), arguments{
		number("overwritten", l.GetOverwritten()), number("dropped", l.GetDropped()), number("impossible", l.GetImpossible()),
	})
}

// at is a time of the clock from the beginning on, in ns. What began before is drawn from there.
func (t *Writer) at(clock uint64) int64 {
	if clock <= t.start {
		return 0
	}
	return int64(clock - t.start) //nolint:gosec // less than the age of the machine
}

// span is a stretch of the timeline.
func (t *Writer) span(e *heddlev1.TraceEvent) (from, to int64) {
	return t.at(e.GetTimeNs()), t.at(e.GetTimeNs() + e.GetDurationNs())
}
