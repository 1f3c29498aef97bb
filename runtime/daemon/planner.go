package daemon

import (
	"math"
	"sync"
	"time"

	"github.com/heddle-project/heddle/runtime/clients"
	"github.com/heddle-project/heddle/runtime/config"
	"github.com/heddle-project/heddle/runtime/gpu"
	"github.com/heddle-project/heddle/runtime/library"
	"github.com/heddle-project/heddle/runtime/sched"
	"github.com/heddle-project/heddle/runtime/shm"
	"github.com/heddle-project/heddle/runtime/wire"
)

// planner lets sched plan for clients. Each device has a policy of its own, since a policy may learn.
// It is used under the lock of the clients, but for Interval.
type planner struct {
	settings sched.Settings
	running  map[wire.UUID]sched.Policy
	gangs    sched.Gangs

	inventory *inventory
	policies  *policies
	library   *library.Library
	// maxBlock bounds the launches of lower classes on a device, for the real-time clients there; 0 =
	// they are not bounded.
	maxBlock func(wire.UUID) time.Duration

	mu       sync.Mutex
	interval time.Duration
	members  map[wire.UUID][]clients.Member // as last planned
}

var _ clients.Planner = (*planner)(nil)

func newPlanner(cfg *config.Config, inv *inventory, pol *policies, lib *library.Library) *planner {
	p := &planner{
		settings: Settings(cfg), running: map[wire.UUID]sched.Policy{}, inventory: inv, policies: pol, library: lib,
		maxBlock: func(wire.UUID) time.Duration { return 0 }, members: map[wire.UUID][]clients.Member{},
	}
	p.refresh()
	return p
}

// refresh looks anew at how often to plan, after devices or policies changed.
func (p *planner) refresh() {
	interval := p.policies.interval(p.settings)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.interval = interval
}

// Settings are the numbers of a configuration in the words of the policies.
func Settings(cfg *config.Config) sched.Settings {
	s := sched.DefaultSettings()
	s.Interval = cfg.Scheduling.Interval
	s.Ahead = 2 * s.Interval
	s.Quantum = cfg.Scheduling.Quantum
	s.SLO = 0
	if cfg.Scheduling.SLO > 0 {
		s.SLO = 1 + cfg.Scheduling.SLO
	}
	for i := range s.Classes {
		c := cfg.Classes[i]
		s.Classes[i] = sched.Parameters{
			Window: c.Window, Estimate: c.Estimate, Quiet: c.Quiet, MaxHold: c.MaxHold,
			MarginPPM: uint32(math.Round(c.Margin * 1e6)),
			MinGap:    c.MinGap, CoRunBound: c.Beside, Token: c.Token, MaxBlock: c.MaxBlock,
			KeepPPM: uint32(math.Round(c.Keep * 1e6)),
		}
	}
	return s
}

// Interval implements clients.Planner.
func (p *planner) Interval() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.interval
}

// policy returns the one that plans for a device. Another than before begins afresh.
func (p *planner) policy(device wire.UUID) sched.Policy {
	name, _ := p.policies.of(gpu.UUID(device))
	policy := p.running[device]
	if policy == nil || policy.Name() != name {
		policy, _ = sched.NewPolicy(name, p.settings) // the name was checked where it was set
		p.running[device] = policy
	}
	return policy
}

// Plan implements clients.Planner.
func (p *planner) Plan(device wire.UUID, now uint64, members []clients.Member) []clients.Decision {
	id := sched.DeviceID(device[:])
	view := sched.View{NowNs: now, Clients: make([]sched.Client, len(members)), Devices: map[sched.DeviceID]sched.Device{}}
	sms, shared := p.inventory.sharing(gpu.UUID(device))
	view.Devices[id] = sched.Device{Limits: sched.Limits{SMs: sms}, Shared: shared}
	for i, m := range members {
		known := p.library.Known(library.Reader{Client: m.Client, Device: string(id)})
		c := &view.Clients[i]
		*c = sched.Client{
			ID: sched.ClientID(m.Client), Device: id, Class: m.Class, Weight: m.Weight, Strict: m.Strict, Gang: m.Gang, Demand: known.Demand,
			Observed: sched.Observed{
				Service: m.Observed.Service, Busy: m.Observed.Worked, Backlogged: m.Observed.Backlogged, Waiting: m.Observed.Waiting,
				Measured: known.Measured, Expected: known.Expected,
			},
		}
		aim(c, &members[i])
	}
	verdicts := p.policy(device).Plan(view)
	p.mu.Lock()
	p.members[device] = members
	p.mu.Unlock()
	if len(members) == 0 {
		delete(p.running, device) // the next to come begin afresh
		p.mu.Lock()
		delete(p.members, device)
		p.mu.Unlock()
	}
	if bound := p.maxBlock(device); bound != 0 {
		for i := range verdicts {
			if own := &verdicts[i].Parameters.MaxBlock; verdicts[i].Class > 0 && (*own == 0 || bound < *own) {
				*own = bound
			}
		}
	}
	decisions := make([]clients.Decision, len(verdicts))
	shares, kept := sched.Shares(verdicts), sched.Kept(verdicts)
	for i := range verdicts {
		decisions[i] = decision(&verdicts[i])
		decisions[i].Verdict.TimeSharePPM, decisions[i].Verdict.KeepPPM = shares[i], kept[i]
	}
	return decisions
}

