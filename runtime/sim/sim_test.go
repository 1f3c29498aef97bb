package sim_test

import (
	"context"
	"errors"
	"math"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heddle-project/heddle/runtime/sched"
	"github.com/heddle-project/heddle/runtime/sim"
)

const us = time.Microsecond

// workload is n kernels of one kind.
func workload(n int, t time.Duration, sms int, dram float64) sim.Workload {
	w := sim.Workload{Name: "test"}
	for range n {
		w.Kernels = append(w.Kernels, sim.Kernel{Time: t, SMs: sms, DRAM: dram})
	}
	return w
}

func service(w sim.Workload, arrivals func(uint64) sim.Arrivals) sim.Client {
	return sim.Client{Name: "service", Workload: w, Class: 2, Weight: 100, Arrivals: arrivals}
}

func training(w sim.Workload) sim.Client {
	return sim.Client{Name: "training", Workload: w, Class: 7, Weight: 100}
}

func scenario(policy string, clients ...sim.Client) sim.Scenario {
	p, err := sched.NewPolicy(policy, sched.DefaultSettings())
	if err != nil {
		panic(err)
	}
	return sim.Scenario{
		GPU: "H100", Shared: true, Clients: clients, Policy: p, Costs: sim.RealLike,
		Duration: 5 * time.Second, WarmUp: 100 * time.Millisecond, Seed: 1,
	}
}

