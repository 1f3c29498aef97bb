package main

import (
	"context"
	"net"
	"syscall"
	"time"

	"github.com/heddle-project/heddle/runtime/api"
	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
)

const (
	// A program must not wait long for a daemon that hangs; the interposer attaches by itself later.
	runProbeLimit = time.Second
	// Where the interposer attaches when nobody says otherwise.
	defaultAttachSocket = "/run/heddle/attach/attach.sock"
)

// node is what heddled said about itself; nothing when it is not reachable.
type node struct {
	answered     bool
	attachSocket string
	devices      []*heddlev1.Device
}

// askNode asks heddled for what the program's environment needs.
func (a *app) askNode(ctx context.Context, o *runOptions) (node, error) {
	var n node
	err := a.callWithin(ctx, min(a.timeout, runProbeLimit), func(ctx context.Context, conn *api.Conn) error {
		status, err := conn.Status(ctx)
		if err != nil {
			return err
		}
		n.answered, n.attachSocket = true, status.GetAttachSocket()
		if len(o.devices) > 0 {
			n.devices, err = conn.Devices(ctx)
		}
		return err
	})
	if err == nil {
		err = a.mayAttach(n.attachSocket)
	} else if exitCode(err) == exitUnreachable && a.attachAnswers() {
		// Inside a container only the attach socket is there, and it is the one that matters.
		return node{}, nil
	}
	switch {
	case err == nil:
		return n, nil
	case exitCode(err) != exitUnreachable || o.require:
		return node{}, err
	default:
		a.warn("run", err.Error()+"; the program runs unscheduled until that is mended")
		return n, nil
	}
}

// mayAttach says whether programs of this user can connect to the attach socket of a heddled that
// answers.
func (a *app) mayAttach(socket string) error {
	const write = 0x2 // W_OK
	if own := a.getenv("HEDDLE_SOCKET"); own != "" && !a.socketSet {
		socket = own
	}
	if err := syscall.Access(socket, write); socket != "" && err != nil {
		return unreachablef("attach socket %s: %s", socket, plainErrno(err))
	}
	return nil
}

// attachAnswers says whether somebody listens at the attach socket that the program will use.
func (a *app) attachAnswers() bool {
	socket := a.getenv("HEDDLE_SOCKET")
	if socket == "" {
		socket = defaultAttachSocket
	}
	conn, err := net.DialTimeout("unix", socket, runProbeLimit)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}
