package sim

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/heddle-project/heddle/runtime/profiles"
	"github.com/heddle-project/heddle/runtime/sched"
)

// phase is what the host thread of a program does next.
type phase int

const (
	phaseLaunch  phase = iota // launch the next kernel
	phaseWait                 // wait for everything that was launched
	phaseWaited               // go on after such a wait
	phaseRequest              // take the next request
)

// proc is one running program with its interposer.
type proc struct {
	id     sched.ClientID
	client *Client
	demand sched.Demand
	stream int
	random *rand.Rand
	gaps   []profiles.Gap // by the kernel that a wait follows
	spread spread

	phase    phase
	stamp    uint64 // of the timer that counts
	pc       int    // next kernel
	due      uint64 // when the present request came
	arrivals Arrivals

	// What was launched and is not known to be complete, oldest first.
	flight        []flight
	first         int
	outstandingNs uint64
	lastEnd       uint64
	blocked       bool // the stream is full

	// What the interposer publishes.
	busy      bool
	idleSince uint64
	nextNs    uint64
	wantNs    uint64

	// Its verdict, and the peers of it.
	verdict sched.Verdict
	peers   []*proc
	coRun   []bool

	// A held launch.
	held      bool
	heldSince uint64
	reason    sched.Result
	holder    *proc
	graceOver bool

	// What was measured.
	service  time.Duration // device time of complete kernels, as if alone
	rounds   float64
	latency  []uint64
	taken    uint64 // time of its kernels ...
	expected uint64 // ... and what they take alone
	heldNs   uint64
	overruns int
}

type flight struct {
	kernel    int
	submitted uint64
	timeNs    uint64 // alone, this time
	estimate  uint64
}

func (p *proc) inFlight() int { return len(p.flight) - p.first }

func (p *proc) kernels() []Kernel { return p.client.Workload.Kernels }

func (p *proc) push(f flight) {
	if p.first > 512 && p.first*2 > len(p.flight) {
		p.flight = p.flight[:copy(p.flight, p.flight[p.first:])]
		p.first = 0
	}
	p.flight = append(p.flight, f)
	p.outstandingNs += f.estimate
}

func (p *proc) pop() flight {
	f := p.flight[p.first]
	p.first++
	p.outstandingNs -= f.estimate
	return f
}

// atWait reports whether the host waits after the kernel that was launched last.
func (p *proc) atWait() bool {
	w := &p.client.Workload
	return p.pc == len(w.Kernels) || w.SyncEvery > 0 && p.pc%w.SyncEvery == 0 || w.Kernels[p.pc-1].Pause > 0
}

// pause is how long the host works after such a wait.
func (p *proc) pause() uint64 {
	w := &p.client.Workload
	if own := w.Kernels[p.pc-1].Pause; own > 0 {
		return uint64(own)
	}
	return uint64(w.HostTime)
}

// draw is how long a launch of the kernel takes this time.
func (p *proc) draw(k *Kernel, noise float64) uint64 {
	ns := float64(k.Time)
	switch {
	case k.Spread > 0: // log-normal, of this mean and deviation
		variance := math.Log1p(k.Spread * k.Spread)
		ns *= math.Exp(p.random.NormFloat64()*math.Sqrt(variance) - variance/2)
	case noise > 0:
		ns *= math.Exp(p.random.NormFloat64() * noise)
	}
	return uint64(ns)
}

// spread learns how far launches' times are from what they were predicted to take: the root of the mean
// square, weighted by time, as a profile's demand has it.
type spread struct {
	n               int
	weight, squares float64
}

// spreadSamples is how many launches must have been measured before it says anything.
const spreadSamples = 10

func (s *spread) add(took, predicted uint64) {
	if predicted == 0 {
		return
	}
	off := float64(took)/float64(predicted) - 1
	s.n++
	s.weight += float64(predicted)
	s.squares += float64(predicted) * off * off
}

// value is infinite while too little was measured.
func (s *spread) value() float64 {
	if s.n < spreadSamples {
		return math.Inf(1)
	}
	return math.Sqrt(s.squares / s.weight)
}

// gapLeast is the shortest gap that is worth filling, as a profile has it.
const gapLeast = 20 * time.Microsecond

// gap is the median of the predicted gaps that are worth filling, 0 if most of the idle time cannot
// be predicted.
func (p *proc) gap() time.Duration {
	type known struct {
		length time.Duration
		count  float64
	}
	var gaps []known
	idle, predicted, count := 0.0, 0.0, 0.0
	for i := range p.gaps {
		g := &p.gaps[i]
		idle += g.Weight * g.Mean
		length := g.Predict()
		if length == 0 {
			continue
		}
		predicted += g.Weight * g.Mean
		if length >= gapLeast {
			gaps = append(gaps, known{length, g.Weight})
			count += g.Weight
		}
	}
	if predicted < idle/2 {
		return 0
	}
	slices.SortFunc(gaps, func(a, b known) int { return cmp.Compare(a.length, b.length) })
	count /= 2
	for _, g := range gaps {
		if count -= g.count; count <= 0 {
			return g.length
		}
	}
	return 0
}
