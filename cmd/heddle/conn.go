package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/heddle-project/heddle/runtime/api"
	"github.com/heddle-project/heddle/runtime/errdefs"
)

// call runs one or more requests against heddled within the time that --timeout allows.
func (a *app) call(ctx context.Context, do func(context.Context, *api.Conn) error) error {
	return a.callWithin(ctx, a.timeout, do)
}

func (a *app) callWithin(ctx context.Context, limit time.Duration, do func(context.Context, *api.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn := api.NewConn(a.socket)
	defer conn.Close()
	return a.explain(do(ctx, conn), limit)
}

// explain gives the error of a request the exit code that it deserves, and adds what only this
// end knows.
func (a *app) explain(err error, limit time.Duration) error {
	var known *exitError
	switch {
	case err == nil, errors.As(err, &known):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return unreachablef("no answer from heddled at %s within %s", a.socket, limit)
	case errors.Is(err, errdefs.ErrUnavailable):
		if info, statErr := os.Stat(a.socket); statErr == nil && info.Mode().Type() != os.ModeSocket {
			return unreachablef("no heddled at %s: not a socket; name its API socket with --socket or HEDDLE_API", a.socket)
		}
		return &exitError{exitUnreachable, err}
	case errors.Is(err, errdefs.ErrPermissionDenied) && mayNotConnect(a.socket):
		if info, statErr := os.Stat(a.socket); statErr == nil {
			err = fmt.Errorf("%w (mode %04o, owner %s)", err, info.Mode().Perm(), owner(info))
		}
		return &exitError{exitUnreachable, err}
	case errors.Is(err, errdefs.ErrInvalid):
		return &exitError{exitUsage, err}
	default:
		return err
	}
}

// mayNotConnect tells a socket that refuses this user from a heddled that refuses the request.
func mayNotConnect(socket string) bool {
	const write = 0x2 // W_OK
	return errors.Is(syscall.Access(socket, write), syscall.EACCES)
}

// plainErrno is the system's own words, without the operation and the path around them.
func plainErrno(err error) string {
	if errno, known := errors.AsType[syscall.Errno](err); known {
		return errno.Error()
	}
	return err.Error()
}
