// Command heddled is Heddle's daemon on one node: it grants, schedules and
// accounts for the programs that share this node's GPUs.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/heddle-project/heddle/runtime/config"
	"github.com/heddle-project/heddle/runtime/daemon"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	// After the first signal the default action is back: a second one ends
	// the process now.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	opt, err := parseFlags(args, stdout)
	switch {
	case errors.Is(err, errHelp):
		return 0
	case err != nil:
		fail(stderr, err)
		return exitUsage
	case opt.version:
		fmt.Fprintln(stdout, "heddled", version())
		return 0
	}
	loaded, err := config.Load(config.Source{
		System: config.System{EffectiveUID: os.Geteuid(), Environ: os.Environ()},
		File:   opt.file, Flags: opt.settings,
	})
	if err != nil {
		return fail(stderr, err)
	}
	if opt.check {
		fmt.Fprintln(stdout, "the configuration is valid")
		return 0
	}
	lines := daemon.NewLogWriter(stderr)
	log := slog.New(handler(&loaded.Log, lines))
	// The heap is a few megabytes; under a limit the collector works a little
	// harder instead of letting it grow past the budget of a resting daemon.
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
	err = daemon.New(daemon.Options{Config: loaded, Version: version(), Log: log}).Run(ctx)
	err = errors.Join(err, lines.Close()) // before anything else is printed
	if err != nil {
		return fail(stderr, err)
	}
	return 0
}

const memoryLimit = 48 << 20

// Exit codes, as those of heddle. A unit of systemd can tell by them that a
// restart will not help.
const (
	exitFailure = 1
	exitUsage   = 2
)

// fail prints an error, every line of it with the program's name.
func fail(stderr io.Writer, err error) int {
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintln(stderr, "heddled:", strings.TrimRight(line, "\n"))
	}
	return exitFailure
}

func handler(l *config.Log, w io.Writer) slog.Handler {
	var level slog.Level
	if err := level.UnmarshalText([]byte(l.Level)); err != nil {
		level = slog.LevelInfo // validation lets no other word through
	}
	opt := &slog.HandlerOptions{Level: level}
	if l.Format == "json" {
		return slog.NewJSONHandler(w, opt)
	}
	return slog.NewTextHandler(w, opt)
}
