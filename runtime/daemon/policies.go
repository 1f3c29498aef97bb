package daemon

import (
	"context"
	"slices"
	"sync"
	"time"

	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
	"github.com/heddle-project/heddle/runtime/config"
	"github.com/heddle-project/heddle/runtime/errdefs"
	"github.com/heddle-project/heddle/runtime/gpu"
	"github.com/heddle-project/heddle/runtime/sched"
)

// policies says which policy each device has: what an administrator set for it, else what the
// configuration says.
type policies struct {
	cfg       *config.Config
	inventory *inventory

	mu  sync.Mutex
	set map[string]string // by UUID as NVML writes it
}

func newPolicies(cfg *config.Config, inv *inventory, set map[string]string) *policies {
	p := &policies{cfg: cfg, inventory: inv, set: map[string]string{}}
	for device, policy := range set {
		// One that a newer heddled had is as good as none.
		if slices.Contains(config.Policies(), policy) {
			p.set[device] = policy
		}
	}
	return p
}

// Origins of a policy beside a line of the configuration.
const (
	policySet     = "set"
	policyDefault = "default"
)

// of returns a device's policy and where it comes from.
func (p *policies) of(uuid gpu.UUID) (policy, origin string) {
	name := p.inventory.name(uuid)
	p.mu.Lock()
	policy, ok := p.set[name]
	p.mu.Unlock()
	if ok {
		return policy, policySet
	}
	model, _ := p.inventory.model(uuid)
	if policy, origin = p.cfg.PolicyFor(name, model.name); origin == "" {
		origin = policyDefault
	}
	return policy, origin
}

// change sets the policy of devices; an empty one is forgotten.
func (p *policies) change(policy string, devices []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, device := range devices {
		if policy == "" {
			delete(p.set, device)
			continue
		}
		p.set[device] = policy
	}
}

// interval is how often the policy of any device wants to plan; 0 = none does.
func (p *policies) interval(settings sched.Settings) time.Duration {
	shortest := time.Duration(0)
	seen := map[string]bool{}
	for _, uuid := range p.inventory.uuids() {
		name, _ := p.of(uuid)
		if seen[name] {
			continue
		}
		seen[name] = true
		policy, err := sched.NewPolicy(name, settings)
		if err != nil {
			continue // checked where it was set
		}
		if i := policy.Interval(); i != 0 && (shortest == 0 || i < shortest) {
			shortest = i
		}
	}
	return shortest
}

// check says whether there is a policy of that name.
func checkPolicy(name string) error {
	if !slices.Contains(config.Policies(), name) {
		return errdefs.Errorf(errdefs.Invalid, "no policy is called %q; there are %v", name, config.Policies())
	}
	return nil
}

// SetPolicy implements api.Backend.
func (b *backend) SetPolicy(ctx context.Context, req *heddlev1.SetPolicyRequest) ([]*heddlev1.DevicePolicy, error) {
	d := b.d
	policy := req.GetPolicy()
	switch {
	case req.GetReset_() && policy != "":
		return nil, errdefs.Errorf(errdefs.Invalid, "a policy is given, and a reset")
	case !req.GetReset_():
		if err := checkPolicy(policy); err != nil {
			return nil, err
		}
	}
	if err := d.inventory.refresh(ctx, d.driver); err != nil {
		return nil, err
	}
	uuids, err := d.inventory.named(req.GetDevices())
	if err != nil {
		return nil, err
	}
	names := make([]string, len(uuids))
	for i, uuid := range uuids {
		names[i] = d.inventory.name(uuid)
	}
	// First to disk: what clients see must not be forgotten by a crash.
	if err := d.store.SetPolicies(policy, names...); err != nil {
		return nil, err
	}
	d.policies.change(policy, names)
	d.planner.refresh()
	d.clients.Replan()
	d.log.Info("policy set", "policy", policy, "devices", names)
	var now []*heddlev1.DevicePolicy
	for i, uuid := range uuids {
		policy, origin := d.policies.of(uuid)
		now = append(now, &heddlev1.DevicePolicy{Uuid: names[i], Policy: policy, PolicyOrigin: origin})
	}
	return now, nil
}
