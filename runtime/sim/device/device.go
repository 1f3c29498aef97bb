package device

import "math"

// Never is later than every event.
const Never = math.MaxInt64

// Context names what AddContext made; no name is used again.
type Context int32

// Stream names what AddStream made; no name is used again.
type Stream int32

// Own is the percentage of a context that is no client of MPS.
const Own = -1

// StreamKind says how a stream stands to the legacy stream of its context.
type StreamKind uint8

// The kinds of streams.
const (
	NonBlocking StreamKind = iota
	Blocking
	Legacy
)

// Queue is a copy engine.
type Queue uint8

// The copy queues.
const (
	HostToDevice Queue = iota
	DeviceToHost
	WithinDevice
	queues
)

// Point is a place in a stream: behind the operation whose submission returned it. The zero Point lies behind nothing.
type Point struct {
	stream Stream
	pos    uint64
}

// Completion is an operation that is done.
type Completion struct {
	Tag        uint64 // as given at submission
	Start, End int64
}

// Usage is what has been used since time 0, in nanoseconds.
type Usage struct {
	Busy     int64 // at least one kernel held an SM
	SM       int64 // SMs held x time
	Copy     [queues]int64
	Kernels  uint64 // completed
	Switches uint64 // between groups
}

const none = -1

type opKind uint8

const (
	kernelOp opKind = iota
	copyOp
	markOp
	waitOp
)

// op is an operation in a stream. Indexes instead of pointers let the pool grow.
type op struct {
	kind    opKind
	queue   Queue
	ready   bool // kernels and copies: competes or runs
	stream  Stream
	next    int32 // in its stream; in the chain of free ones
	behind  int32 // copies: the next of its queue
	pos     uint64
	seq     uint64 // order of submission
	arrived uint64
	tag     uint64
	target  Point // of a wait

	time       float64 // alone, in ns
	dram       float64
	waves      float64
	want, held uint32
	progress   float64 // 0 to 1, exact at Device.exact
	boundary   float64 // the progress at which the next thing happens to it
	rate       float64 // of progress per ns, times `time`
	start, end int64
}

type stream struct {
	context    Context
	priority   int32
	kind       StreamKind
	gone       bool
	head, tail int32
	depth      int
	last, done uint64 // positions: submitted, completed
}

type context struct {
	mps      bool
	gone     bool
	cap      uint32
	legacy   Stream
	blocking []Stream
	streams  []Stream
	ready    int    // kernels that compete
	held     uint32 // SMs of these
}

// Device is one simulated GPU.
type Device struct {
	gpu       GPU
	bandwidth [queues]float64

	now   int64 // where the caller is
	exact int64 // progress and usage are exact here; at most now
	next  int64

	contexts []context
	streams  []stream
	ops      []op
	free     int32
	pending  int // operations not done
	seq      uint64
	arrivals uint64

	unready bitset                             // streams whose head may not start yet, or has not been looked at
	ready   []int32                            // kernels that compete, by stream priority, then arrival
	queue   [queues]struct{ head, tail int32 } // the head of a queue runs
	slices  slices
	busy    uint32 // SMs held by kernels that run

	done  []Completion // not yet handed out
	given []Completion // handed out by the last Advance
	usage Usage
}

// New makes an idle device at time 0.
func New(gpu GPU) *Device {
	d := &Device{gpu: gpu, free: none, next: Never}
	d.bandwidth = [queues]float64{gpu.HostToDevice, gpu.DeviceToHost, gpu.DRAM / 2}
	for q := range d.queue {
		d.queue[q].head, d.queue[q].tail = none, none
	}
	d.slices = slices{current: none, target: none, quantumEnd: none}
	return d
}

// AddContext adds a context of a process: Own, or a client of MPS with an active-thread percentage (100: without one).
func (d *Device) AddContext(percent int) Context {
	c := context{mps: percent != Own, legacy: none, cap: d.gpu.SMs}
	if c.mps {
		c.cap = d.gpu.MPSCap(uint32(percent))
	}
	d.contexts = append(d.contexts, c)
	return Context(len(d.contexts) - 1)
}

