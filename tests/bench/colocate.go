package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/heddle-project/heddle/runtime/config"
	"github.com/heddle-project/heddle/runtime/sched"
	"github.com/heddle-project/heddle/tests/bench/kernels"
)

// colocation is the bench of services beside training jobs in real processes, and its options.
type colocation struct {
	policies    string
	duration    time.Duration
	warmUp      time.Duration
	stretch     float64
	repetitions int
}

func (c *colocation) flags(f *flag.FlagSet) {
	f.StringVar(&c.policies, "policy", "priority,heddle", "policies to measure; config: the one of an empty configuration")
	f.DurationVar(&c.duration, "duration", 15*time.Second, "measured time of each run")
	// By then the profiles of all kernels are learnt.
	f.DurationVar(&c.warmUp, "warm-up", 5*time.Second, "played before it and not measured")
	// Times of the host stay what they are. Four times as long, kernels still come as densely as on
	// a device, and what the machine adds to each is a quarter as much of it.
	f.Float64Var(&c.stretch, "stretch", 4, "how much longer kernels take than in their tables")
	f.IntVar(&c.repetitions, "repetitions", 3, "of each run; medians are reported")
}

func (c *colocation) check() error {
	if c.duration <= 0 || c.warmUp < 0 || c.repetitions < 1 || !(c.stretch >= 0.01 && c.stretch <= 100) {
		return errors.New("a number out of range")
	}
	return nil
}

// colocated is one service beside some training jobs.
type colocated struct {
	service  kernels.Table
	load     float64 // of capacity, with requests at random times
	training kernels.Table
	trainers int
}

// cells are a few of those that bench-sched plays in the simulator.
func (*colocation) cells(set *kernels.Set) []colocated {
	long, short := set.Services[0], set.Services[1]
	training, longest := set.Trainings[0], set.Trainings[len(set.Trainings)-1]
	return []colocated{
		{long, 0.3, training, 1},
		{long, 0.3, training, 4},
		{long, 0.7, training, 1},
		{long, 0.7, training, 4},
		{short, 0.3, longest, 1},
	}
}

func (c *colocated) key() string {
	return fmt.Sprintf("%s-%g-beside-%d-%s", model(c.service.Name), c.load, c.trainers, model(c.training.Name))
}

// model is the part of a table's name that people know it by.
func model(name string) string {
	model, _, _ := strings.Cut(name, "_")
	return model
}

// measured is one run: of a service, of training jobs, or of both.
type measured struct {
	p50, p99 float64 // ms
	share    float64 // work of the training jobs over the time that passed, alone = nearly 1
}

// The bars.
const (
	p99Limit       = 1.10
	agreementLimit = 0.10
)

// bench measures every cell. The runs of a repetition play the same requests, in real processes and
// in the simulator alike; ratios are taken within it, and medians over all.
func (c *colocation) bench(ctx context.Context, r *rig, f *figures) error {
	set, err := kernels.Load()
	if err != nil {
		return err
	}
	cfg := config.Default(config.System{})
	policies := strings.Split(c.policies, ",")
	for i, name := range policies {
		if name == "config" {
			policies[i] = cfg.Scheduling.Policy
		} else if !slices.Contains(sched.PolicyNames(), name) {
			return fmt.Errorf("no policy is named %q", name)
		}
	}
	if err := c.share(r); err != nil {
		return err
	}
	fmt.Printf("kernels of %s, on %s, side by side, %g times as long\n", set.Source, colocateGPU, c.stretch)
	alone := map[string]float64{}
	for _, cell := range c.cells(set) {
		if err := c.measure(ctx, r, f, &cell, policies, alone); err != nil {
			return fmt.Errorf("%s: %w", cell.key(), err)
		}
	}
	return nil
}

// sampled collects one figure of each repetition.
type sampled map[string][]float64

func (s sampled) add(key string, value float64) { s[key] = append(s[key], value) }

