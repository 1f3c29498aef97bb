package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/heddle-project/heddle/runtime/sched"
	"github.com/heddle-project/heddle/runtime/sim"
	"github.com/heddle-project/heddle/runtime/sim/device"
)

const simLong = `Show what would happen if these workloads shared a GPU, under one policy after another.

Nothing runs on a device: kernels of known duration are played in virtual time on a model of it
(docs/device-model.md), by the policies that heddled itself uses. A workload is a table of kernels,
CSV with Name, Profile, SM_usage and Duration in ns, as heddle-play takes it; or a profile that
"heddle profile export" wrote, of which docs/simulator.md says how it is played; or the name of a
workload that came with heddle (--list):

  FILE@poisson:RATE     a service; requests per second, at random times
  FILE@load:PART        the same, as a part of what the device can serve, such as 0.7
  FILE@closed[:THINK]   a service that is asked again as soon as, or so long after, it answered
  FILE@every:PERIOD     a service that is asked once in a period, such as 20ms
  FILE@trace:ARRIVALS   a service; JSON array of seconds between requests
  FILE                  a training job
  ...*N                 N of them

Services of --hp are of class high, what --lp names is of class low. The table shows latencies of the
slowest service and how they compare with its running alone (x alone); LP, the part of the time that
the lower class's work would fill alone; SMS, the part of the device's SMs that kernels held. With
--oracle, OF ORACLE compares LP with a filler that knows the future and never lets two kernels
overlap, and the line "reactive" is a yardstick for all who learn of a request when it comes: one
kernel of one lower program at a time, by a gate that costs nothing.

JSON: {gpu, shared, duration_s, interrupted, seeds, alone: row, oracle_share, reactive: row, policies:
[row]}, row being {policy, p50, p95, p99: {ms, of_alone}, share, share_of_oracle, rounds_per_s,
sm_busy, overruns}.

Ctrl-C ends it at once, with the medians of the seeds whose runs were over and exit code 130.`

const simExample = `  heddle sim --hp inference@load:0.3 --lp training --oracle
  heddle sim --hp resnet50.csv@poisson:40 --lp resnet50_train.csv
  heddle sim --hp api.json@load:0.5 --lp training    # api.json: heddle profile export
  heddle sim --hp api.csv@load:0.7 --lp train.csv*4 --policy heddle,orion,none --oracle
  heddle sim --gpu a100 --time-sliced --hp api.csv@trace:arrivals.json --lp train.csv --plot out.svg`

type simOptions struct {
	gpu        string
	hp, lp     []string
	policies   []string
	duration   time.Duration
	seeds      int
	noise      float64
	slo        string
	timeSliced bool
	oracle     bool
	plot       string
	asJSON     bool
	list       bool
}

// Bounds of a simulation, beyond which it is a slip of the keyboard.
const (
	simMaxDuration = time.Hour
	simMaxSeeds    = 1000
	simMaxClients  = 64
)

