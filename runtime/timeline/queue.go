package timeline

import (
	"cmp"
	"slices"

	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
)

// When a launch ran on the device is not told: events tell how long, and only of some. It is found out
// from what is known: kernels of one stream run one after the other, none before it was launched, and
// none after the client's device was seen idle. So launches wait here until that is seen, or until
// there are more of them than any driver has outstanding, or until the end, where what has not ended
// is cut.

const (
	// queueMax bounds the launches of one stream that wait.
	queueMax = 8192
	// longest is the longest launch, in ns, that is believed to have been predicted: sums of such times
	// fit.
	longest = 1000 * 1000 * 1000 * 1000
)

type streamKey struct {
	device uint32
	stream int64
}

// queue holds the launches of a stream that are not drawn yet.
type queue struct {
	key      streamKey
	launches []launched // by time
	end      uint64     // clock when the last one drawn has ended
}

// launched is a launch; times are of the clock.
type launched struct {
	time     uint64
	duration uint64 // 0 = unknown
	start    uint64
	end      uint64
	kernel   uint64
	awaited  bool // its device time is still to come
	measured bool
	graph    bool
}

func keyOf(e *heddlev1.TraceEvent) streamKey {
	if e.Stream == nil {
		return streamKey{e.GetDevice(), noStream}
	}
	return streamKey{e.GetDevice(), int64(e.GetStream())}
}

func (p *process) queues() []*queue {
	list := make([]*queue, 0, len(p.streams))
	for _, q := range p.streams {
		list = append(list, q)
	}
	slices.SortFunc(list, func(a, b *queue) int {
		return cmp.Or(cmp.Compare(a.key.device, b.key.device), cmp.Compare(a.key.stream, b.key.stream))
	})
	return list
}

func (t *Writer) enqueue(p *process, e *heddlev1.TraceEvent) {
	key := keyOf(e)
	q := p.streams[key]
	if q == nil {
		q = &queue{key: key}
		p.streams[key] = q
	}
	l := launched{
		time: e.GetTimeNs(), duration: min(e.GetPredictedNs(), longest), kernel: e.GetKernel(), awaited: e.GetMeasured(), graph: e.GetGraph(),
	}
	// Threads that launch on one stream tell of it in any order.
	at := len(q.launches)
	for at > 0 && q.launches[at-1].time > l.time {
		at--
	}
	q.launches = slices.Insert(q.launches, at, l)
	if len(q.launches) > queueMax {
		t.settle(p, q, queueMax/2, t.last)
	}
}

// measured completes a launch. One that is not in the queue was drawn as predicted.
func (t *Writer) measured(p *process, e *heddlev1.TraceEvent) {
	t.summary.Measured++
	p.kernel(e.GetKernel()).measured = e.GetDurationNs()
	q := p.streams[keyOf(e)]
	if q == nil {
		return
	}
	at, found := slices.BinarySearchFunc(q.launches, e.GetTimeNs(), func(l launched, time uint64) int {
		return cmp.Compare(l.time, time)
	})
	if found && q.launches[at].awaited {
		l := &q.launches[at]
		l.duration, l.awaited, l.measured = e.GetDurationNs(), false, true
	}
}

// before is how many launches were made before a time.
func (q *queue) before(time uint64) int {
	at, _ := slices.BinarySearchFunc(q.launches, time, func(l launched, time uint64) int { return cmp.Compare(l.time, time) })
	return at
}

// settle draws the first n launches of a stream, so that all of them end by the limit.
func (t *Writer) settle(p *process, q *queue, n int, limit uint64) {
	first := q.launches[:n]
	for i := range first {
		if l := &first[i]; l.duration == 0 {
			l.duration = p.kernel(l.kernel).measured
		}
	}
	q.place(first, limit)
	for i := range first {
		l := &first[i]
		if l.duration == 0 && !l.measured {
			continue // nobody knows how long it took
		}
		k := p.kernel(l.kernel)
		args := arguments{flag("measured", l.measured), micros("device_us", l.duration), micros("launched_us", uint64(t.at(l.time)))} //nolint:gosec // from 0 on
		t.show(p, trackKey{q.key.device, device, q.key.stream}, t.at(l.start), t.at(l.end), k.name, args)
	}
	q.launches = slices.Delete(q.launches, 0, n)
}

// place says when launches ran: one after the other as soon as they could, but so that the last one
// ends by the limit.
func (q *queue) place(launches []launched, limit uint64) {
	end := q.end
	for i := range launches {
		l := &launches[i]
		l.start = max(l.time, end)
		l.end = l.start + l.duration
		end = l.end
	}
	for i := len(launches) - 1; i >= 0 && launches[i].end > limit; i-- {
		l := &launches[i]
		earliest := max(l.time, q.end)
		l.end = max(limit, earliest)
		l.start = l.end - min(l.duration, l.end-earliest)
		limit = l.start
	}
	if n := len(launches); n > 0 {
		q.end = launches[n-1].end
	}
}
