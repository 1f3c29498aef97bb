package daemon

import (
	"fmt"
	"math"

	"github.com/heddle-project/heddle/runtime/clients"
	"github.com/heddle-project/heddle/runtime/config"
	"github.com/heddle-project/heddle/runtime/sched"
	"github.com/heddle-project/heddle/runtime/shm"
	"github.com/heddle-project/heddle/runtime/wire"
)

// planner lets a sched.Policy plan for clients.
type planner struct{ policy sched.Policy }

var _ clients.Planner = planner{}

func newPlanner(cfg *config.Config) (planner, error) {
	var parameters [sched.Classes]sched.Parameters
	for i := range parameters {
		c := cfg.Classes[i]
		parameters[i] = sched.Parameters{
			Window: c.Window, Estimate: c.Estimate, Quiet: c.Quiet, MaxHold: c.MaxHold,
			MarginPPM: uint32(math.Round(c.Margin * 1e6)),
		}
	}
	for _, policy := range []sched.Policy{sched.Priority{Classes: parameters}, sched.None{}} {
		if policy.Name() == cfg.Scheduling.Policy {
			return planner{policy}, nil
		}
	}
	return planner{}, fmt.Errorf("no scheduling policy is named %q", cfg.Scheduling.Policy)
}

// Plan implements clients.Planner.
func (p planner) Plan(device wire.UUID, members []clients.Member) []clients.Decision {
	view := sched.View{Clients: make([]sched.Client, len(members))}
	for i, m := range members {
		view.Clients[i] = sched.Client{
			ID: sched.ClientID(m.Client), Device: sched.DeviceID(device[:]), Class: m.Class, Weight: m.Weight, Strict: m.Strict,
		}
	}
	verdicts := p.policy.Plan(view)
	decisions := make([]clients.Decision, len(verdicts))
	for i := range verdicts {
		decisions[i] = decision(&verdicts[i])
	}
	return decisions
}

func decision(v *sched.Verdict) clients.Decision {
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
func (planner) Open(v *shm.DeviceVerdict, peers []clients.GatePeer, now, heldSince uint64) bool {
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
