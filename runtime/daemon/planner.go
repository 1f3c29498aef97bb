package daemon

import (
	"math"
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
// It is used under the lock of the clients.
type planner struct {
	name     string
	settings sched.Settings
	policies map[wire.UUID]sched.Policy
	interval time.Duration

	inventory *inventory
	library   *library.Library
}

var _ clients.Planner = (*planner)(nil)

func newPlanner(cfg *config.Config, inv *inventory, lib *library.Library) (*planner, error) {
	p := &planner{
		name: cfg.Scheduling.Policy, settings: Settings(cfg), policies: map[wire.UUID]sched.Policy{},
		inventory: inv, library: lib,
	}
	policy, err := sched.NewPolicy(p.name, p.settings)
	if err != nil {
		return nil, err
	}
	p.interval = policy.Interval()
	return p, nil
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
		}
	}
	return s
}

// Interval implements clients.Planner.
func (p *planner) Interval() time.Duration { return p.interval }

// policy returns the one that plans for a device.
func (p *planner) policy(device wire.UUID) sched.Policy {
	policy := p.policies[device]
	if policy == nil {
		policy, _ = sched.NewPolicy(p.name, p.settings) // the name was good when the planner was made
		p.policies[device] = policy
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
		view.Clients[i] = sched.Client{
			ID: sched.ClientID(m.Client), Device: id, Class: m.Class, Weight: m.Weight, Strict: m.Strict, Demand: known.Demand,
			Observed: sched.Observed{
				Service: m.Observed.Service, Backlogged: m.Observed.Backlogged,
				Measured: known.Measured, Expected: known.Expected,
			},
		}
	}
	verdicts := p.policy(device).Plan(view)
	if len(members) == 0 {
		delete(p.policies, device) // the next to come begin afresh
	}
	decisions := make([]clients.Decision, len(verdicts))
	for i, share := range sched.Shares(verdicts) {
		decisions[i] = decision(&verdicts[i])
		decisions[i].Verdict.TimeSharePPM = share
	}
	return decisions
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
