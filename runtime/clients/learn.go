package clients

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/heddle-project/heddle/runtime/abi"
	"github.com/heddle-project/heddle/runtime/shm"
	"github.com/heddle-project/heddle/runtime/wire"
)

const (
	// learnBusy is how often clients are read while they tell something. A client's ring holds 256
	// samples, and what is lost of them is not missed.
	learnBusy = 10 * time.Millisecond
	// learnCalm is the pace while nobody tells anything.
	learnCalm = 100 * time.Millisecond
	// learnMost bounds the samples that are read in one round, all clients together: whoever writes
	// more than that hinders only the learning.
	learnMost = 4096
)

// Learner learns from what clients tell of their kernels. It is called by one goroutine at a time,
// without the Manager's lock.
type Learner interface {
	// Learn takes what a client told since the last time, and says what it should know. A lesson may
	// be empty. It must not be kept.
	Learn(*Lesson) Advice
	// Leave says that there will be no more lessons of a client.
	Leave(client uint64)
}

// Lesson is what a client told since the lesson before. Nothing of it can be relied on.
type Lesson struct {
	Client   uint64
	Identity Identity
	Tenant   string
	Name     string
	Rate     uint64 // launches per second while it launched lately, as it counts them
	Devices  []LessonDevice
	Samples  []shm.Sample
	Kernels  []shm.Kernel
}

// LessonDevice is a device on which the client is.
type LessonDevice struct {
	Slot   int
	UUID   wire.UUID
	Alone  bool // no other client is on it
	Shared bool // another client used it since the lesson before
	// Together says that one did to whom the client does not yield, and who does not yield to it, or
	// who may run kernels beside its own or it beside the other's.
	Together bool
	Beside   Beside
	// Watched says that others yield to the client there.
	Watched bool
}

// Advice is what a client should know.
type Advice struct {
	MeasureEvery uint32 // measure one launch in so many, 0 = none
	// Profile is all that the client should know of its kernels, the most useful first.
	Profile []shm.ProfileEntry
	Fresh   bool // Profile is another than the last time
}

// activity is what a client had done on a device at some time.
type activity struct {
	service time.Duration
	busy    time.Duration
	now     bool // has work outstanding
}

// pupil is a client in a round of lessons.
type pupil struct {
	client *client
	lesson Lesson
	advice Advice
	err    error
}

// learnLoop reads what clients tell of their kernels, and tells them what was learnt. It sleeps while
// no client has a device.
func (m *Manager) learnLoop(ctx context.Context) {
	if m.opt.Learner == nil {
		return
	}
	c := lessons{m: m, known: map[uint64]*client{}}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.teach:
		case <-timer.C:
		}
		if pace := c.round(); pace > 0 {
			timer.Reset(pace)
		}
	}
}

// lessons holds what is used again from round to round.
type lessons struct {
	m      *Manager
	pupils []pupil
	known  map[uint64]*client // to the Learner
	next   uint64             // client with which the next round begins
}

// round reads all clients once and tells when to look again; 0 = there is nobody to learn from.
func (c *lessons) round() time.Duration {
	c.call()
	pace := learnCalm
	budget := learnMost
	for i := range c.pupils {
		p := &c.pupils[i]
		if budget <= 0 {
			c.next = p.client.id
			c.pupils[i].client.keep.release()
			for _, rest := range c.pupils[i+1:] {
				rest.client.keep.release()
			}
			c.pupils = c.pupils[:i]
			break
		}
		p.read()
		if told := len(p.lesson.Samples) + len(p.lesson.Kernels); told != 0 {
			budget -= told
			pace = learnBusy
		}
		if p.err == nil {
			p.advice = c.learn(p)
		}
	}
	if c.tell() == 0 {
		return 0
	}
	return pace
}

// learn hands a lesson to the Learner. A client that came back under its number has a new verdict, in
// which nothing is: for the Learner it is another one.
func (c *lessons) learn(p *pupil) Advice {
	id := p.client.id
	if before := c.known[id]; before != nil && before != p.client {
		c.m.opt.Learner.Leave(id)
	}
	c.known[id] = p.client
	return c.m.opt.Learner.Learn(&p.lesson)
}

// call lists the clients that are on a device, those first whose turn it is, and holds their segments
// open.
func (c *lessons) call() {
	m := c.m
	m.mu.Lock()
	defer m.mu.Unlock()
	c.pupils = c.pupils[:0]
	for _, d := range m.devices {
		m.witness(d)
	}
	for _, client := range m.clients {
		if client.distrusted != nil {
			continue
		}
		lesson := Lesson{
			Client: client.id, Identity: client.identity, Tenant: client.grant.Tenant, Name: client.hello.Name,
			Rate: client.countLaunches(m.opt.Now()),
		}
		for _, b := range client.bindings {
			if b != nil {
				lesson.Devices = append(lesson.Devices, b.lesson())
			}
		}
		if len(lesson.Devices) == 0 {
			continue
		}
		client.keep.retain()
		c.pupils = append(c.pupils, pupil{client: client, lesson: lesson})
	}
	slices.SortFunc(c.pupils, func(a, b pupil) int {
		return cmp.Or(-compareBools(a.client.id >= c.next, b.client.id >= c.next), compareIDs(a.client.id, b.client.id))
	})
	c.next = 0
}

