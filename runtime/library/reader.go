package library

import (
	"time"

	"github.com/heddle-project/heddle/runtime/profiles"
	"github.com/heddle-project/heddle/runtime/sched"
)

const (
	// refreshLearning and refreshKnown are how often a client's table is made anew while there is much
	// to learn, and later: what is known changes by little then.
	refreshLearning = 50 * time.Millisecond
	refreshKnown    = 2 * time.Second
)

// Reader names a client on a device: it reads in the profile of its workload there, and writes.
type Reader struct {
	Client uint64
	Device string // its identity, not its model
}

// reader is a client on a device.
type reader struct {
	book     *book // nil = nothing is kept of it
	device   profiles.Device
	beside   sched.Bound
	slowdown profiles.Slowdown

	// Of the last refresh.
	made    time.Time
	version uint64
	table   []profiles.Entry
	demand  sched.Demand
	covered float64
}

// Workload says what a client runs, and on what.
type Workload struct {
	Identity profiles.Identity
	Model    string // the driver's name for the device
	Device   profiles.Device
}

// Lesson is what a client told of its launches on one device.
type Lesson struct {
	Workload     Workload
	Descriptions []profiles.Description
	Samples      []profiles.Sample
	// Sparse is how many launches there shall be to one that is measured, where the workload is known;
	// 0 = none is measured then.
	Sparse uint32
	// Beside is up to which demand its kernels may run beside others.
	Beside sched.Bound
}

// Advice is what the client should be told.
type Advice struct {
	// MeasureEvery is how many launches there should be to one that is measured, 0 = none.
	MeasureEvery uint32
	// Table is all that it should know of its kernels, the most useful first. It must not be changed.
	Table []profiles.Entry
	// Fresh says that Table is another than the last time.
	Fresh bool
}

// Learn takes what a client told and answers with what it should know.
func (l *Library) Learn(who Reader, lesson *Lesson) Advice {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.readers[who]
	if r == nil {
		r = &reader{device: lesson.Workload.Device}
		if key := lesson.Workload.Identity.Key(); key != "" && lesson.Workload.Model != "" {
			id := &lesson.Workload.Identity
			r.book = l.take(profiles.ID{Workload: key, Device: lesson.Workload.Model}, id.Tenant, id.Label())
		}
		l.readers[who] = r
	}
	if r.book == nil {
		return Advice{}
	}
	r.learn(lesson)
	a := Advice{Table: r.table, MeasureEvery: r.book.profile.MeasureEvery(lesson.Sparse)}
	if r.stale(l.opt.Now(), lesson.Beside) {
		r.refresh(l.opt.Now(), lesson.Beside)
		a.Table, a.Fresh = r.table, true
	}
	l.knownMu.Lock()
	defer l.knownMu.Unlock()
	l.known[who] = Known{
		Profile: r.book.profile.ID, Demand: r.demand, Covered: r.covered, Learning: a.MeasureEvery == 1,
		Measured: r.slowdown.Measured, Expected: r.slowdown.Expected,
	}
	return a
}

func (r *reader) learn(lesson *Lesson) {
	p := r.book.profile
	for _, d := range lesson.Descriptions {
		p.Describe(d)
	}
	for _, s := range lesson.Samples {
		outcome := p.Observe(s)
		if s.Measured {
			r.slowdown.Add(s.DeviceTime, outcome)
		}
	}
	if len(lesson.Descriptions)+len(lesson.Samples) > 0 {
		r.book.dirty = true
		r.book.version++
	}
}

func (r *reader) stale(now time.Time, beside sched.Bound) bool {
	if r.made.IsZero() || beside != r.beside {
		return true
	}
	if r.version == r.book.version {
		return false
	}
	wait := refreshKnown
	if r.book.profile.MeasureEvery(2) == 1 {
		wait = refreshLearning
	}
	return now.Sub(r.made) >= wait
}

func (r *reader) refresh(now time.Time, beside sched.Bound) {
	r.made, r.version, r.beside = now, r.book.version, beside
	r.table, _ = r.book.profile.Table(r.device, beside)
	r.demand = r.book.profile.Demand(r.device)
	r.covered = r.book.profile.Summary().Covered
}

// Known is what is known of a client.
type Known struct {
	Profile profiles.ID // in which it reads, zero = in none
	Demand  sched.Demand
	// Covered is the part of its device time of late that is of known kernels, and Learning says that
	// each of its launches is measured.
	Covered  float64
	Learning bool
	// Measured is how long its measured launches took, and Expected what the profile said before;
	// both only grow.
	Measured, Expected time.Duration
}

// Known returns what is known of a client on a device, as of its last lesson. It waits for nobody.
func (l *Library) Known(who Reader) Known {
	l.knownMu.Lock()
	defer l.knownMu.Unlock()
	return l.known[who]
}

// Leave forgets a client. What it taught stays.
func (l *Library) Leave(client uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for who, r := range l.readers {
		if who.Client != client {
			continue
		}
		delete(l.readers, who)
		if r.book != nil {
			l.give(r.book)
		}
		l.knownMu.Lock()
		delete(l.known, who)
		l.knownMu.Unlock()
	}
}
