package timeline

import (
	"fmt"
	"time"

	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
)

// furthest bounds how far a prediction is drawn beyond what really happened.
const furthest = uint64(time.Second)

func (t *Writer) draw(p *process, e *heddlev1.TraceEvent) {
	t.last = max(t.last, e.GetTimeNs()+e.GetDurationNs())
	switch e.GetKind() {
	case heddlev1.TraceKind_TRACE_KIND_LAUNCH:
		t.launch(p, e)
	case heddlev1.TraceKind_TRACE_KIND_DEVICE:
		t.measured(p, e)
	case heddlev1.TraceKind_TRACE_KIND_HOLD:
		t.hold(p, e)
	case heddlev1.TraceKind_TRACE_KIND_GAP:
		t.gap(p, e)
	default: // of a later version
	}
}

func (t *Writer) launch(p *process, e *heddlev1.TraceEvent) {
	t.summary.Launches++
	k := p.kernel(e.GetKernel())
	from, to := t.span(e)
	args := make(arguments, 0, len(k.args)+2)
	if e.Stream != nil {
		args = append(args, number("stream", uint64(e.GetStream())))
	}
	if e.GetPredictedNs() != 0 {
		args = append(args, micros("predicted_us", e.GetPredictedNs()))
	}
	t.show(p, trackKey{e.GetDevice(), launches, noStream}, from, to, k.name, append(args, k.args...))
	t.enqueue(p, e)
}

func (t *Writer) hold(p *process, e *heddlev1.TraceEvent) {
	t.summary.Holds++
	from, to := t.span(e)
	args := arguments{text("reason", reasonText(e.GetReason())), flag("at_yield_point", e.GetYieldPoint())}
	if !e.GetYieldPoint() { // what comes next is not known there
		args = append(args, argument{"kernel", p.kernel(e.GetKernel()).name}, micros("predicted_us", e.GetPredictedNs()),
			flag("ended_by_max_hold", e.GetOverrun()))
	}
	if h := t.clients[e.GetHolder()]; h != nil {
		args = append(args, text("holder", h.label))
	} else if e.GetHolder() != 0 {
		args = append(args, text("holder", fmt.Sprintf("client %d", e.GetHolder())))
	}
	t.show(p, trackKey{e.GetDevice(), held, noStream}, from, to, quoted("held: "+reasonWord(e.GetReason())), args)
}

func reasonWord(r heddlev1.TraceReason) string {
	switch r {
	case heddlev1.TraceReason_TRACE_REASON_CLOSED:
		return "closed"
	case heddlev1.TraceReason_TRACE_REASON_WINDOW:
		return "window"
	case heddlev1.TraceReason_TRACE_REASON_PEER:
		return "peer"
	case heddlev1.TraceReason_TRACE_REASON_TOKEN:
		return "token"
	case heddlev1.TraceReason_TRACE_REASON_LONG:
		return "long"
	default:
		return "other"
	}
}

func reasonText(r heddlev1.TraceReason) string {
	switch r {
	case heddlev1.TraceReason_TRACE_REASON_CLOSED:
		return "heddled closed the gate"
	case heddlev1.TraceReason_TRACE_REASON_WINDOW:
		return "too much of its own work was outstanding"
	case heddlev1.TraceReason_TRACE_REASON_PEER:
		return "a higher class was busy, or had been a moment ago"
	case heddlev1.TraceReason_TRACE_REASON_TOKEN:
		return "another of its class was filling the gap"
	case heddlev1.TraceReason_TRACE_REASON_LONG:
		return "longer than a launch of its class may be"
	default:
		return "not known to this version"
	}
}

func (t *Writer) gap(p *process, e *heddlev1.TraceEvent) {
	t.summary.Gaps++
	from, to := t.span(e)
	for _, q := range p.queues() {
		if q.key.device == e.GetDevice() {
			t.settle(p, q, q.before(e.GetTimeNs()), e.GetTimeNs())
		}
	}
	args := arguments{{"after", p.kernel(e.GetKernel()).name}, micros("real_us", e.GetDurationNs())}
	if e.GetPredictedNs() != 0 {
		args = append(args, micros("predicted_us", e.GetPredictedNs()))
		end := t.at(e.GetTimeNs() + min(e.GetPredictedNs(), e.GetDurationNs()+furthest))
		t.show(p, trackKey{e.GetDevice(), foretold, noStream}, from, end, quoted("predicted"), args)
	}
	t.show(p, trackKey{e.GetDevice(), idle, noStream}, from, to, quoted("idle"), args)
}
