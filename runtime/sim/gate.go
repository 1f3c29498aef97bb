package sim

import (
	"time"

	"github.com/heddle-project/heddle/runtime/sched"
)

// pass asks the gate for p's next launch, and leaves p asleep if it is held.
func (r *run) pass(p *proc, k *Kernel) bool {
	estimate := uint64(k.Time)
	a := r.decide(p, k, estimate)
	if a.Result == sched.HeldToken && r.claim(p, estimate) {
		a = r.decide(p, k, estimate)
	}
	if a.Result == sched.Open {
		return true
	}
	if a.Result == sched.Overrun {
		p.overruns++
		return true
	}
	if !p.held {
		p.held, p.heldSince = true, max(r.now, 1)
	}
	p.reason, p.holder, p.wantNs = a.Result, nil, 0
	if a.Result == sched.HeldPeer || a.Result == sched.HeldToken {
		p.holder, p.wantNs = p.peers[a.Peer], estimate
	}
	if t := &r.token[p.verdict.Class]; a.Result == sched.HeldToken && t.holder != nil && r.now < t.expiry {
		a.RetryNs = min(a.RetryNs, t.expiry)
	} else if a.Result == sched.HeldToken {
		p.graceOver = true
		a.RetryNs = min(a.RetryNs, r.now+uint64(tokenGrace))
	}
	p.stamp++ // whatever was set is void
	if a.RetryNs != sched.Never {
		r.wake(p, a.RetryNs)
	}
	return false
}

func (r *run) decide(p *proc, k *Kernel, estimate uint64) sched.Answer {
	v := &p.verdict
	in := sched.Input{
		NowNs: r.now, EstimateNs: estimate, OutstandingNs: p.outstandingNs,
		WindowNs: uint64(v.Parameters.Window), QuietNs: uint64(v.Parameters.Quiet), MaxHoldNs: uint64(v.Parameters.MaxHold),
		CoRunNs: uint64(v.Parameters.CoRunBound), MinGapNs: uint64(v.Parameters.MinGap), MarginPPM: v.Parameters.MarginPPM,
		Gate: v.Gate, Beside: k.SMs <= v.Beside.SMs && k.DRAM <= v.Beside.DRAM,
	}
	if p.held {
		in.HeldSinceNs = p.heldSince
	}
	if t := &r.token[v.Class]; t.holder == p && r.now < t.expiry {
		in.HasToken = true
	}
	r.peers = r.peers[:0]
	for i, h := range p.peers {
		peer := sched.Peer{CoRun: p.coRun[i], IdleSinceNs: h.idleSince, NextLaunchNs: h.nextNs, WantNs: h.wantNs}
		if h.busy {
			peer.Busy = 1
		}
		r.peers = append(r.peers, peer)
	}
	return sched.Decide(&in, r.peers)
}

// claim takes the gap token of p's class, if it is free and nobody else makes better use of the gap.
func (r *run) claim(p *proc, estimate uint64) bool {
	t := &r.token[p.verdict.Class]
	if t.holder != nil && t.holder != p && r.now < t.expiry {
		return false
	}
	if !p.graceOver {
		for _, q := range r.procs {
			if q != p && q.held && q.verdict.Class == p.verdict.Class && q.reason == sched.HeldToken && q.wantNs > estimate {
				return false
			}
		}
	}
	margin := uint64(p.verdict.Parameters.MarginPPM)
	t.holder = p
	t.expiry = r.now + min(uint64(tokenLongest), estimate+estimate*margin/1_000_000)
	return true
}

const theDevice sched.DeviceID = "gpu"

// plan asks the policy, and wakes those whose verdict changed.
func (r *run) plan() {
	view := sched.View{
		NowNs: r.now, Clients: make([]sched.Client, len(r.procs)),
		Devices: map[sched.DeviceID]sched.Device{theDevice: {Limits: sched.Limits{SMs: r.gpu.sms()}, Shared: r.scenario.Shared}},
	}
	for i, p := range r.procs {
		c := sched.Client{
			ID: p.id, Device: theDevice, Class: p.client.Class, Weight: p.client.Weight, SLO: p.client.SLO,
			Demand: p.demand,
		}
		c.Demand.Spread, c.Demand.Gap = p.spread.value(), p.gap()
		c.Observed.Service = p.service
		c.Observed.Backlogged = p.inFlight() > 0 || p.held
		c.Observed.Waiting = time.Duration(p.wantNs)
		c.Observed.Measured, c.Observed.Expected = time.Duration(p.taken), time.Duration(p.expected)
		view.Clients[i] = c
	}
	for _, v := range r.scenario.Policy.Plan(view) {
		r.apply(r.procs[v.Client-1], &v)
	}
	r.nextPlan = 0
	if interval := r.scenario.Policy.Interval(); interval > 0 {
		r.nextPlan = r.now + uint64(interval)
	}
}

func (r *run) apply(p *proc, v *sched.Verdict) {
	changed := p.verdict.Gate != v.Gate || p.verdict.Parameters != v.Parameters
	p.verdict = *v
	p.peers, p.coRun = p.peers[:0], p.coRun[:0]
	for _, id := range v.Yields {
		p.peers = append(p.peers, r.procs[id-1])
		beside := false
		for _, other := range v.CoRun {
			beside = beside || other == id
		}
		p.coRun = append(p.coRun, beside)
	}
	if changed && p.held {
		r.wake(p, r.now+uint64(r.scenario.Costs.Wake))
	}
}
