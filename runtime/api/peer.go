package api

import (
	"context"
	"net"
	"os/user"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
)

// Peer is who holds the other end of a connection, as the OS kernel says.
type Peer struct {
	UID int // -1 = not known
	GID int
	PID int // 0 = not visible from here
}

type peerKey struct{}

// withPeer remembers the peer of conn for the requests that come over it.
func withPeer(ctx context.Context, conn net.Conn) context.Context {
	peer, err := peerOf(conn)
	if err != nil {
		return ctx
	}
	return context.WithValue(ctx, peerKey{}, peer)
}

func peerFrom(ctx context.Context) (Peer, bool) {
	peer, ok := ctx.Value(peerKey{}).(Peer)
	if !ok {
		return Peer{UID: -1, GID: -1}, false
	}
	return peer, true
}

func peerOf(conn net.Conn) (Peer, error) {
	if counted, ok := conn.(*countedConn); ok {
		return counted.peer, nil
	}
	uc, ok := conn.(*net.UnixConn)
	if !ok {
		return Peer{}, net.UnknownNetworkError("not a unix socket")
	}
	raw, err := uc.SyscallConn()
	if err != nil {
		return Peer{}, err
	}
	var cred *unix.Ucred
	var credErr error
	err = raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err != nil {
		return Peer{}, err
	}
	if credErr != nil {
		return Peer{}, credErr
	}
	return Peer{UID: int(cred.Uid), GID: int(cred.Gid), PID: int(cred.Pid)}, nil
}

// hideCommands takes the command lines out of clients that are another user's
// than the peer's, unless the peer is root: arguments can be passwords. An OS
// kernel that hides processes from other users would have hidden them too.
func hideCommands(ctx context.Context, clients ...*heddlev1.Client) {
	peer, _ := peerFrom(ctx)
	if peer.UID == 0 {
		return
	}
	for _, c := range clients {
		if c != nil && int(c.GetUid()) != peer.UID {
			c.Command = ""
		}
	}
}

// Administrators returns the rule of who may change things: root, the uid that
// heddled runs as, and the members of group. A group that does not exist has
// no members.
func Administrators(ownUID int, group string) func(Peer) bool {
	return func(p Peer) bool {
		if p.UID == 0 || p.UID == ownUID {
			return true
		}
		g, err := user.LookupGroup(group)
		if err != nil {
			return false
		}
		if strconv.Itoa(p.GID) == g.Gid {
			return true
		}
		u, err := user.LookupId(strconv.Itoa(p.UID))
		if err != nil {
			return false
		}
		ids, err := u.GroupIds()
		if err != nil {
			return false
		}
		return slices.Contains(ids, g.Gid)
	}
}
