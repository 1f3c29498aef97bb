// Command sched measures the scheduling policies against each other in the simulator: services of
// two models under five kinds of load, beside one or four training jobs of three models, on a
// device that is shared side by side and one that takes turns. The kernels are those of
// ../shared/data/kernels (or of $HEDDLE_SHARED/data/kernels) where they are, else the workloads
// that come with the player.
//
// On a few cells it takes the mechanisms of the policy heddle away one after the other. It prints a line
// for each cell of the grid and goes to BUILD/bench/sched.json. A bar that does not
// hold is exit code 1; beside it stands what the yardstick "reactive" reaches.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/heddle-project/heddle/runtime/sched"
	"github.com/heddle-project/heddle/runtime/sim"
	"github.com/heddle-project/heddle/tests/bench/kernels"
)

type options struct {
	build    string
	gpu      string
	duration time.Duration
	seeds    int
}

func main() {
	var o options
	flag.StringVar(&o.build, "build", "build", "folder of the build")
	flag.StringVar(&o.gpu, "gpu", "H100", "GPU model")
	flag.DurationVar(&o.duration, "duration", 10*time.Second, "simulated time of each run")
	flag.IntVar(&o.seeds, "seeds", 5, "runs of each policy")
	flag.Parse()
	if flag.NArg() > 0 || o.duration <= 0 || o.seeds < 1 {
		fmt.Fprintln(os.Stderr, "usage: sched [--build FOLDER] [--gpu MODEL] [--duration TIME] [--seeds N]")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, &o); err != nil {
		fmt.Fprintln(os.Stderr, "sched:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o *options) error {
	set, err := kernels.Load()
	if err != nil {
		return err
	}
	fmt.Printf("kernels of %s, on %s\n", set.Source, o.gpu)
	result := result{Source: set.Source, GPU: o.gpu, Seconds: o.duration.Seconds(), Seeds: o.seeds}
	for _, c := range cells(set) {
		if err := c.play(ctx, o, sched.PolicyNames(), sched.NewPolicy); err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		c.judge()
		c.print(os.Stdout)
		result.Cells = append(result.Cells, c)
	}
	var names []string
	for _, v := range variants() {
		names = append(names, v.name)
	}
	fmt.Println("\nWhat each mechanism adds:")
	for _, c := range ablation(set) {
		if err := c.play(ctx, o, names, newVariant); err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		c.printVariants(os.Stdout)
		result.Ablation = append(result.Ablation, c)
	}
	result.sum()
	result.print(os.Stdout)
	if err := result.write(filepath.Join(o.build, "bench", "sched.json")); err != nil {
		return err
	}
	if result.Missed > 0 {
		return fmt.Errorf("%d of %d bars do not hold", result.Missed, result.Bars)
	}
	return nil
}

// play runs policies on one cell.
func (c *cell) play(ctx context.Context, o *options, names []string, newPolicy func(string, sched.Settings) (sched.Policy, error)) error {
	settings := sched.DefaultSettings()
	settings.SLO = c.Limit
	e := sim.Experiment{
		Scenario: sim.Scenario{
			GPU: o.gpu, Shared: c.Shared, Clients: c.clients, Costs: sim.RealLike,
			Duration: o.duration, WarmUp: time.Second, Noise: 0.02,
		},
		Policies: names, Oracle: true,
		New: func(name string) (sched.Policy, error) { return newPolicy(name, settings) },
	}
	for seed := range o.seeds {
		e.Seeds = append(e.Seeds, uint64(seed)+1)
	}
	report, err := e.Run(ctx)
	c.Report = report
	return err
}

func (r *result) write(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	data, err := json.MarshalIndent(r, "", "  ")
	return errors.Join(err, os.WriteFile(path, append(data, '\n'), 0o644))
}
