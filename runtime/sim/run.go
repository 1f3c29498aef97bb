package sim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/heddle-project/heddle/runtime/profiles"
	"github.com/heddle-project/heddle/runtime/sched"
)

// Costs are the times that a program spends outside the device.
type Costs struct {
	Launch time.Duration // of the host, per launch
	Sync   time.Duration // from the end of the work to the return of who waits for it
	Wake   time.Duration // from a doorbell to the launch of who slept on it
	Poll   time.Duration // from the end of own work to its discovery by a launch that waits for it
}

// RealLike are the costs of the software GPU's profile of that name, and of Heddle's gate as it
// was measured.
var RealLike = Costs{
	Launch: 2500 * time.Nanosecond, Sync: 8 * time.Microsecond,
	Wake: 15 * time.Microsecond, Poll: 10 * time.Microsecond,
}

// Scenario is a run to be made.
type Scenario struct {
	GPU      string // a model of the catalogue
	Shared   bool   // MPS: kernels of different programs run side by side
	Clients  []Client
	Policy   sched.Policy
	Costs    Costs
	Duration time.Duration
	WarmUp   time.Duration // not measured
	Noise    float64       // log-normal sigma of kernel times
	Seed     uint64
}

// urgent is the most urgent class of the scenario's clients.
func (s *Scenario) urgent() int {
	class := sched.Classes
	for i := range s.Clients {
		class = min(class, s.Clients[i].Class)
	}
	return class
}

// streamDepth is how many operations a stream takes before a launch waits.
const streamDepth = 1024

// tokenLongest is how long the gap token is kept at most.
const (
	tokenLongest = 5 * time.Millisecond
	tokenGrace   = 20 * time.Microsecond
)

type run struct {
	scenario   *Scenario
	gpu        *gpu
	procs      []*proc
	byStream   []*proc
	timers     timers
	now        uint64
	nextPlan   uint64
	token      [sched.Classes]token
	peers      []sched.Peer
	trace      func(p *proc, start, end uint64)
	begun      bool // the warm-up is over
	warm       []time.Duration
	heldBefore time.Duration
}

type token struct {
	holder *proc
	expiry uint64
}

// patience is how many events are played between two looks at the context: a millisecond or so.
const patience = 1024

// Run plays a scenario, until it is over or ctx is.
func Run(ctx context.Context, s Scenario) (*Result, error) { return play(ctx, s, nil) }

func play(ctx context.Context, s Scenario, trace func(p *proc, start, end uint64)) (*Result, error) {
	if len(s.Clients) == 0 {
		return nil, errors.New("a scenario without clients")
	}
	if s.Duration <= 0 {
		return nil, fmt.Errorf("duration %v", s.Duration)
	}
	g, err := newGPU(s.GPU, s.Shared)
	if err != nil {
		return nil, err
	}
	r := &run{scenario: &s, gpu: g, trace: trace}
	for i := range s.Clients {
		c := &s.Clients[i]
		if len(c.Workload.Kernels) == 0 {
			return nil, fmt.Errorf("client %s has no kernels", c.Name)
		}
		p := &proc{
			id: sched.ClientID(i + 1), client: c, demand: c.Workload.demand(),
			random: rand.New(rand.NewPCG(s.Seed, uint64(i)+1)),
			gaps:   make([]profiles.Gap, len(c.Workload.Kernels)),
		}
		r.procs = append(r.procs, p)
	}
	r.plan()
	for i, p := range r.procs {
		p.stream = g.addClient(p.verdict.StreamPriority)
		for len(r.byStream) <= p.stream {
			r.byStream = append(r.byStream, nil)
		}
		r.byStream[p.stream] = p
		if p.client.Arrivals != nil {
			p.arrivals = p.client.Arrivals(s.Seed*31 + uint64(i))
			p.due = p.arrivals.Next(0, 0)
			p.phase = phaseRequest
		}
		// Not all at the same instant: their first launches would meet.
		r.wake(p, uint64(i)*1000)
	}
	if err := r.loop(ctx); err != nil {
		return nil, err
	}
	return r.result(), nil
}

func (r *run) loop(ctx context.Context) error {
	end := uint64(r.scenario.WarmUp + r.scenario.Duration)
	warm := uint64(r.scenario.WarmUp)
	for events := 1; ; events++ {
		if events%patience == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		at := uint64(math.MaxUint64)
		device, ok := r.gpu.next()
		if ok {
			at = device
		}
		if len(r.timers.heap) > 0 && r.timers.heap[0].at < at {
			at = r.timers.heap[0].at
		}
		if r.nextPlan != 0 && r.nextPlan < at {
			at = r.nextPlan
		}
		if !r.begun && at >= warm {
			r.begin()
		}
		if at >= end {
			r.now = end
			return nil
		}
		r.now = at
		r.gpu.advance(at, r.completed)
		if r.nextPlan == at {
			r.plan()
		}
		for len(r.timers.heap) > 0 && r.timers.heap[0].at == at {
			t := r.timers.pop()
			if t.stamp == t.proc.stamp {
				r.step(t.proc)
			}
		}
	}
}

