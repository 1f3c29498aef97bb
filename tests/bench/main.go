// Command bench measures what Heddle costs and holds it against its budgets:
//
//	bench launch   ns per launch, bare and through the interposer
//	bench gate     from a holder's idling to the held one's running
//	bench attach   time to become a client, one and many at once
//	bench fair     training jobs that share by weight
//	bench colocate services beside training jobs, and what the simulator says of the same
//
// The first three run against the software GPU's null driver, so that what is
// measured is Heddle's own. Every figure is printed with its unit, its median and its
// minimum; all of them go to BUILD/bench/NAME.json. A budget that is exceeded
// is exit code 1.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

type bench struct {
	name string
	run  func(context.Context, *rig, *figures) error
	// Far more than the bench takes; one that hangs says so by failing.
	limit time.Duration
}

var errUsage = errors.New("usage: bench launch|gate|attach|fair|colocate [--build FOLDER] [options of fair and colocate]")

func main() {
	err := run(os.Args[1:])
	switch {
	case err == nil:
		return
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	default:
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	b, build, err := parse(args)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, b.limit)
	defer cancel()
	// The children die with the thread that started them, so this one stays.
	runtime.LockOSThread()

	r, err := newRig(build)
	if err != nil {
		return err
	}
	f := &figures{}
	// A process that is killed closes its end of the pipe, so no read waits longer than the context.
	stopKilling := context.AfterFunc(ctx, r.killAll)
	defer stopKilling()
	err = b.run(ctx, r, f)
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err := errors.Join(err, r.close()); err != nil {
		return fmt.Errorf("%s: %w", b.name, err)
	}
	f.print(os.Stdout)
	if err := f.write(filepath.Join(r.build, "bench", b.name+".json")); err != nil {
		return err
	}
	return f.exceeded()
}

func parse(args []string) (bench, string, error) {
	var together colocation
	var fair fairness
	benches := []bench{
		{"launch", benchLaunch, 5 * time.Minute},
		{"gate", benchGate, 5 * time.Minute},
		{"attach", benchAttach, 5 * time.Minute},
		{"fair", fair.bench, time.Hour},
		{"colocate", together.bench, 2 * time.Hour},
	}
	if len(args) == 0 {
		return bench{}, "", errUsage
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	build := flags.String("build", "build", "folder of the build")
	check := func() error { return nil }
	switch args[0] {
	case "colocate":
		together.flags(flags)
		check = together.check
	case "fair":
		fair.flags(flags)
		check = fair.check
	}
	if err := flags.Parse(args[1:]); err != nil || flags.NArg() > 0 {
		return bench{}, "", errUsage
	}
	if err := check(); err != nil {
		return bench{}, "", fmt.Errorf("%w: %w", errUsage, err)
	}
	for _, b := range benches {
		if b.name == args[0] {
			return b, *build, nil
		}
	}
	return bench{}, "", errUsage
}