func newSimCmd(a *app) *cobra.Command {
	var o simOptions
	cmd := &cobra.Command{
		Use:               "sim --hp WORKLOAD --lp WORKLOAD",
		Short:             "Simulate workloads that share a GPU, under each policy",
		Long:              simLong,
		Example:           simExample,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.list {
				return a.listSim()
			}
			return a.sim(cmd.Context(), &o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.gpu, "gpu", "H100", "GPU `model` (--list names them)")
	flags.StringArrayVar(&o.hp, "hp", nil, "`workload` of class high; may be given several times")
	flags.StringArrayVar(&o.lp, "lp", nil, "`workload` of class low; may be given several times")
	flags.StringSliceVar(&o.policies, "policy", sched.PolicyNames(), "`names` of the policies to compare")
	flags.DurationVar(&o.duration, "duration", 10*time.Second, "simulated time that is measured, after a second that is not")
	flags.IntVar(&o.seeds, "seeds", 3, "`number` of runs of each policy, of which medians are shown")
	flags.Float64Var(&o.noise, "noise", 0.02, "spread of kernel times, 0.02 being about 2 %")
	flags.StringVar(&o.slo, "slo", "2%", "slowdown that the services accept; 0% = no objective")
	flags.BoolVar(&o.timeSliced, "time-sliced", false, "the device takes turns between programs, as without MPS")
	flags.BoolVar(&o.oracle, "oracle", false, "compare with an all-knowing filler, too")
	flags.StringVar(&o.plot, "plot", "", "draw latency against throughput into this SVG `file`")
	flags.BoolVar(&o.asJSON, "json", false, "print JSON")
	flags.BoolVar(&o.list, "list", false, "list the GPU models, policies and shipped workloads")
	completeWithNothing(cmd, "duration", "seeds", "noise", "slo")
	mustComplete(cmd, "gpu", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return modelNames(), cobra.ShellCompDirectiveNoFileComp
	})
	mustComplete(cmd, "policy", func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return completeList(typed, sched.PolicyNames()), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveKeepOrder
	})
	return cmd
}

func modelNames() []string {
	var names []string
	for _, m := range device.Models() {
		names = append(names, m.Name)
	}
	return names
}

func (a *app) listSim() error {
	shipped := strings.Join(workloadsIn(shippedFolders()), ", ")
	if shipped == "" {
		shipped = "none found"
	}
	_, err := fmt.Fprintf(a.stdout, "GPU models: %s\npolicies: %s\nshipped workloads: %s\n",
		strings.Join(modelNames(), ", "), strings.Join(sched.PolicyNames(), ", "), shipped)
	return err
}

// experiment makes an experiment of what was asked for.
func (o *simOptions) experiment() (*sim.Experiment, error) {
	if len(o.hp) == 0 {
		return nil, usagef("give at least one --hp workload")
	}
	model, ok := device.Lookup(o.gpu)
	if !ok {
		return nil, usagef("--gpu %s: there are %s", o.gpu, strings.Join(modelNames(), ", "))
	}
	o.gpu = model.Name // as the catalogue spells it
	if o.duration <= 0 || o.duration > simMaxDuration {
		return nil, usagef("--duration %s: want more than 0, up to %s", o.duration, simMaxDuration)
	}
	if o.seeds < 1 || o.seeds > simMaxSeeds {
		return nil, usagef("--seeds %d: want 1 to %d", o.seeds, simMaxSeeds)
	}
	if !(o.noise >= 0 && o.noise <= 1) {
		return nil, usagef("--noise %v: want 0 to 1", o.noise)
	}
	settings := sched.DefaultSettings()
	slo, err := parseSLO(o.slo)
	if err != nil {
		return nil, usagef("--slo %s: %w", o.slo, err)
	}
	settings.SLO = slo
	for _, name := range o.policies {
		if _, err := sched.NewPolicy(name, settings); err != nil {
			return nil, usagef("--policy: %w", err)
		}
	}
	e := &sim.Experiment{
		Scenario: sim.Scenario{
			GPU: o.gpu, Shared: !o.timeSliced, Costs: sim.RealLike, Duration: o.duration, WarmUp: time.Second, Noise: o.noise,
		},
		Policies: o.policies, Settings: settings, Oracle: o.oracle,
	}
	for _, side := range []struct {
		flag  string
		specs []string
		class int
	}{{"hp", o.hp, 2}, {"lp", o.lp, 7}} {
		for _, spec := range side.specs {
			clients, err := readWorkload(spec, o.gpu, side.class)
			if err != nil {
				return nil, usagef("--%s %s: %w", side.flag, spec, err)
			}
			e.Scenario.Clients = append(e.Scenario.Clients, clients...)
		}
	}
	if n := len(e.Scenario.Clients); n > simMaxClients {
		return nil, usagef("%d programs: want at most %d", n, simMaxClients)
	}
	for seed := range o.seeds {
		e.Seeds = append(e.Seeds, uint64(seed)+1)
	}
	return e, nil
}