// measure plays one cell. alone holds the share of each training alone, as it was measured before.
func (c *colocation) measure(ctx context.Context, r *rig, f *figures, cell *colocated, policies []string, alone map[string]float64) error {
	s := sampled{}
	for seed := range c.repetitions {
		gaps := c.gaps(cell, uint64(seed)+1)
		for _, world := range []struct {
			name string
			play func(context.Context, *play) (measured, error)
		}{{"real", func(ctx context.Context, p *play) (measured, error) { return c.real(ctx, r, p) }}, {"sim", c.simulate}} {
			service, err := world.play(ctx, &play{cell: cell, gaps: gaps, service: true})
			if err != nil {
				return fmt.Errorf("service alone, %s: %w", world.name, err)
			}
			training := fmt.Sprint(world.name, seed, cell.training.Name)
			if _, ok := alone[training]; !ok {
				one, err := world.play(ctx, &play{cell: cell, trainers: 1})
				if err != nil {
					return fmt.Errorf("training alone, %s: %w", world.name, err)
				}
				alone[training] = one.share
			}
			s.add(world.name+"_alone_p50_ms", service.p50)
			s.add(world.name+"_alone_p99_ms", service.p99)
			for _, policy := range policies {
				both, err := world.play(ctx, &play{cell: cell, gaps: gaps, service: true, trainers: cell.trainers, policy: policy})
				if err != nil {
					return fmt.Errorf("%s, %s: %w", policy, world.name, err)
				}
				s.add(policy+"."+world.name+"_p50_of_alone", both.p50/service.p50)
				s.add(policy+"."+world.name+"_p99_of_alone", both.p99/service.p99)
				s.add(policy+"."+world.name+"_training_of_alone", both.share/alone[training])
			}
		}
	}
	c.record(f, cell.key(), s, policies)
	return nil
}

// record turns the samples of a cell into figures and holds them against the bars. A cell takes
// minutes, so it says a line at once.
func (c *colocation) record(f *figures, key string, s sampled, policies []string) {
	for _, name := range []string{"real_alone_p50_ms", "sim_alone_p50_ms", "real_alone_p99_ms", "sim_alone_p99_ms"} {
		f.add(key+"."+name, "ms", s[name])
	}
	for _, policy := range policies {
		in := key + "." + policy
		for _, what := range []string{"_p50_of_alone", "_p99_of_alone", "_training_of_alone"} {
			f.add(in+".real"+what, "", s[policy+".real"+what])
			f.add(in+".sim"+what, "", s[policy+".sim"+what])
		}
		apart := math.Abs(f.of(in+".real_training_of_alone")/f.of(in+".sim_training_of_alone") - 1)
		f.value(in+".training_apart", "", apart, c.repetitions)
		f.limit(in+".real_p99_of_alone", p99Limit, "times alone")
		f.limit(in+".training_apart", agreementLimit, "simulator and processes")
		fmt.Printf("%-38s %-9s", key, policy)
		for _, world := range []string{"real", "sim"} {
			fmt.Printf("  %s: p50 %.3f p99 %.3f training %.3f", world, f.of(in+"."+world+"_p50_of_alone"),
				f.of(in+"."+world+"_p99_of_alone"), f.of(in+"."+world+"_training_of_alone"))
		}
		fmt.Printf("  apart %.3f\n", apart)
	}
}

// gaps are the seconds between the requests, as if kernels were not stretched.
func (c *colocation) gaps(cell *colocated, seed uint64) []float64 {
	random := rand.New(rand.NewPCG(seed, 0x636f6c6f63617465))
	mean := cell.service.Time().Seconds() / cell.load
	left := (c.warmUp + c.duration).Seconds() / c.stretch
	var gaps []float64
	for left > 0 {
		gap := random.ExpFloat64() * mean
		gaps = append(gaps, gap)
		left -= gap
	}
	return gaps
}
