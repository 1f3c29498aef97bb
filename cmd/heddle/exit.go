package main

import (
	"errors"
	"fmt"
	"strings"
)

// Exit codes. A command started by run replaces heddle, so its own code is seen unchanged.
const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2
	exitUnreachable = 3
	// As shells have them, for the command after "run --".
	exitNotExecutable = 126
	exitNotFound      = 127
	// As shells have it after a Ctrl-C.
	exitInterrupted = 130
)

// exitError is an error that knows the exit code it deserves.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// errReported ends a command whose output has already said what is wrong.
var errReported = errors.New("reported")

func usagef(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

func unreachablef(format string, args ...any) error {
	return &exitError{exitUnreachable, fmt.Errorf(format, args...)}
}

// exitCode maps what a command returned to the code of the process.
func exitCode(err error) int {
	var e *exitError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &e):
		return e.code
	default:
		return exitFailure
	}
}

// oneLine keeps the promise that an error is one line, whatever a server or a library wrote.
func oneLine(err error) string {
	return printable(strings.Join(strings.Fields(err.Error()), " "))
}