const (
	// rateSpan is over how long launches are counted to know their rate.
	rateSpan = 50 * time.Millisecond
	// rateKept is what part of a rate is believed a span later, whatever came since: many launch in
	// bursts, and it is those that must not be slowed down.
	rateKept = 0.9
)

// pace is how fast a client launches.
type pace struct {
	launches uint64 // up to sinceNs
	sinceNs  uint64
	rate     uint64 // per second, the highest lately
}

// countLaunches returns how many launches per second there have been lately, at most.
func (c *client) countLaunches(nowNs uint64) uint64 {
	passed := nowNs - min(c.pace.sinceNs, nowNs)
	if passed < uint64(rateSpan) {
		return c.pace.rate
	}
	p, err := c.segment.Process()
	if err != nil {
		return c.pace.rate // whoever reads it for its own sake evicts its writer
	}
	if c.pace.sinceNs != 0 {
		launched := p.Launches - min(c.pace.launches, p.Launches)
		rate := uint64(float64(launched) / time.Duration(passed).Seconds())
		c.pace.rate = max(rate, uint64(rateKept*float64(c.pace.rate)))
	}
	c.pace.launches, c.pace.sinceNs = p.Launches, nowNs
	return c.pace.rate
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

// witness notes which clients of a device did something since the last time.
func (m *Manager) witness(d *device) {
	for _, b := range d.bindings {
		b.active, b.apart = false, 0
		if b.client.distrusted != nil {
			continue
		}
		s, err := b.client.segment.Device(b.slot)
		if err != nil {
			continue // whoever reads it for its own sake evicts its writer
		}
		now := activity{service: s.DeviceTime, busy: s.Busy, now: s.BusyStreams != 0}
		b.active = now.now || now != b.taught
		b.taught = now
	}
	for _, b := range d.bindings {
		for _, h := range b.watched {
			if slices.Contains(b.corun, h.client.id) {
				continue
			}
			if h.active {
				b.apart++
			}
			if b.active {
				h.apart++
			}
		}
	}
}

func (b *binding) lesson() LessonDevice {
	d := LessonDevice{Slot: b.slot, UUID: b.device.uuid, Alone: len(b.device.bindings) == 1, Beside: b.beside}
	d.Watched = b.verdict.Gate&abi.GatePublish != 0
	active := 0
	for _, other := range b.device.bindings {
		if other != b && other.active {
			active++
		}
	}
	d.Shared, d.Together = active != 0, active > b.apart
	return d
}

// read copies what the client told. Its segment is mapped, whatever becomes of the client.
func (p *pupil) read() {
	_, p.err = p.client.kernels.Read(func(k shm.Kernel) { p.lesson.Kernels = append(p.lesson.Kernels, k) })
	if p.err == nil {
		_, p.err = p.client.samples.Read(func(s shm.Sample) { p.lesson.Samples = append(p.lesson.Samples, s) })
	}
}

// tell gives the clients their advice, forgets those that are gone, and returns how many are left.
func (c *lessons) tell() int {
	m := c.m
	m.mu.Lock()
	for i := range c.pupils {
		p := &c.pupils[i]
		switch {
		case p.client.gone, p.client.distrusted != nil:
		case p.err != nil:
			m.detachLocked(p.client, p.err)
		default:
			p.client.advise(m, &p.advice)
		}
	}
	left := 0
	for _, client := range m.clients {
		if slices.ContainsFunc(client.bindings[:], func(b *binding) bool { return b != nil }) {
			left++
		}
	}
	var gone []uint64
	for id := range c.known {
		if m.clients[id] == nil { // one that came back is seen in its first lesson
			gone = append(gone, id)
		}
	}
	m.mu.Unlock()
	for i := range c.pupils {
		c.pupils[i].client.keep.release()
		c.pupils[i] = pupil{}
	}
	for _, id := range gone {
		delete(c.known, id)
		m.opt.Learner.Leave(id)
	}
	return left
}

// publishMeasure tells the client what to measure, and for which timeline to tell what it does.
func (c *client) publishMeasure() {
	every := c.measure
	if every == 0 && c.timeline != 0 {
		every = traceMeasure
	}
	c.verdict.PublishMeasure(every, c.timeline)
}

// advise publishes what the client should know.
func (c *client) advise(m *Manager, a *Advice) {
	if a.MeasureEvery != c.measure {
		c.measure = a.MeasureEvery
		c.publishMeasure()
	}
	if !a.Fresh {
		return
	}
	if _, err := c.verdict.ReplaceProfile(a.Profile); err != nil {
		m.opt.Log.Error("publish profile", "client", c.id, "error", err)
	}
}
