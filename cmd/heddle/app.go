package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"
)

const (
	defaultAPISocket = "/run/heddle/heddled.sock"
	// A local socket answers in well under a millisecond; five seconds is a daemon that hangs.
	defaultTimeout = 5 * time.Second
)

// app is what all commands share: the standard streams, the environment and the global flags.
type app struct {
	stdin   io.Reader
	stdout  io.Writer
	stderr  io.Writer
	environ []string
	screen  screen // what stdout can show

	socket    string
	socketSet bool // by the flag, not by the environment or the default
	timeout   time.Duration
	noColor   bool
}

// screen says how much stdout can show. The zero value is a file or a pipe: no limit, no colour.
type screen struct {
	tty    bool
	width  int // columns, 0 = unlimited
	height int // lines, 0 = unlimited
	color  bool
}

func newApp(stdin io.Reader, stdout, stderr io.Writer, environ []string) *app {
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr, environ: environ}
	if f, ok := stdout.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		a.screen = screen{tty: true, color: true}
		a.measure()
	}
	return a
}

// measure reads the size of the terminal, which may change while a command runs.
func (a *app) measure() {
	if f, ok := a.stdout.(*os.File); ok && a.screen.tty {
		if width, height, err := term.GetSize(int(f.Fd())); err == nil {
			a.screen.width, a.screen.height = width, height
		}
	}
}

// execute runs one command line and returns the exit code.
func (a *app) execute(ctx context.Context, args []string) int {
	root := newRootCmd(a) //nolint:contextcheck // the commands take their context from ExecuteContextC below
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !errors.Is(err, errReported) {
		fmt.Fprintf(a.stderr, "%s: %s\n", cmd.CommandPath(), oneLine(err))
	}
	return exitCode(err)
}

// getenv answers from the environment that heddle was started with.
func (a *app) getenv(name string) string {
	value, _ := lookupEnv(a.environ, name)
	return value
}

// palette is the colours that stdout takes, decided after the flags are parsed.
func (a *app) palette() palette {
	return palette{on: a.screen.color && !a.noColor && a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb"}
}

// lookupEnv finds the last setting of name, the one that a program started with env would see.
func lookupEnv(env []string, name string) (string, bool) {
	for _, entry := range slices.Backward(env) {
		if key, value, ok := strings.Cut(entry, "="); ok && key == name {
			return value, true
		}
	}
	return "", false
}
