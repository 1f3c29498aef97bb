package main

import (
	"context"
	"fmt"
	"time"

	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
)

const (
	launchRounds = 9
	// A batch of some 0.2 ms: long against reading the clock, short against
	// a turn of the scheduler.
	launchBatch  = 20000
	drainedBatch = 5000
)

// launchCase is one way to launch, and what its figures are called.
type launchCase struct {
	suffix  string
	kind    string
	threads int
	pinned  int
	batch   int
}

func launchCases() []launchCase {
	return []launchCase{
		{"_ns", "submit", 1, 1, launchBatch},
		{"_unpinned_ns", "submit", 1, 0, launchBatch},
		{"_4t_ns", "submit", 4, 1, launchBatch},
		{"_4t_unpinned_ns", "submit", 4, 0, launchBatch},
		{"_drained_ns", "drained", 1, 1, drainedBatch},
	}
}

// benchLaunch asks living clients in turn, round by round, so that whatever
// else the machine does hits all of them alike. Times are of the launching
// thread's processor time.
func benchLaunch(ctx context.Context, r *rig, f *figures) error {
	names := []string{"bare", "trampoline", "open", "yielded", "orphan", "traced"}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the timeline
	clients, err := launchClients(ctx, r)
	if err != nil {
		return err
	}
	cases := launchCases()
	samples := make(map[string][]float64)
	for round := range launchRounds + 1 {
		for _, c := range cases {
			for i, name := range names {
				cpu, err := clients[i].round(c)
				if err != nil {
					return err
				}
				if round > 0 { // the first one warms caches and counters
					samples[name+c.suffix] = append(samples[name+c.suffix], cpu)
				}
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	for _, c := range cases {
		for _, name := range names {
			f.add(name+c.suffix, "ns", samples[name+c.suffix])
		}
	}
	// Judged are the differences within a round, where the two were measured
	// one right after the other: the processor's clock changes over a run.
	minus := func(a, b float64) float64 { return a - b }
	over := func(a, b float64) float64 { return a / b }
	f.add("open_minus_bare_ns", "ns", pairs(samples["open_ns"], samples["bare_ns"], minus))
	f.add("yielded_minus_bare_ns", "ns", pairs(samples["yielded_ns"], samples["bare_ns"], minus))
	// What a timeline adds to a launch, of which a real driver's takes 2.5 us.
	f.add("trace_ns", "ns", pairs(samples["traced_ns"], samples["open_ns"], minus))
	f.add("open_4t_over_bare", "x", pairs(samples["open_4t_ns"], samples["bare_4t_ns"], over))
	f.limit("open_minus_bare_ns", 3, "gate open")
	f.limit("yielded_minus_bare_ns", 15, "while others yield to it")
	f.limit("trace_ns", 125, "a timeline is recorded: 5 % of a launch")
	f.limit("open_4t_over_bare", 1.1, "gate open, 4 threads")
	return nil
}

// pairs combines what was measured in the same round.
func pairs(a, b []float64, combine func(a, b float64) float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = combine(a[i], b[i])
	}
	return out
}

// launchClients starts one client per way to be: without the interposer, with
// it switched off, attached and alone, attached with somebody who yields to
// it, attached to a daemon that was killed since, and attached while a timeline
// is recorded.
func launchClients(ctx context.Context, r *rig) ([]*launcher, error) {
	alone, err := r.startDaemon(ctx, "alone", "")
	if err != nil {
		return nil, err
	}
	shared, err := r.startDaemon(ctx, "shared", "")
	if err != nil {
		return nil, err
	}
	doomed, err := r.startDaemon(ctx, "doomed", "")
	if err != nil {
		return nil, err
	}
	watched, err := r.startDaemon(ctx, "watched", "")
	if err != nil {
		return nil, err
	}
	var out []*launcher
	for _, c := range []struct {
		name string
		env  []string
	}{
		{"bare", r.bare()},
		{"trampoline", r.interposed("HEDDLE_DISABLE=1")},
		{"open", alone.of(r, "high")},
		{"yielded", shared.of(r, "high")},
		{"orphan", doomed.of(r, "high")},
		{"traced", watched.of(r, "high")},
		{"yielding", shared.of(r, "low")},
	} {
		l, err := r.launcher(c.name, c.env)
		if err != nil {
			return nil, err
		}
		out = append(out, l)
	}
	for d, n := range map[*daemon]int{alone: 1, shared: 2, doomed: 1, watched: 1} {
		if err := d.awaitClients(ctx, n); err != nil {
			return nil, err
		}
	}
	if err := shared.awaitGates(ctx, "yielded to", "yielding"); err != nil {
		return nil, err
	}
	if err := watched.trace(ctx); err != nil {
		return nil, err
	}
	doomed.kill()
	// Its client notices at once; this is for whatever it does about it.
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(500 * time.Millisecond):
	}
	return out, nil
}

// awaitGates waits until the daemon says of its clients, in any order, that
// their gates are like this.
func (d *daemon) awaitGates(ctx context.Context, want ...string) error {
	return await(ctx, fmt.Sprintf("gates are %q", want), func() error {
		clients, err := d.conn.Clients(ctx, nil)
		if err != nil {
			return err
		}
		seen := make(map[string]int)
		for _, c := range clients {
			for _, device := range c.GetDevices() {
				seen[device.GetGate()]++
			}
		}
		for _, gate := range want {
			if seen[gate] == 0 {
				return fmt.Errorf("they are %v", seen)
			}
			seen[gate]--
		}
		return nil
	})
}

// trace records a timeline until ctx ends, and returns when it has begun.
func (d *daemon) trace(ctx context.Context) error {
	begun := make(chan error, 1)
	go func() {
		begun <- d.conn.RecordTrace(ctx, &heddlev1.RecordTraceRequest{}, func(m *heddlev1.RecordTraceResponse) error {
			if len(m.GetClients()) > 0 {
				begun <- nil
			}
			return nil
		})
	}()
	return <-begun
}

// launcher is a client that launches on demand.
type launcher struct{ *proc }

func (r *rig) launcher(name string, env []string) (*launcher, error) {
	p, err := r.client(name, env, nil, "launch")
	if err != nil {
		return nil, err
	}
	if line, err := p.line(); err != nil || line != "ready" {
		return nil, fmt.Errorf("%s: said %q: %w", name, line, err)
	}
	return &launcher{p}, nil
}

func (l *launcher) round(c launchCase) (cpuNs float64, err error) {
	line, err := l.ask(fmt.Sprintf("%s %d %d %d", c.kind, c.threads, c.pinned, c.batch))
	if err != nil {
		return 0, err
	}
	var wallNs float64
	if _, err := fmt.Sscan(line, &cpuNs, &wallNs); err != nil {
		return 0, fmt.Errorf("%s: answered %q: %w", l.name, line, err)
	}
	return cpuNs, nil
}