// AddStream adds a stream; the smaller priority goes first. A context has one legacy stream at most.
func (d *Device) AddStream(c Context, priority int32, kind StreamKind) Stream {
	s := Stream(len(d.streams))
	ctx := &d.contexts[c]
	switch {
	case ctx.gone:
		panic("device: a stream for a removed context")
	case kind == Legacy && ctx.legacy != none:
		panic("device: a second legacy stream")
	case kind == Legacy:
		ctx.legacy = s
	case kind == Blocking:
		ctx.blocking = append(ctx.blocking, s)
	}
	ctx.streams = append(ctx.streams, s)
	d.streams = append(d.streams, stream{context: c, priority: priority, kind: kind, head: none, tail: none})
	d.unready.grow(len(d.streams))
	return s
}

// Now is the time up to which the device has been advanced.
func (d *Device) Now() int64 { return d.now }

// GPU is the model of the device.
func (d *Device) GPU() GPU { return d.gpu }

// Next is the time of the next event, or of results that wait to be handed out; false if nothing will happen without
// a submission. An event need not complete anything.
func (d *Device) Next() (int64, bool) {
	if len(d.done) > 0 {
		return d.now, true
	}
	return d.next, d.next != Never
}

// Advance moves the device to a time, which includes the events at that time, and returns what was completed, in order
// of time. The slice is valid until the next call. A time that is past changes nothing.
func (d *Device) Advance(to int64) []Completion {
	d.run(to)
	d.now = max(d.now, to)
	d.given, d.done = d.done, d.given[:0]
	return d.given
}

// Kernel submits a launch at Now. Its completion carries tag.
func (d *Device) Kernel(s Stream, tag uint64, k Kernel) Point {
	shape := d.gpu.Shape(k)
	i := d.take(s, tag, kernelOp)
	o := &d.ops[i]
	o.time, o.dram, o.want, o.waves = k.Time, k.DRAM, shape.Want, float64(shape.Waves)
	return d.submit(i)
}

// Copy submits a copy, or a set within the device, at Now.
func (d *Device) Copy(s Stream, tag uint64, q Queue, bytes uint64) Point {
	i := d.take(s, tag, copyOp)
	d.ops[i].queue = q
	d.ops[i].time = float64(bytes) / d.bandwidth[q]
	return d.submit(i)
}

// Mark submits an operation that is done when everything before it in its stream is.
func (d *Device) Mark(s Stream, tag uint64) Point {
	return d.submit(d.take(s, tag, markOp))
}

// Wait holds its stream until everything up to the point is done, or the stream of the point is gone.
func (d *Device) Wait(s Stream, tag uint64, p Point) Point {
	i := d.take(s, tag, waitOp)
	d.ops[i].target = p
	return d.submit(i)
}

// Done reports whether everything up to the point is done, or its stream is gone.
func (d *Device) Done(p Point) bool {
	s := &d.streams[p.stream]
	return s.gone || s.done >= p.pos
}

// Pending is how many operations of a stream are not done.
func (d *Device) Pending(s Stream) int { return d.streams[s].depth }

// Idle reports whether no operation is left, running or waiting.
func (d *Device) Idle() bool { return d.pending == 0 }

// BusySMs is how many SMs kernels hold that run now: none during a switch between groups.
func (d *Device) BusySMs() int { return int(d.busy) }

// Copying reports whether a copy queue is at work.
func (d *Device) Copying(q Queue) bool { return d.queue[q].head != none }

// Usage is what has been used up to Now.
func (d *Device) Usage() Usage {
	u := d.usage
	d.use(&u, d.now-d.exact)
	return u
}

// RemoveContext takes a context away as if its process had died: its work vanishes without a completion, and waits for
// its streams are over.
func (d *Device) RemoveContext(c Context) {
	ctx := &d.contexts[c]
	if ctx.gone {
		return
	}
	d.run(d.now)
	d.step(d.now)
	ctx.gone = true
	for _, s := range ctx.streams {
		d.drop(s)
	}
	d.settle(d.now)
	d.run(d.now)
}