func run(t *testing.T, s sim.Scenario) *sim.Result {
	t.Helper()
	r, err := sim.Run(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if math.Abs(got-want) > within*math.Abs(want) {
		t.Errorf("%s is %.5g, want %.5g within %.1f %%", what, got, want, within*100)
	}
}

func TestAClientAloneTakesItsOwnTime(t *testing.T) {
	// 10 kernels of 100 us: the device is never idle between them, and the wait returns 8 us later.
	r := run(t, scenario("none", service(workload(10, 100*us, 132, 0), sim.Closed(time.Millisecond))))
	near(t, "latency", r.Clients[0].P50.Seconds(), 1.008e-3, 0.001)
	near(t, "requests", float64(r.Clients[0].Requests), 5/2.008e-3, 0.01)

	r = run(t, scenario("none", training(workload(10, 100*us, 132, 0))))
	near(t, "share of training", r.Clients[0].Share, 1000./1008, 0.005)
	near(t, "held SMs", r.Busy, 1000./1008, 0.005)
	near(t, "rounds", r.Clients[0].RoundsPerSecond, 1/1.008e-3, 0.005)
}

func TestTheSeedDecidesARun(t *testing.T) {
	s := scenario("heddle", service(workload(20, 50*us, 100, 0.5), sim.Poisson(200)), training(workload(50, 80*us, 90, 0.5)))
	s.Noise = 0.1
	fresh := func(seed uint64) *sim.Result {
		s.Policy = sched.NewHeddle(sched.DefaultSettings())
		s.Seed = seed
		return run(t, s)
	}
	if a, b := fresh(7), fresh(7); !reflect.DeepEqual(a, b) {
		t.Errorf("two runs of one seed differ:\n%+v\n%+v", a, b)
	}
	if a, b := fresh(7), fresh(8); reflect.DeepEqual(a, b) {
		t.Error("two seeds give the same run")
	}
}

func TestPoliciesKeepTheirPromises(t *testing.T) {
	request := workload(20, 50*us, 132, 0) // a millisecond
	batch := workload(200, 100*us, 132, 0)
	alone := run(t, scenario("none", service(request, sim.Poisson(300)))).Clients[0]
	both := func(policy string) (hp, lp sim.ClientResult) {
		r := run(t, scenario(policy, service(request, sim.Poisson(300)), training(batch)))
		return r.Clients[0], r.Clients[1]
	}
	naive, greedy := both("none")
	if ratio := naive.P99.Seconds() / alone.P99.Seconds(); ratio < 3 {
		t.Errorf("without a policy p99 is only %.2f x alone: there is nothing to protect from", ratio)
	}
	if greedy.Share < 0.6 {
		t.Errorf("without a policy training gets %.2f of the device", greedy.Share)
	}
	for _, policy := range []string{"heddle", "priority", "orion"} {
		hp, lp := both(policy)
		if ratio := hp.P99.Seconds() / alone.P99.Seconds(); ratio > 1.15 {
			t.Errorf("%s: p99 is %.2f x alone", policy, ratio)
		}
		// 300 requests of a millisecond leave 0.7, give or take what chance brings.
		if lp.Share < 0.6 || lp.Share > 0.72 {
			t.Errorf("%s: training gets %.2f of the device", policy, lp.Share)
		}
	}
	turns, rest := both("timeslice")
	if turns.P99 < 50*time.Millisecond || rest.Share < 0.5 {
		t.Errorf("exclusive turns of 100 ms give p99 %v and training %.2f", turns.P99, rest.Share)
	}
}

func TestPredictedGapsAreFilled(t *testing.T) {
	// A service bound by its host: 300 us of work after every kernel, so that the device is idle for
	// most of the time, and never for as long as between requests.
	request := workload(10, 200*us, 132, 0)
	request.SyncEvery, request.HostTime = 1, 300*us
	client := service(request, sim.Closed(0))
	alone := run(t, scenario("none", client)).Clients[0]
	share := func(kernel time.Duration) float64 {
		s := scenario("heddle", client, training(workload(100, kernel, 132, 0)))
		settings := sched.DefaultSettings()
		settings.SLO = 0
		s.Policy = sched.NewHeddle(settings)
		r := run(t, s)
		near(t, "p99 beside fillers", r.Clients[0].P99.Seconds(), alone.P99.Seconds(), 0.02)
		return r.Clients[1].Share
	}
	if got := share(50 * us); got < 0.35 {
		t.Errorf("kernels of 50 us get %.2f of a device that is idle for 0.6 of the time", got)
	}
	// Longer than every gap: they must not run at all.
	if got := share(400 * us); got > 0.01 {
		t.Errorf("kernels longer than the gaps get %.2f", got)
	}
}

func TestWhatFitsNoGapRunsWithinTheObjective(t *testing.T) {
	// Pauses of 1 ms, and training of which each tenth kernel takes a quarter longer.
	request := workload(150, 40*us, 132, 0)
	request.SyncEvery, request.HostTime = 25, 1000*us
	batch := workload(100, 60*us, 132, 0)
	for i := 0; i < len(batch.Kernels); i += 10 {
		batch.Kernels[i].Time = 1250 * us
	}
	client := service(request, sim.Closed(0))
	alone := run(t, scenario("none", client)).Clients[0]
	// One long kernel costs the service 0.3 ms of 6, and lets 1.8 ms of the training's work go in the
	// time of two requests and a half, or one: 0.066, or 0.16 of the device, when all of the objective
	// may be spent.
	for _, tt := range []struct{ slo, least, most float64 }{{0, 0, 0.005}, {1.02, 0.016, 0.066}, {1.05, 0.045, 0.16}} {
		settings := sched.DefaultSettings()
		settings.SLO = tt.slo
		s := scenario("heddle", client, training(batch))
		s.Policy, s.Noise = sched.NewHeddle(settings), 0.02
		r := run(t, s)
		slower := alone.RoundsPerSecond / r.Clients[0].RoundsPerSecond
		if share := r.Clients[1].Share; share < tt.least || share > tt.most || slower > max(1, tt.slo)+0.001 {
			t.Errorf("with an objective of %g the training gets %.3f, the service is %.4f times as slow", tt.slo, share, slower)
		}
	}
}

func TestGapsHardlyLongerThanAKernelAreFilled(t *testing.T) {
	// A service that pauses for 1.5 ms, and training of which a tenth of the kernels takes 1.24 ms:
	// a fifth of the gap is all that is left for the margin.
	request := workload(150, 40*us, 132, 0)
	request.SyncEvery, request.HostTime = 25, 1500*us
	batch := workload(100, 60*us, 132, 0)
	for i := 0; i < len(batch.Kernels); i += 10 {
		batch.Kernels[i].Time = 1240 * us
	}
	for _, trainers := range []int{1, 4} {
		clients := []sim.Client{service(request, sim.Closed(0))}
		for range trainers {
			clients = append(clients, training(batch))
		}
		e := sim.Experiment{
			Scenario: scenario("none", clients...), Policies: []string{"heddle"}, Settings: sched.DefaultSettings(),
			Seeds: []uint64{1}, Oracle: true,
		}
		e.Scenario.Noise, e.Scenario.Duration = 0.02, 2*time.Second
		report, err := e.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if r := report.Rows[0]; r.OfOracle < 0.9 || r.P99.OfAlone > 1.02 || r.P50.OfAlone > 1.005 {
			t.Errorf("%d x training gets %.3f of the oracle, for p50 %.3f and p99 %.3f x alone", trainers, r.OfOracle, r.P50.OfAlone, r.P99.OfAlone)
		}
		e.Settings.Without = sched.Without{Margin: true, Allowance: true}
		e.Scenario.Duration = time.Second
		if report, err = e.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r := report.Rows[0]; r.OfOracle > 0.2 {
			t.Errorf("with a margin of 30 %% it gets %.3f: the gap is too long to show anything", r.OfOracle)
		}
	}
}

func TestTheLowerClassIsShared(t *testing.T) {
	clients := []sim.Client{service(workload(20, 50*us, 132, 0), sim.Poisson(300))}
	kernels := []time.Duration{30 * us, 300 * us, 100 * us}
	for i, weight := range []int{100, 200, 400} {
		c := training(workload(100, kernels[i], 132, 0))
		c.Weight = weight
		clients = append(clients, c)
	}
	s := scenario("heddle", clients...)
	s.Duration = 10 * time.Second
	r := run(t, s)
	total := r.Clients[1].Share + r.Clients[2].Share + r.Clients[3].Share
	for i, want := range []float64{1. / 7, 2. / 7, 4. / 7} {
		near(t, "share", r.Clients[i+1].Share/total, want, 0.03)
	}
}

func TestOracleByHand(t *testing.T) {
	// A request of a millisecond every 10 ms leaves gaps of 9 ms, less what the launches and the
	// wait add. Kernels of 2 ms fit four times, of 5 ms once, of 20 ms never.
	every := sim.Gaps([]time.Duration{10 * time.Millisecond})
	for _, tt := range []struct {
		kernel time.Duration
		want   float64
	}{{2 * time.Millisecond, 0.8}, {5 * time.Millisecond, 0.5}, {20 * time.Millisecond, 0}} {
		s := scenario("none", service(workload(10, 100*us, 132, 0), every), training(workload(1, tt.kernel, 1, 0)))
		shares, err := sim.Oracle(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		if shares[0] != 0 || math.Abs(shares[1]-tt.want) > 0.005 {
			t.Errorf("kernels of %v get %v, want %v", tt.kernel, shares, tt.want)
		}
	}
}

func TestExperimentTakesMedians(t *testing.T) {
	e := sim.Experiment{
		Scenario: scenario("none", service(workload(20, 50*us, 132, 0), sim.Poisson(300)), training(workload(200, 100*us, 132, 0))),
		Policies: []string{"heddle", "none"}, Settings: sched.DefaultSettings(), Seeds: []uint64{1, 2, 3}, Oracle: true,
	}
	e.Scenario.Duration = time.Second
	last := 0
	e.Progress = func(done, total int) {
		if done != last+1 || total != 15 {
			t.Errorf("progress %d of %d after %d", done, total, last)
		}
		last = done
	}
	report, err := e.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Rows) != 2 || report.Rows[0].Policy != "heddle" || report.Reactive == nil || last != 15 {
		t.Fatalf("%d runs, report %+v", last, report)
	}
	heddle, none := report.Rows[0], report.Rows[1]
	if heddle.P99.OfAlone >= none.P99.OfAlone || heddle.OfOracle < 0.9 || heddle.OfOracle > 1.05 {
		t.Errorf("heddle %+v, none %+v", heddle, none)
	}
	e.Policies = []string{"best"}
	if _, err := e.Run(t.Context()); err == nil || !strings.Contains(err.Error(), `"best"`) {
		t.Errorf("an unknown policy gives %v", err)
	}
}

func TestAnExperimentThatIsInterrupted(t *testing.T) {
	e := sim.Experiment{
		Scenario: scenario("none", service(workload(20, 50*us, 132, 0), sim.Poisson(300)), training(workload(200, 100*us, 132, 0))),
		Policies: []string{"none"}, Seeds: []uint64{1, 2, 3, 4},
	}
	e.Scenario.Duration = 100 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	others := make(chan struct{})
	e.Progress = func(done, total int) {
		if done == total-1 {
			close(others)
		}
	}
	policies := atomic.Int32{}
	e.New = func(string) (sched.Policy, error) {
		if policies.Add(1) == 5 { // one to see whether the name is good, and one for each seed
			<-others
			cancel()
		}
		return sched.None{}, nil
	}
	report, err := e.Run(ctx)
	if !errors.Is(err, context.Canceled) || report == nil || report.Seeds != 3 || report.Rows[0].P99.OfAlone == 0 {
		t.Fatalf("interrupted in the last run of the last seed: %v, %+v", err, report)
	}
	e.New, e.Progress = nil, nil
	if report, err := e.Run(ctx); !errors.Is(err, context.Canceled) || report != nil {
		t.Errorf("interrupted before it began: %v, %+v", err, report)
	}
}

func TestARunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := scenario("heddle", service(workload(20, 50*us, 132, 0), sim.Poisson(300)), training(workload(200, 100*us, 132, 0)))
	s.Duration = 1000 * time.Hour
	if _, err := sim.Run(ctx, s); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := sim.Oracle(ctx, s); !errors.Is(err, context.Canceled) {
		t.Errorf("the oracle: %v", err)
	}
}

