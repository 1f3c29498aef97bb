package sim

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/heddle-project/heddle/runtime/sched"
)

// Experiment compares policies on one scenario over several seeds.
type Experiment struct {
	Scenario Scenario // its policy and seed are set by the experiment
	Policies []string
	Settings sched.Settings
	// New makes a policy of that name; nil = [sched.NewPolicy], with Settings.
	New    func(name string) (sched.Policy, error)
	Seeds  []uint64
	Oracle bool // ask the all-knowing serial filler and the reactive yardstick, too
	// Progress is told after every run, from one goroutine at a time; nil = nobody is.
	Progress func(done, total int)
}

// Row is one policy in the report: medians over the seeds.
type Row struct {
	Policy string `json:"policy"`
	// Of the most urgent class, the slowest client for each figure: milliseconds, and times alone.
	P50 Figure `json:"p50"`
	P95 Figure `json:"p95"`
	P99 Figure `json:"p99"`
	// Share is the part of the time that the lower classes' work would fill alone.
	Share float64 `json:"share"`
	// OfOracle is Share over what the serial oracle gets; 0 = it was not asked, or gets nothing.
	OfOracle float64 `json:"share_of_oracle"`
	Rate     float64 `json:"rounds_per_s"` // of the lower classes
	Busy     float64 `json:"sm_busy"`      // part of the device's SMs that were held, over time
	Overruns int     `json:"overruns"`
}

// Figure is a latency.
type Figure struct {
	Ms      float64 `json:"ms"`
	OfAlone float64 `json:"of_alone"` // 0 = nothing was measured alone
}

// Report is what an experiment found.
type Report struct {
	Seeds    int     `json:"seeds"`              // on which it stands
	Alone    Row     `json:"alone"`              // the most urgent class without the others
	Oracle   float64 `json:"oracle_share"`       // of the serial oracle; 0 = not asked
	Reactive *Row    `json:"reactive,omitempty"` // see the policy of that name; nil = not asked
	Rows     []Row   `json:"policies"`
}

// sample is one run of one policy.
type sample struct {
	p50, p95, p99 float64 // ms
	share, rate   float64
	busy          float64
	overruns      int
}

// played is what came out of one seed.
type played struct {
	alone, reactive sample
	oracle          float64
	policies        []sample
	left            int // runs that are not over
}