func (a *app) sim(ctx context.Context, o *simOptions) error {
	e, err := o.experiment()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	done := a.simProgress(e)
	report, err := e.Run(ctx)
	done()
	interrupted := err != nil && ctx.Err() != nil
	switch {
	case interrupted && report == nil:
		return &exitError{exitInterrupted, errors.New("interrupted before the runs of one seed were over")}
	case err != nil && !interrupted:
		return err
	}
	if err := a.printSim(o, report, interrupted); err != nil || !interrupted {
		return err
	}
	return &exitError{exitInterrupted, fmt.Errorf("interrupted: medians of %d seeds, not %d", report.Seeds, o.seeds)}
}

// printSim shows what came out of a simulation, or of the part of it that was over.
func (a *app) printSim(o *simOptions, report *sim.Report, interrupted bool) error {
	if o.plot != "" {
		if err := os.WriteFile(o.plot, simPlot(o, report), 0o666); err != nil {
			return fmt.Errorf("write the plot: %w", err)
		}
	}
	if o.asJSON {
		return a.printJSON(struct {
			GPU         string  `json:"gpu"`
			Shared      bool    `json:"shared"`
			Duration    float64 `json:"duration_s"`
			Interrupted bool    `json:"interrupted"`
			*sim.Report
		}{o.gpu, !o.timeSliced, o.duration.Seconds(), interrupted, report})
	}
	return simTable(report, o.oracle).write(a.stdout, a.width(false), a.palette())
}

// simProgress shows on a terminal how far a simulation is; the function that it returns wipes that
// away.
func (a *app) simProgress(e *sim.Experiment) func() {
	f, ok := a.stderr.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return func() {}
	}
	e.Progress = func(done, total int) { fmt.Fprintf(f, "\r%d of %d runs", done, total) }
	return func() { fmt.Fprint(f, "\r\x1b[K") }
}

func simTable(r *sim.Report, oracle bool) *table {
	t := &table{columns: []column{
		{title: "POLICY"},
		{title: "P50", right: true},
		{title: "X ALONE", right: true},
		{title: "P95", right: true, drop: 2},
		{title: "X ALONE", right: true, drop: 3},
		{title: "P99", right: true},
		{title: "X ALONE", right: true},
		{title: "LP", right: true},
		{title: "OF ORACLE", right: true, drop: 4},
		{title: "SMS", right: true, drop: 1},
	}}
	row := func(name string, r *sim.Row) {
		figure := func(f sim.Figure) []cell {
			if f.Ms == 0 {
				return []cell{{text: unknown, tone: toneDim}, {text: unknown, tone: toneDim}}
			}
			times := cell{text: unknown, tone: toneDim}
			if f.OfAlone != 0 {
				times = cell{text: fmt.Sprintf("%.3f", f.OfAlone)}
			}
			return []cell{{text: fmt.Sprintf("%.2f ms", f.Ms)}, times}
		}
		cells := []cell{{text: name}}
		for _, f := range []sim.Figure{r.P50, r.P95, r.P99} {
			cells = append(cells, figure(f)...)
		}
		of := cell{text: unknown, tone: toneDim}
		if r.OfOracle != 0 {
			of = cell{text: fmt.Sprintf("%.3f", r.OfOracle)}
		}
		t.add(append(cells, cell{text: fmt.Sprintf("%.3f", r.Share)}, of, cell{text: fmt.Sprintf("%.2f", r.Busy)})...)
	}
	row("alone", &r.Alone)
	for i := range r.Rows {
		row(r.Rows[i].Policy, &r.Rows[i])
	}
	if oracle {
		row("reactive", r.Reactive)
		t.add(
			cell{text: "oracle"}, cell{}, cell{}, cell{}, cell{}, cell{}, cell{},
			cell{text: fmt.Sprintf("%.3f", r.Oracle)}, cell{}, cell{},
		)
	}
	return t
}

func shortName(path string) string {
	return strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
}
