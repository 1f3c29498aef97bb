package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

const demoLong = `Play an inference service and a training job on one GPU and measure what sharing costs.

Four runs, all played by heddle-play with the same requests at the same times: each of the two
alone, both together as the driver shares the device by itself, and both together under a heddled
of the demo's own, with the service in class high and the training in class low. While the last
one goes on, the demo shows who runs and who is held. It ends with a table, and fails when the
promise does not hold: with Heddle the service's p99 is at most 1.25 times that of the service
alone while the training goes on, and without Heddle it is visibly worse.

The software GPU is used unless --gpu real asks for the machine's own. Nothing is written outside
a temporary folder, no process is left behind, and no rights are needed. Where it is allowed, the
players of the software GPU run with real-time priority: it plays device time on this machine's
processors.

JSON: {alone, naive, heddle: {p50_ms, p99_ms, train_it_s}, requests, duration_s, gpu, hp, lp,
arrivals, held, problems}`

const demoExample = `  heddle demo
  heddle demo --hp inference.csv --lp training.csv --arrivals arrivals.json --duration 20s
  heddle demo --gpu real`

// demoOptions is the command line of the demo.
type demoOptions struct {
	hp, lp   string
	arrivals string
	gpu      string
	model    string
	duration time.Duration
	keepLogs string
	asJSON   bool
}

const (
	demoDefaultDuration = 15 * time.Second
	demoMinDuration     = time.Second
	demoMaxDuration     = 10 * time.Minute
	// A quarter of the device's time for the shipped service: short queues alone, and most of the
	// device left for training.
	demoDefaultArrivals = "poisson:40"
	demoDefaultModel    = "H100"
)

func newDemoCmd(a *app) *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use:               "demo",
		Short:             "Measure a service beside a training job, with and without Heddle",
		Long:              demoLong,
		Example:           demoExample,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return a.demo(cmd.Context(), &o) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.hp, "hp", "", "kernel table of the service, class high (default: a shipped one)")
	flags.StringVar(&o.lp, "lp", "", "kernel table of the training job, class low (default: a shipped one)")
	flags.StringVar(&o.arrivals, "arrivals", demoDefaultArrivals, "when requests come: poisson:RATE, closed, or a JSON file of gaps in seconds")
	flags.StringVar(&o.gpu, "gpu", "soft", "soft: the software GPU; real: this machine's driver")
	flags.StringVar(&o.model, "model", demoDefaultModel, "which GPU the software GPU is")
	flags.DurationVar(&o.duration, "duration", demoDefaultDuration, "measured time of each of the four runs")
	flags.BoolVar(&o.asJSON, "json", false, "print the result as JSON; progress goes to stderr")
	flags.StringVar(&o.keepLogs, "keep-logs", "", "folder to leave the logs of all processes in")
	for _, name := range []string{"model", "duration"} {
		completeWithNothing(cmd, name)
	}
	mustComplete(cmd, "gpu", cobra.FixedCompletions([]string{"soft", "real"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *demoOptions) check() error {
	if o.gpu != "soft" && o.gpu != "real" {
		return usagef("--gpu %s: want soft or real", o.gpu)
	}
	if o.duration < demoMinDuration || o.duration > demoMaxDuration {
		return usagef("--duration %s: want %s to %s", o.duration, demoMinDuration, demoMaxDuration)
	}
	for flag, path := range map[string]string{"hp": o.hp, "lp": o.lp, "keep-logs": o.keepLogs} {
		if path == "" {
			continue
		}
		if _, err := os.Stat(path); err != nil {
			return usagef("--%s %s: %s", flag, path, plainErrno(err))
		}
	}
	return nil
}

// errInterrupted ends a demo or a simulation that somebody has seen enough of.
var errInterrupted = errors.New("interrupted")

// demo runs the whole of it and says in the exit code whether the promise held.
func (a *app) demo(ctx context.Context, o *demoOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	parts, err := a.findDemoParts(o)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := parts.checkTables(ctx, o); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// A reader that has seen enough (demo | head) ends it like a Ctrl-C, and is cleaned up after. The
	// signal alone does not tell: a player that died makes it, too, at the next word to it.
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	defer signal.Stop(pipes)
	watched := *a
	watched.stdout = &watchedWriter{Writer: a.stdout, broken: cancel}
	a = &watched

	// The children are told to die with the thread that started them; so this one stays.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	result, err := a.demoInFolder(ctx, o, parts)
	if ctx.Err() != nil {
		return errInterrupted
	}
	if err != nil {
		return err
	}
	return a.reportDemo(o, result)
}

// watchedWriter calls broken when nobody reads any more.
type watchedWriter struct {
	io.Writer
	broken func()
}

func (w *watchedWriter) Write(text []byte) (int, error) {
	n, err := w.Writer.Write(text)
	if errors.Is(err, syscall.EPIPE) {
		w.broken()
	}
	return n, err
}

// demoInFolder makes the folder that everything lives in, and takes it away again.
func (a *app) demoInFolder(ctx context.Context, o *demoOptions, parts *demoParts) (result *demoResult, err error) {
	dir, err := makeDemoFolder(a.getenv("TMPDIR"))
	if err != nil {
		return nil, err
	}
	defer func() {
		if o.keepLogs != "" {
			err = errors.Join(err, keepLogs(dir, o.keepLogs))
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	d := &demoRun{app: a, options: o, parts: parts, dir: dir, view: a.newDemoView(o.asJSON)}
	return d.run(ctx)
}

// The longest name of a socket in the folder, and the longest path that a socket can have.
const (
	demoSocketRoom = len("/attach/attach.sock")
	socketPathMax  = 107
)

// makeDemoFolder makes a folder of our own whose sockets can be bound: below TMPDIR, or below /tmp
// where that is too long a path.
func makeDemoFolder(temp string) (string, error) {
	const pattern = "heddle-demo-*"
	if temp == "" || len(temp)+len("/"+pattern)+16+demoSocketRoom > socketPathMax {
		temp = "/tmp"
	}
	dir, err := os.MkdirTemp(temp, pattern)
	if err != nil {
		return "", fmt.Errorf("make a folder in %s: %s", temp, plainErrno(err))
	}
	return dir, nil
}

// keepLogs copies the logs before the folder goes.
func keepLogs(from, to string) error {
	logs, err := filepath.Glob(filepath.Join(from, "*.log"))
	if err != nil {
		return err
	}
	for _, path := range logs {
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("keep log: %w", err)
		}
		if err := os.WriteFile(filepath.Join(to, filepath.Base(path)), text, 0o644); err != nil {
			return fmt.Errorf("keep log: %w", err)
		}
	}
	return nil
}
