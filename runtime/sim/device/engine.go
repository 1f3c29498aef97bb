package device

import "math"

// near is how close progress has to come to a mark to be there: a sum of products does not meet it exactly.
const near = 1e-9

// run lets every event up to a time happen.
func (d *Device) run(to int64) {
	for d.next <= to {
		t := max(d.next, d.exact)
		d.step(t)
		d.settle(t)
	}
}

// step carries progress and usage from the last event to t. Between two events every rate is constant.
func (d *Device) step(t int64) {
	dt := t - d.exact
	if dt <= 0 {
		return
	}
	for _, i := range d.ready {
		if o := &d.ops[i]; o.rate > 0 && o.time > 0 {
			o.progress = min(1, o.progress+o.rate*float64(dt)/o.time)
		}
	}
	d.use(&d.usage, dt)
	d.exact = t
}

func (d *Device) use(u *Usage, dt int64) {
	if d.busy > 0 {
		u.Busy += dt
		u.SM += dt * int64(d.busy)
	}
	for q := range d.queue {
		if d.queue[q].head != none {
			u.Copy[q] += dt
		}
	}
}

// settle is everything that happens at t, then who runs from t on.
func (d *Device) settle(t int64) {
	d.finishKernels(t)
	d.finishCopies(t)
	d.promote(t)
	d.startCopies(t)
	d.choose(t)
	d.assign(t)
	d.next = d.predict(t)
}

// finishKernels completes kernels that are through and takes the SMs of those whose wave is over; assign gives these
// out anew.
func (d *Device) finishKernels(t int64) {
	kept := d.ready[:0]
	for _, i := range d.ready {
		o := &d.ops[i]
		running := o.held > 0 && o.rate > 0
		if running && (o.time <= 0 || o.progress >= 1-near) {
			ctx := &d.contexts[d.streams[o.stream].context]
			ctx.held -= o.held
			d.lose(ctx)
			d.usage.Kernels++
			d.complete(i, t)
			continue
		}
		if running && o.progress >= o.boundary-near {
			d.contexts[d.streams[o.stream].context].held -= o.held
			o.held = 0
		}
		kept = append(kept, i)
	}
	d.ready = kept
}

// predict is the time of the next event if nobody submits: the first whole nanosecond at which it has happened.
func (d *Device) predict(t int64) int64 {
	next := int64(Never)
	for _, i := range d.ready {
		if o := &d.ops[i]; o.rate > 0 {
			left := max(0, (o.boundary-o.progress)*o.time/o.rate)
			next = min(next, after(t, left))
		}
	}
	for q := range d.queue {
		if h := d.queue[q].head; h != none {
			next = min(next, d.ops[h].end)
		}
	}
	return min(next, d.slices.event())
}

// after is t and a span, rounded up; a span beyond all time is never over.
func after(t int64, span float64) int64 {
	span = math.Ceil(span)
	if span >= float64(Never-t) {
		return Never
	}
	return t + int64(span)
}

// ---- Copies: a queue is a chain of operations in the order of arrival, and its head runs.

func (d *Device) enterQueue(i int32) {
	o := &d.ops[i]
	o.start = none // not yet in the engine
	q := &d.queue[o.queue]
	if q.head == none {
		q.head = i
	} else {
		d.ops[q.tail].behind = i
	}
	q.tail = i
}

func (d *Device) leaveQueue(i int32) {
	q := &d.queue[d.ops[i].queue]
	before := int32(none)
	for j := q.head; j != i; j = d.ops[j].behind {
		before = j
	}
	if before == none {
		q.head = d.ops[i].behind
	} else {
		d.ops[before].behind = d.ops[i].behind
	}
	if q.tail == i {
		q.tail = before
	}
}

func (d *Device) finishCopies(t int64) {
	for q := range d.queue {
		h := d.queue[q].head
		if h != none && d.ops[h].start != none && d.ops[h].end <= t {
			d.leaveQueue(h)
			d.complete(h, t)
		}
	}
}

func (d *Device) startCopies(t int64) {
	for q := range d.queue {
		h := d.queue[q].head
		if h == none || d.ops[h].start != none {
			continue
		}
		d.ops[h].start = t
		d.ops[h].end = after(t, d.ops[h].time)
	}
}