// Together implements clients.Planner.
func (p *planner) Together(now uint64, seats []clients.Seat) []bool {
	list := make([]sched.Seat, len(seats))
	for i, s := range seats {
		list[i] = sched.Seat{
			Client: sched.ClientID(s.Client), Device: sched.DeviceID(s.Device[:]), Class: s.Class,
			Gang: sched.GangID(s.Gang), Complete: s.Complete, Closed: s.Closed, Backlogged: s.Backlogged,
		}
		if policy := p.running[s.Device]; policy != nil {
			list[i].Turn = sched.Turn(policy.Name(), p.settings)
		}
	}
	return p.gangs.Plan(now, list)
}

// latencyMargin is the slowdown by which a latency is told to a policy: within it the policy decides,
// as within that of any other objective.
const latencyMargin = 0.02

// noObjective is a slowdown that nobody reaches.
const noObjective = 1e6

// aim sets the objective of a client that has one of its own. Of a latency, what should have been is
// that of its spans, and what was measured is how long they took.
func aim(c *sched.Client, m *clients.Member) {
	o := m.Objective
	switch {
	case !o.Set:
	case o.Latency != 0:
		c.SLO = 1 + latencyMargin
		c.Observed.Measured = m.Observed.Busy
		c.Observed.Expected = time.Duration(float64(m.Observed.Spans) * float64(o.Latency) / (1 + latencyMargin))
	case o.Slowdown != 0:
		c.SLO = 1 + o.Slowdown
	default:
		c.SLO = noObjective
	}
}

func decision(v *sched.Verdict) clients.Decision {
	if len(v.Yields) == 0 {
		v.Parameters.MaxBlock = 0 // it blocks nobody
	}
	return clients.Decision{
		Client: uint64(v.Client),
		Verdict: shm.DeviceVerdict{
			Gate:      uint32(v.Gate),
			Priority:  uint32(v.Class),  // a policy keeps classes in their bounds
			Weight:    uint32(v.Weight), // bounded by configuration and API
			Window:    v.Parameters.Window,
			Estimate:  v.Parameters.Estimate,
			Quiet:     v.Parameters.Quiet,
			MaxHold:   v.Parameters.MaxHold,
			MarginPPM: v.Parameters.MarginPPM,

			CoRunBound:     v.Parameters.CoRunBound,
			MinGap:         v.Parameters.MinGap,
			MaxBlock:       v.Parameters.MaxBlock,
			Token:          v.Parameters.Token,
			StreamPriority: v.StreamPriority,
		},
		Yields:   ids(v.Yields),
		CoRun:    ids(v.CoRun),
		Beside:   clients.Beside(v.Beside),
		Mediated: v.Mediated,
	}
}

func ids(from []sched.ClientID) []uint64 {
	if len(from) == 0 {
		return nil
	}
	to := make([]uint64, len(from))
	for i, id := range from {
		to[i] = uint64(id)
	}
	return to
}

// Open implements clients.Planner.
func (*planner) Open(v *shm.DeviceVerdict, peers []clients.GatePeer, now, heldSince uint64) bool {
	in := sched.Input{
		NowNs:       now,
		EstimateNs:  uint64(v.Estimate),   // durations of a verdict are not negative
		WindowNs:    uint64(v.Window),     // as above
		QuietNs:     uint64(v.Quiet),      // as above
		MaxHoldNs:   uint64(v.MaxHold),    // as above
		CoRunNs:     uint64(v.CoRunBound), // as above
		MinGapNs:    uint64(v.MinGap),     // as above
		MaxBlockNs:  uint64(v.MaxBlock),   // as above
		HeldSinceNs: heldSince,
		Gate:        sched.Gate(v.Gate),
		MarginPPM:   v.MarginPPM,
	}
	published := make([]sched.Peer, len(peers))
	for i, h := range peers {
		published[i] = sched.Peer{
			Busy: h.Busy, CoRun: h.CoRun, IdleSinceNs: h.IdleSinceNs, NextLaunchNs: h.NextLaunchNs, WantNs: h.WantNs,
		}
	}
	answer := sched.Decide(&in, published)
	return answer.Result == sched.Open || answer.Result == sched.Overrun
}
