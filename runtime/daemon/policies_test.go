package daemon

import (
	"errors"
	"slices"
	"testing"
	"time"

	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
	"github.com/heddle-project/heddle/runtime/clients"
	"github.com/heddle-project/heddle/runtime/config"
	"github.com/heddle-project/heddle/runtime/errdefs"
	"github.com/heddle-project/heddle/runtime/gpu"
	"github.com/heddle-project/heddle/runtime/gpu/gputest"
	"github.com/heddle-project/heddle/runtime/sched"
)

func TestAPolicyIsChangedAtOnceAndForGood(t *testing.T) {
	l := load(t, shortDir(t), `[scheduling]
policy = "priority"
[[device]]
match = "`+gputest.H100(1).UUID.GPUString()+`"
policy = "fair"
`)
	opt := options(l)
	opt.OpenDriver = func(string) (gpu.Driver, error) { return gputest.New(gputest.H100(0), gputest.H100(1)), nil }
	r := start(t, opt)
	first, second := gputest.H100(0).UUID.GPUString(), gputest.H100(1).UUID.GPUString()
	expect := func(r *running, what string, want ...string) {
		t.Helper()
		devices, err := r.Devices(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, d := range devices {
			got = append(got, d.GetPolicy()+" "+d.GetPolicyOrigin())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	set := func(r *running, req *heddlev1.SetPolicyRequest) {
		t.Helper()
		if _, err := r.SetPolicy(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	expect(r, "at first", "priority default", "fair file:7")
	if r.d.planner.Interval() != l.Scheduling.Interval {
		t.Errorf("fair plans every %v", r.d.planner.Interval())
	}
	set(r, &heddlev1.SetPolicyRequest{Policy: "none", Devices: []string{second}})
	expect(r, "one set", "priority default", "none set")
	if r.d.planner.Interval() != 0 {
		t.Errorf("none and priority plan every %v", r.d.planner.Interval())
	}
	set(r, &heddlev1.SetPolicyRequest{Policy: "heddle"})
	set(r, &heddlev1.SetPolicyRequest{Reset_: true, Devices: []string{first}})
	expect(r, "all set, one reset", "priority default", "heddle set")
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	again := start(t, opt)
	expect(again, "after a restart", "priority default", "heddle set")
	set(again, &heddlev1.SetPolicyRequest{Reset_: true})
	expect(again, "all reset", "priority default", "fair file:7")
	for _, bad := range []struct {
		req  *heddlev1.SetPolicyRequest
		want error
	}{
		{&heddlev1.SetPolicyRequest{Policy: "unfair"}, errdefs.ErrInvalid},
		{&heddlev1.SetPolicyRequest{}, errdefs.ErrInvalid},
		{&heddlev1.SetPolicyRequest{Policy: "fair", Reset_: true}, errdefs.ErrInvalid},
		{&heddlev1.SetPolicyRequest{Policy: "fair", Devices: []string{first, "0"}}, errdefs.ErrInvalid},
		{&heddlev1.SetPolicyRequest{Policy: "fair", Devices: []string{first, gputest.H100(9).UUID.GPUString()}}, errdefs.ErrNotFound},
	} {
		if _, err := again.SetPolicy(t.Context(), bad.req); !errors.Is(err, bad.want) {
			t.Errorf("%v: %v, want %v", bad.req, err, bad.want)
		}
	}
	expect(again, "after requests that were refused", "priority default", "fair file:7")
}

func TestAPolicyThatIsNotKnownAnyMoreIsNotUsed(t *testing.T) {
	cfg := config.Default(config.System{})
	inv := &inventory{devices: []gpu.Device{gputest.H100(0)}}
	uuid := gputest.H100(0).UUID
	p := newPolicies(&cfg, inv, map[string]string{uuid.GPUString(): "from a newer heddled"})
	if policy, origin := p.of(uuid); policy != "heddle" || origin != policyDefault {
		t.Errorf("%s from %s", policy, origin)
	}
}

func TestAClientsOwnObjectiveCounts(t *testing.T) {
	observed := clients.Observed{Busy: 300 * time.Millisecond, Spans: 10}
	known := sched.Observed{Measured: time.Second, Expected: time.Second}
	slowdown := func(o clients.Objective) (slo, measured float64) {
		c := sched.Client{Observed: known}
		aim(&c, &clients.Member{Objective: o, Observed: observed})
		return c.SLO, float64(c.Observed.Measured) / float64(c.Observed.Expected)
	}
	if slo, is := slowdown(clients.Objective{}); slo != 0 || is != 1 {
		t.Errorf("with none of its own: %v, %v", slo, is)
	}
	if slo, is := slowdown(clients.Objective{Set: true, Slowdown: 0.05}); slo != 1.05 || is != 1 {
		t.Errorf("with a slowdown: %v, %v", slo, is)
	}
	if slo, is := slowdown(clients.Objective{Set: true, Latency: 40 * time.Millisecond}); slo <= 1 || is > 0.77 || is < 0.76 {
		t.Errorf("30 ms where 40 ms are accepted: %v, %v", slo, is)
	}
	if slo, is := slowdown(clients.Objective{Set: true, Latency: 25 * time.Millisecond}); is <= slo {
		t.Errorf("30 ms where 25 ms are accepted: %v, %v", slo, is)
	}
	if slo, _ := slowdown(clients.Objective{Set: true}); slo < 100 {
		t.Errorf("with an explicit absence: %v", slo)
	}
}
