package device

// take makes an operation, out of the pool if it can.
func (d *Device) take(s Stream, tag uint64, kind opKind) int32 {
	if d.streams[s].gone {
		panic("device: submission to a removed context")
	}
	i := d.free
	if i == none {
		i = int32(len(d.ops))
		d.ops = append(d.ops, op{})
	} else {
		d.free = d.ops[i].next
	}
	d.ops[i] = op{kind: kind, stream: s, tag: tag, next: none, behind: none}
	return i
}

func (d *Device) release(i int32) {
	d.ops[i].next = d.free
	d.free = i
	d.pending--
}

// submit appends an operation to its stream. At the head it changes who runs; elsewhere nobody sees it yet.
func (d *Device) submit(i int32) Point {
	d.run(d.now)
	o := &d.ops[i]
	s := &d.streams[o.stream]
	d.seq++
	s.last++
	o.seq, o.pos = d.seq, s.last
	point := Point{o.stream, o.pos}
	s.depth++
	d.pending++
	if s.head != none {
		d.ops[s.tail].next = i
		s.tail = i
		return point
	}
	s.head, s.tail = i, i
	d.unready.add(o.stream)
	d.step(d.now)
	d.settle(d.now)
	d.run(d.now)
	return point
}

// complete takes an operation from the head of its stream; the next one is the head, and has to be looked at.
func (d *Device) complete(i int32, t int64) {
	o := &d.ops[i]
	s := &d.streams[o.stream]
	s.head = o.next
	s.done = o.pos
	s.depth--
	if s.head == none {
		s.tail = none
		d.unready.remove(o.stream)
	} else {
		d.unready.add(o.stream)
	}
	d.done = append(d.done, Completion{Tag: o.tag, Start: o.start, End: t})
	d.release(i)
}

// drop forgets a stream and all that is in it.
func (d *Device) drop(id Stream) {
	s := &d.streams[id]
	if h := s.head; h != none && d.ops[h].ready {
		if d.ops[h].kind == kernelOp {
			d.withdraw(h)
		} else {
			d.leaveQueue(h)
		}
	}
	for i := s.head; i != none; {
		next := d.ops[i].next
		d.release(i)
		i = next
	}
	s.head, s.tail, s.depth = none, none, 0
	s.done, s.gone = s.last, true
	d.unready.remove(id)
}

// promote completes the heads that need nothing, as long as that uncovers others, and lets the rest compete. Arrival
// numbers come last, so that all which become ready at one time are numbered in the order of their streams.
func (d *Device) promote(t int64) {
	for changed := true; changed; {
		changed = false
		for s := d.unready.from(0); s != none; s = d.unready.from(s + 1) {
			for i := d.streams[s].head; i != none && d.passes(s, i); i = d.streams[s].head {
				d.ops[i].start = t
				d.complete(i, t)
				changed = true
			}
		}
	}
	for s := d.unready.from(0); s != none; s = d.unready.from(s + 1) {
		i := d.streams[s].head
		o := &d.ops[i]
		if o.kind > copyOp || d.ordered(s, o) {
			continue
		}
		d.unready.remove(s)
		o.ready = true
		o.arrived = d.arrivals
		d.arrivals++
		if o.kind == copyOp {
			d.enterQueue(i)
		} else {
			d.compete(i)
		}
	}
}

// passes reports whether the head of s is done as soon as it is reached.
func (d *Device) passes(s Stream, i int32) bool {
	o := &d.ops[i]
	switch o.kind {
	case markOp:
		return !d.ordered(s, o)
	case waitOp:
		return d.Done(o.target) && !d.ordered(s, o)
	default:
		return false
	}
}

// ordered reports whether o, the head of s, waits for earlier work across the legacy stream of its context.
func (d *Device) ordered(id Stream, o *op) bool {
	s := &d.streams[id]
	ctx := &d.contexts[s.context]
	switch s.kind {
	case Blocking:
		return ctx.legacy != none && d.earlier(ctx.legacy, o.seq)
	case Legacy:
		for _, b := range ctx.blocking {
			if d.earlier(b, o.seq) {
				return true
			}
		}
	case NonBlocking:
	}
	return false
}

func (d *Device) earlier(s Stream, seq uint64) bool {
	h := d.streams[s].head
	return h != none && d.ops[h].seq < seq
}
