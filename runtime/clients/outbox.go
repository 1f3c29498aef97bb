package clients

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/heddle-project/heddle/runtime/wire"
)

const (
	// outboxMax is how many messages may wait for one client: every peer and
	// arena that it can have, twice. A client that is further behind does not
	// read.
	outboxMax = 1024
	// sendTimeout is how long one message may take to leave. The socket's own
	// buffer takes hundreds, so that this, too, means a client that stopped
	// reading: a minute's SIGSTOP in a debugger is common, more is not.
	sendTimeout = time.Minute
	// lastWords is how long the message of an eviction may take.
	lastWords = time.Second
)

// shared is something that is closed when the last of its users lets go: a
// segment must outlive its owner while a message that carries it waits.
type shared struct {
	closer io.Closer
	mu     sync.Mutex
	users  int
}

func share(c io.Closer) *shared { return &shared{closer: c, users: 1} }

func (s *shared) retain() {
	s.mu.Lock()
	s.users++
	s.mu.Unlock()
}

func (s *shared) release() {
	if s == nil {
		return
	}
	s.mu.Lock()
	s.users--
	last := s.users == 0
	s.mu.Unlock()
	if last {
		_ = s.closer.Close() // an unmapping that fails leaves nothing to do
	}
}

// outgoing is one message in a queue; keep holds its file open.
type outgoing struct {
	message wire.Message
	file    *os.File
	keep    *shared
}

// outbox sends messages to one client without making anybody wait for it.
type outbox struct {
	conn *wire.Conn

	mu       sync.Mutex
	wake     *sync.Cond
	queue    []outgoing
	finished bool // nothing more will be put
	failed   error
}

func newOutbox(conn *wire.Conn) *outbox {
	o := &outbox{conn: conn}
	o.wake = sync.NewCond(&o.mu)
	return o
}

// put queues a message and reports whether there was room.
func (o *outbox) put(out outgoing) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.finished {
		return true // nobody will miss it
	}
	if len(o.queue) >= outboxMax {
		return false
	}
	if out.keep != nil {
		out.keep.retain()
	}
	o.queue = append(o.queue, out)
	o.wake.Signal()
	return true
}

// finish drops what waits, sends last if it is not nil, and ends run.
func (o *outbox) finish(last wire.Message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.finished {
		return
	}
	o.finished = true
	o.drop()
	if last != nil {
		o.queue = append(o.queue, outgoing{message: last})
	}
	_ = o.conn.SetWriteDeadline(time.Now().Add(lastWords))
	o.wake.Signal()
}

// drop must be called with the lock held.
func (o *outbox) drop() {
	for _, out := range o.queue {
		out.keep.release()
	}
	o.queue = nil
}

// run sends until finish, or until the client cannot be reached. It closes the
// connection, which ends the reader as well.
func (o *outbox) run() {
	defer func() { _ = o.conn.Close() }()
	for {
		batch, finished := o.take()
		for i, out := range batch {
			err := o.send(out)
			out.keep.release()
			if err != nil {
				o.give(batch[i+1:], err)
				return
			}
		}
		if finished {
			return
		}
	}
}

func (o *outbox) send(out outgoing) error {
	o.mu.Lock()
	if !o.finished { // else the deadline of the last words stands
		_ = o.conn.SetWriteDeadline(time.Now().Add(sendTimeout))
	}
	o.mu.Unlock()
	if out.file == nil {
		return o.conn.WriteMessage(out.message)
	}
	return o.conn.WriteMessage(out.message, out.file)
}

// take waits for messages, or for the end.
func (o *outbox) take() ([]outgoing, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.queue) == 0 && !o.finished {
		o.wake.Wait()
	}
	batch := o.queue
	o.queue = nil
	return batch, o.finished
}

// give lets go of what could not be sent because of err, now and later.
func (o *outbox) give(rest []outgoing, err error) {
	for _, out := range rest {
		out.keep.release()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.finished = true
	if !errors.Is(err, net.ErrClosed) {
		o.failed = err
	}
	o.drop()
}

// failure is why the client could not be written to; nil if it was not tried in vain.
func (o *outbox) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.failed
}