func TestWrongScenarios(t *testing.T) {
	good := scenario("none", training(workload(1, us, 1, 0)))
	for _, tt := range []struct {
		name  string
		spoil func(*sim.Scenario)
	}{
		{"no clients", func(s *sim.Scenario) { s.Clients = nil }},
		{"an unknown GPU", func(s *sim.Scenario) { s.GPU = "H99" }},
		{"no time", func(s *sim.Scenario) { s.Duration = 0 }},
		{"a client without kernels", func(s *sim.Scenario) { s.Clients = []sim.Client{training(sim.Workload{})} }},
	} {
		s := good
		tt.spoil(&s)
		if _, err := sim.Run(t.Context(), s); err == nil {
			t.Errorf("%s: no error", tt.name)
		}
	}
}

const table = "Name,Profile,Memory_footprint,SM_usage,Duration\nconv,1,0,98,100480\n\"a, b\",-1,0,2,3232\n"

func TestReadTable(t *testing.T) {
	got, err := sim.ReadTable("t.csv", strings.NewReader(table))
	want := []sim.Kernel{
		{Name: "conv", Time: 100480, SMs: 98, DRAM: 0.2}, {Name: "a, b", Time: 3232, SMs: 2, DRAM: 0.5},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, tt := range []struct{ name, text, want string }{
		{"nothing", "", "t.csv: no header"},
		{"no such column", "Name,Profile,Duration\n", "t.csv:1: no column SM_usage"},
		{"no rows", "Name,Profile,SM_usage,Duration\n", "t.csv: no kernels"},
		{"no SMs", "Name,Profile,SM_usage,Duration\nx,1,0,5\n", `t.csv:2: column SM_usage: "0" is not a number from 1 to 1048576`},
		{"not a number", "Name,Profile,SM_usage,Duration\nx,1,1,5\ny,1,1,NaN\n", `t.csv:3: column Duration: "NaN" is not`},
		{"another profile", "Name,Profile,SM_usage,Duration\nx,2,1,5\n", `t.csv:2: column Profile: "2" is not 1, 0 or -1`},
		{"a short line", "Name,Profile,SM_usage,Duration\nx,1\n", "t.csv: record on line 2: wrong number of fields"},
	} {
		if _, err := sim.ReadTable("t.csv", strings.NewReader(tt.text)); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
	}
}

func FuzzReadTable(f *testing.F) {
	f.Add(table)
	f.Add("Name,Profile,SM_usage,Duration\nx,1,1,1e12\n")
	f.Fuzz(func(t *testing.T, text string) {
		kernels, err := sim.ReadTable("t.csv", strings.NewReader(text))
		if (err == nil) != (len(kernels) > 0) {
			t.Fatalf("%d kernels and %v", len(kernels), err)
		}
		for _, k := range kernels {
			if k.SMs < 1 || k.Time < 0 {
				t.Fatalf("read %+v", k)
			}
		}
	})
}
