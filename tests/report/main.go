// Command report runs one part of the tests and remembers how it went, so that `make test` can end with lines that a
// reader can judge: what passed, how long it took, what was skipped and why.
//
//	report run NAME COMMAND...     run COMMAND, show its output, collect its skip lines
//	report go NAME ARGUMENT...     run `go test -json ARGUMENT...`, show failures in full and one line per package
//	report sum                     print the table of all parts; fails if a part failed or none ran
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	book := filepath.Join("build", "test", "report.jsonl")
	switch {
	case len(args) == 1 && args[0] == "sum":
		parts, err := load(book)
		if err != nil {
			return err
		}
		return summarize(os.Stdout, parts)
	case len(args) >= 3 && (args[0] == "run" || args[0] == "go"):
		part, err := execute(ctx, args[0], args[1], args[2:])
		return errors.Join(err, save(book, part))
	}
	return errors.New("usage: report run NAME COMMAND... | report go NAME ARGUMENT... | report sum")
}

// execute runs the command of one part. Its output is read while it runs, so that a person can watch.
func execute(ctx context.Context, mode, name string, args []string) (Part, error) {
	part := Part{Name: name}
	read := part.readText
	if mode == "go" {
		args = append([]string{"go", "test", "-json"}, args...)
		read = part.readGo
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return part, err
	}
	cmd.Stderr = cmd.Stdout
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return part, err
	}
	readErr := read(out, os.Stdout)
	err = errors.Join(readErr, cmd.Wait())
	part.Seconds = time.Since(start).Seconds()
	part.OK = err == nil
	if err != nil {
		return part, fmt.Errorf("%s: %w", name, err)
	}
	return part, nil
}