// Run plays everything, on as many processors as there are. When ctx is over before that, it returns
// its error, and a report on the seeds that were through, nil if none was.
func (e *Experiment) Run(ctx context.Context) (*Report, error) {
	if e.New == nil {
		named := *e
		named.New = func(name string) (sched.Policy, error) { return sched.NewPolicy(name, e.Settings) }
		e = &named
	}
	for _, name := range e.Policies {
		if _, err := e.New(name); err != nil {
			return nil, err
		}
	}
	seeds := make([]played, len(e.Seeds))
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	jobs := make([][]func(context.Context) error, len(e.Seeds))
	total := 0
	for i, seed := range e.Seeds {
		seeds[i].policies = make([]sample, len(e.Policies))
		jobs[i] = e.jobs(seed, &seeds[i])
		seeds[i].left = len(jobs[i])
		total += len(jobs[i])
	}
	var mu sync.Mutex
	done := 0
	for i := range jobs {
		for _, job := range jobs[i] {
			g.Go(func() error {
				if err := job(inner); err != nil {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				seeds[i].left--
				done++
				if e.Progress != nil {
					e.Progress(done, total)
				}
				return nil
			})
		}
	}
	err := g.Wait()
	if err != nil && ctx.Err() == nil {
		return nil, err
	}
	seeds = slices.DeleteFunc(seeds, func(p played) bool { return p.left > 0 })
	if len(seeds) == 0 {
		return nil, err
	}
	return e.report(seeds), err
}

// jobs are the runs of one seed.
func (e *Experiment) jobs(seed uint64, to *played) []func(context.Context) error {
	s := e.Scenario
	s.Seed = seed
	urgent := s.urgent()
	jobs := []func(context.Context) error{func(ctx context.Context) (err error) {
		only := s
		only.Clients = slices.DeleteFunc(slices.Clone(s.Clients), func(c Client) bool { return c.Class != urgent })
		to.alone, err = measure(ctx, only, sched.None{}, urgent)
		return err
	}}
	if e.Oracle {
		jobs = append(jobs, func(ctx context.Context) error {
			shares, err := Oracle(ctx, s)
			for _, share := range shares {
				to.oracle += share
			}
			return err
		}, func(ctx context.Context) (err error) {
			free := s
			free.Costs = s.Costs.Free()
			free.Clients = oneBelow(s.Clients, urgent)
			to.reactive, err = measure(ctx, free, Reactive{}, urgent)
			return err
		})
	}
	for i, name := range e.Policies {
		jobs = append(jobs, func(ctx context.Context) error {
			policy, err := e.New(name)
			if err == nil {
				to.policies[i], err = measure(ctx, s, policy, urgent)
			}
			return err
		})
	}
	return jobs
}

func (e *Experiment) report(seeds []played) *Report {
	column := func(of func(*played) sample) (out []sample) {
		for i := range seeds {
			out = append(out, of(&seeds[i]))
		}
		return out
	}
	alone := column(func(p *played) sample { return p.alone })
	report := &Report{Seeds: len(seeds), Alone: row("alone", alone, nil, nil)}
	var oracle []float64
	if e.Oracle {
		for i := range seeds {
			oracle = append(oracle, seeds[i].oracle)
		}
		report.Oracle = median(oracle, func(f float64) float64 { return f })
		r := row("reactive", column(func(p *played) sample { return p.reactive }), alone, oracle)
		report.Reactive = &r
	}
	for i, name := range e.Policies {
		report.Rows = append(report.Rows, row(name, column(func(p *played) sample { return p.policies[i] }), alone, oracle))
	}
	return report
}

// oneBelow returns the clients of the most urgent class and the first of the others.
func oneBelow(clients []Client, urgent int) []Client {
	taken := false
	return slices.DeleteFunc(slices.Clone(clients), func(c Client) bool {
		extra := c.Class != urgent && taken
		taken = taken || c.Class != urgent
		return extra
	})
}

func measure(ctx context.Context, s Scenario, policy sched.Policy, urgent int) (sample, error) {
	s.Policy = policy
	result, err := Run(ctx, s)
	if err != nil {
		return sample{}, fmt.Errorf("policy %s, seed %d: %w", policy.Name(), s.Seed, err)
	}
	out := sample{busy: result.Busy}
	for i := range result.Clients {
		c := &result.Clients[i]
		if s.Clients[i].Class != urgent {
			out.share += c.Share
			out.rate += c.RoundsPerSecond
			out.overruns += c.Overruns
			continue
		}
		out.p50 = max(out.p50, c.P50.Seconds()*1e3)
		out.p95 = max(out.p95, c.P95.Seconds()*1e3)
		out.p99 = max(out.p99, c.P99.Seconds()*1e3)
	}
	return out, nil
}

// oracleLeast is the smallest share of an oracle that a ratio to it says anything about.
const oracleLeast = 0.001

// row takes medians; a ratio is taken within a seed, so that the arrivals are the same on both
// sides of it.
func row(policy string, runs, alone []sample, oracle []float64) Row {
	figure := func(of func(*sample) float64) Figure {
		f := Figure{Ms: median(runs, func(s sample) float64 { return of(&s) })}
		if alone != nil {
			ratios := make([]float64, len(runs))
			for i := range runs {
				if base := of(&alone[i]); base > 0 {
					ratios[i] = of(&runs[i]) / base
				}
			}
			f.OfAlone = median(ratios, func(r float64) float64 { return r })
		}
		return f
	}
	r := Row{
		Policy:   policy,
		P50:      figure(func(s *sample) float64 { return s.p50 }),
		P95:      figure(func(s *sample) float64 { return s.p95 }),
		P99:      figure(func(s *sample) float64 { return s.p99 }),
		Share:    median(runs, func(s sample) float64 { return s.share }),
		Rate:     median(runs, func(s sample) float64 { return s.rate }),
		Busy:     median(runs, func(s sample) float64 { return s.busy }),
		Overruns: int(median(runs, func(s sample) float64 { return float64(s.overruns) })),
	}
	if oracle != nil {
		ratios := make([]float64, len(runs))
		for i := range runs {
			if oracle[i] >= oracleLeast {
				ratios[i] = runs[i].share / oracle[i]
			}
		}
		r.OfOracle = median(ratios, func(f float64) float64 { return f })
	}
	return r
}

func median[T any](of []T, value func(T) float64) float64 {
	values := make([]float64, len(of))
	for i := range of {
		values[i] = value(of[i])
	}
	slices.SortFunc(values, cmp.Compare)
	if len(values) == 0 {
		return 0
	}
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}
