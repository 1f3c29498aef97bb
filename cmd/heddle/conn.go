package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"connectrpc.com/connect"

	"github.com/heddle-project/heddle/runtime/api/heddle/v1/heddlev1connect"
)

// service is the API of heddled as the commands use it.
type service = heddlev1connect.HeddleServiceClient

// dial prepares requests to the heddled that listens on a socket; nothing happens before the first.
func dial(socket string) (conn service, hangUp func()) {
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		},
	}
	client := heddlev1connect.NewHeddleServiceClient(&http.Client{Transport: transport}, "http://heddled")
	return client, transport.CloseIdleConnections
}

// call runs one or more requests against heddled within the time that --timeout allows, and words
// what went wrong for the person at the terminal.
func (a *app) call(ctx context.Context, do func(context.Context, service) error) error {
	return a.callWithin(ctx, a.timeout, do)
}

func (a *app) callWithin(ctx context.Context, limit time.Duration, do func(context.Context, service) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, hangUp := dial(a.socket)
	defer hangUp()
	return a.explain(do(ctx, conn), limit)
}

// explain turns the error of a request into one that says what to do about it.
func (a *app) explain(err error, limit time.Duration) error {
	var known *exitError
	switch {
	case err == nil, errors.As(err, &known):
		return err
	case errors.Is(err, context.DeadlineExceeded), connect.CodeOf(err) == connect.CodeDeadlineExceeded:
		return unreachablef("no answer from heddled at %s within %s", a.socket, limit)
	}
	if reason := socketReason(a.socket, err); reason != "" {
		return unreachablef("heddled is not reachable at %s: %s", a.socket, reason)
	}
	var remote *connect.Error
	if !errors.As(err, &remote) {
		return err
	}
	switch remote.Code() {
	case connect.CodeUnavailable:
		return unreachablef("heddled at %s: %s", a.socket, remote.Message())
	case connect.CodePermissionDenied:
		return fmt.Errorf("%s (root and the administrators' group may do this)", remote.Message())
	case connect.CodeInvalidArgument:
		return usagef("%s", remote.Message())
	case connect.CodeUnimplemented:
		return fmt.Errorf("this heddled cannot do that; its version differs from heddle's (heddle version)")
	default:
		return errors.New(remote.Message())
	}
}

// socketReason says why nobody answers at a socket; empty if somebody does.
func socketReason(path string, err error) string {
	info, statErr := os.Stat(path)
	switch {
	case errors.Is(statErr, fs.ErrNotExist):
		return "no such socket; is heddled running?"
	case errors.Is(statErr, fs.ErrPermission):
		return "permission denied on the directory"
	case statErr != nil:
		return plainErrno(statErr)
	case info.Mode().Type() != fs.ModeSocket:
		return "not a socket"
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		return fmt.Sprintf("permission denied (mode %04o, owner %s)", info.Mode().Perm(), owner(info))
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nobody listens on it; heddled has stopped"
	default:
		return ""
	}
}

// plainErrno is the system's own words, without the operation and the path around them.
func plainErrno(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno.Error()
	}
	return err.Error()
}
