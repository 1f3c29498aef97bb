package daemon

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddle-project/heddle/runtime/clients"
	"github.com/heddle-project/heddle/runtime/config"
	"github.com/heddle-project/heddle/runtime/library"
	"github.com/heddle-project/heddle/runtime/sched"
	"github.com/heddle-project/heddle/runtime/wire"
)

func TestTheConfigurationKnowsEveryPolicy(t *testing.T) {
	if diff := cmp.Diff(sched.PolicyNames(), config.Policies()); diff != "" {
		t.Errorf("sched and config differ (-sched +config):\n%s", diff)
	}
	for _, name := range config.Policies() {
		cfg := config.Default(config.System{})
		if _, err := sched.NewPolicy(name, Settings(&cfg)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDevicesDoNotForgetForEachOther(t *testing.T) {
	cfg := config.Default(config.System{})
	cfg.Scheduling.Policy = "fair"
	p := testPlanner(&cfg, &inventory{})
	members := func(first time.Duration) []clients.Member {
		return []clients.Member{
			{Client: 1, Class: 5, Weight: 100, Observed: clients.Observed{Service: first, Backlogged: true}},
			{Client: 2, Class: 5, Weight: 100, Observed: clients.Observed{Backlogged: true}},
		}
	}
	one, other := wire.UUID{1}, wire.UUID{2}
	closed := false
	for i := range uint64(20) {
		decisions := p.Plan(one, i, members(time.Duration(i)*cfg.Scheduling.Interval))
		closed = sched.Gate(decisions[0].Verdict.Gate)&sched.GateClosed != 0
		for _, d := range p.Plan(other, i, members(0)) {
			if sched.Gate(d.Verdict.Gate)&sched.GateClosed != 0 {
				t.Fatalf("client %d pays on one device for what client 1 used on another", d.Client)
			}
		}
	}
	if !closed {
		t.Error("a client that has had everything is not held")
	}
}

func testPlanner(cfg *config.Config, inv *inventory) *planner {
	return newPlanner(cfg, inv, newPolicies(cfg, inv, nil), library.New(library.Options{}))
}
