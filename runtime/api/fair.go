package api

import (
	"net"
	"sync"
)

// connsPerUser is how many connections one user may have open. A person needs
// a few; a monitoring agent keeps one.
const connsPerUser = 64

// fairListener closes the connections of users that have too many, so that
// nobody can take heddled's descriptors away from the others. Root is not
// counted: somebody must be able to look what is going on.
type fairListener struct {
	net.Listener
	mu   sync.Mutex
	open map[int]int // by uid
}

func newFairListener(l net.Listener) *fairListener {
	return &fairListener{Listener: l, open: map[int]int{}}
}

// Accept waits for the next connection that may stay.
func (l *fairListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		peer, err := peerOf(conn)
		switch {
		case err != nil:
			_ = conn.Close() // it went away again, or is no unix socket
		case peer.UID == 0:
			return conn, nil
		case l.take(peer.UID):
			return &countedConn{Conn: conn, peer: peer, done: sync.OnceFunc(func() { l.give(peer.UID) })}, nil
		default:
			_ = conn.Close()
		}
	}
}

func (l *fairListener) take(uid int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[uid] >= connsPerUser {
		return false
	}
	l.open[uid]++
	return true
}

func (l *fairListener) give(uid int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[uid]--; l.open[uid] <= 0 {
		delete(l.open, uid)
	}
}

// countedConn gives its place back when it is closed.
type countedConn struct {
	net.Conn
	peer Peer
	done func()
}

// Close closes the connection.
func (c *countedConn) Close() error {
	defer c.done()
	return c.Conn.Close()
}