// begin forgets what was measured in the warm-up.
func (r *run) begin() {
	r.begun = true
	for _, p := range r.procs {
		r.warm = append(r.warm, p.service)
		p.latency, p.rounds, p.heldNs, p.overruns = p.latency[:0], 0, 0, 0
	}
	r.heldBefore = r.gpu.smTime()
}

// wake makes p go on at a time, and at no other.
func (r *run) wake(p *proc, at uint64) {
	p.stamp++
	r.timers.push(max(at, r.now), p)
}

func (r *run) step(p *proc) {
	for {
		switch p.phase {
		case phaseRequest:
			if p.due > r.now {
				r.wake(p, p.due)
				return
			}
			p.phase = phaseLaunch
		case phaseLaunch:
			if !r.launch(p) {
				return
			}
			p.pc++
			if p.atWait() {
				p.phase = phaseWait
			}
			r.wake(p, r.now+uint64(r.scenario.Costs.Launch))
			return
		case phaseWait:
			if p.inFlight() > 0 {
				return // completed goes on
			}
			p.phase = phaseWaited
			if back := p.lastEnd + uint64(r.scenario.Costs.Sync); back > r.now {
				r.wake(p, back)
				return
			}
		case phaseWaited:
			r.waited(p)
			return
		}
	}
}

// waited is the return of a wait: the interposer learns that the device is idle.
func (r *run) waited(p *proc) {
	p.busy, p.idleSince, p.nextNs = false, r.now, 0
	if gap := p.gaps[p.pc-1].Predict(); gap != 0 {
		p.nextNs = r.now + uint64(gap)
	}
	r.ring(p)
	p.phase = phaseLaunch
	next := r.now + p.pause()
	if p.pc == len(p.kernels()) {
		p.pc = 0
		p.rounds++
		if p.arrivals != nil {
			p.latency = append(p.latency, r.now-p.due)
			p.due = p.arrivals.Next(p.due, r.now)
			p.phase = phaseRequest
			next = r.now
		}
	}
	r.wake(p, next)
}

// ring wakes those that sleep on p's doorbell.
func (r *run) ring(p *proc) {
	for _, q := range r.procs {
		if q.held && q.holder == p {
			r.wake(q, r.now+uint64(r.scenario.Costs.Wake))
		}
	}
}

// launch passes the gate and submits, or leaves p held.
func (r *run) launch(p *proc) bool {
	k := &p.kernels()[p.pc]
	if p.inFlight() >= streamDepth {
		p.blocked = true
		return false
	}
	if p.verdict.Gate&^sched.GatePublish != 0 && !r.pass(p, k) {
		return false
	}
	if p.held {
		p.heldNs += r.now - p.heldSince
		p.held, p.holder, p.wantNs, p.graceOver = false, nil, 0, false
	}
	if !p.busy {
		if p.idleSince != 0 {
			at := p.pc - 1
			if at < 0 {
				at = len(p.kernels()) - 1
			}
			p.gaps[at].Add(float64(r.now - p.idleSince))
		}
		p.busy = true
	}
	timeNs := p.draw(k, r.scenario.Noise)
	r.gpu.submit(p.stream, k, timeNs)
	p.push(flight{p.pc, r.now, timeNs, uint64(k.Time)})
	return true
}

// completed is called for every kernel that ends.
func (r *run) completed(stream int, start, end uint64) {
	p := r.byStream[stream]
	f := p.pop()
	p.service += time.Duration(f.timeNs)
	p.taken += end - max(f.submitted, p.lastEnd)
	p.expected += f.timeNs
	p.spread.add(f.timeNs, f.estimate)
	p.lastEnd = end
	if r.trace != nil {
		r.trace(p, start, end)
	}
	t := &r.token[p.verdict.Class]
	if t.holder == p && p.inFlight() == 0 {
		t.holder = nil
		for _, q := range r.procs {
			if q.held && q.reason == sched.HeldToken && q != p {
				r.wake(q, r.now+uint64(r.scenario.Costs.Wake))
			}
		}
	}
	switch {
	case p.blocked:
		p.blocked = false
		r.wake(p, r.now)
	case p.held && p.reason == sched.HeldWindow:
		r.wake(p, r.now+uint64(r.scenario.Costs.Poll))
	case p.phase == phaseWait && p.inFlight() == 0:
		r.wake(p, r.now)
	}
}
