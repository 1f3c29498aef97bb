package clients

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heddle-project/heddle/runtime/abi"
	"github.com/heddle-project/heddle/runtime/errdefs"
	"github.com/heddle-project/heddle/runtime/shm"
	"github.com/heddle-project/heddle/runtime/wire"
)

// client is one attached process. Its fields are set when it attaches, or
// guarded by the Manager's lock.
type client struct {
	id       uint64
	identity Identity
	hello    wire.Hello
	pidfd    *os.File // nil if the process is not visible
	out      *outbox
	segment  *shm.Client
	keep     *shared // of segment
	log      *shm.LogReader
	samples  *shm.SampleReader // used by the learning loop alone, as is the next
	kernels  *shm.KernelReader
	attached time.Time

	// Guarded by Manager.mu.
	grant     Grant
	priority  int
	weight    int
	objective Objective
	verdict   *shm.Verdict
	bindings  [abi.DevicesMax]*binding
	gang      *gang  // nil = none
	slots     slots  // peer slots in use, over all devices
	measure   uint32 // what the Learner asks for: one launch in so many
	pace      pace
	timeline  uint32 // number of the timeline for which it tells what it does, 0 = none
	traces    int    // timelines in which it is
	gone      bool

	distrusted error // why nothing of it is read any more, nil = it is
}

// resolve computes class and weight from what is granted, hinted and set. A
// hint moves inside the grant; what an administrator set stands above both.
func (c *client) resolve() {
	c.priority = c.grant.Priority
	if c.hello.PriorityHint != abi.HintNone {
		c.priority = max(int(c.hello.PriorityHint), c.grant.MaxPriority)
	}
	c.weight = c.grant.Weight
	if c.hello.WeightHint != 0 {
		c.weight = max(1, min(int(min(c.hello.WeightHint, weightMax)), c.grant.MaxWeight))
	}
	if p := c.grant.Override.Priority; p != nil {
		c.priority = *p
	}
	if w := c.grant.Override.Weight; w != nil {
		c.weight = *w
	}
	c.objective = c.grant.Objective
	if o := c.grant.Override.Objective; o != nil {
		c.objective = *o
	}
}

// weightMax is the contract's upper bound.
const weightMax = 10000

func temporary(err error) bool {
	for _, errno := range []unix.Errno{unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM, unix.ECONNABORTED} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// serve owns one connection from its accept to its end.
func (m *Manager) serve(ctx context.Context, conn *wire.Conn) {
	defer func() { _ = conn.Close() }()
	cred, pidfd, err := credentials(conn)
	if err != nil {
		m.opt.Log.Debug("connection without credentials", "error", err)
		return
	}
	if pidfd != nil {
		defer func() { _ = pidfd.Close() }()
	}
	uid := int(cred.Uid)
	if status, text := m.reserve(conn, uid); status != abi.StatusOK {
		m.refuse(conn, status, text)
		return
	}
	defer m.release(conn, uid)
	c, err := m.handshake(ctx, conn, cred, pidfd)
	if err != nil {
		m.opt.Log.Info("client refused", "pid", cred.Pid, "uid", cred.Uid, "error", err)
		m.refuse(conn, statusOf(err), err.Error())
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.out.run()
	}()
	err = m.converse(conn, c)
	m.detach(c, parting(c, err))
	if errors.Is(err, errdefs.ErrCorrupt) { // it may have been kept
		m.detach(c, parting(c, outlast(conn)))
	}
	<-done
	c.keep.release()
}

// refuse tells the client why not. It is the last thing that happens on conn.
// Under a flood of connections most are closed without a word: a refusal must
// not become a way to use up descriptors.
func (m *Manager) refuse(conn *wire.Conn, status uint32, text string) {
	m.totals.refused.Add(1)
	defer m.refusing.Add(-1)
	if m.refusing.Add(1) > refusingMax {
		return
	}
	_ = conn.SetWriteDeadline(time.Now().Add(lastWords))
	err := conn.WriteMessage(wire.Welcome{Status: status, Generation: m.opt.Generation, Text: text})
	if err != nil {
		m.opt.Log.Debug("refusal was not heard", "error", err)
		return
	}
	// Closing with unread data would reset the connection and could take the
	// answer away from the client before it has read it.
	_ = conn.CloseWrite()
	_ = conn.SetReadDeadline(time.Now().Add(refusedPatience))
	for {
		_, files, err := conn.ReadMessage()
		for _, f := range files {
			_ = f.Close()
		}
		if err != nil {
			return
		}
	}
}

// refusingMax bounds the refusals that are being told at one time.
const refusingMax = 64

// refusedPatience is how long a refused client may take to read why.
const refusedPatience = 100 * time.Millisecond

func statusOf(err error) uint32 {
	if s, ok := errors.AsType[*statusError](err); ok {
		return s.status
	}
	switch errdefs.KindOf(err) {
	case errdefs.PermissionDenied:
		return abi.StatusRefused
	case errdefs.Unsupported:
		return abi.StatusVersion
	case errdefs.Invalid, errdefs.Corrupt:
		return abi.StatusInvalid
	default:
		// Something of ours failed: the client may try again.
		return abi.StatusFull
	}
}

// statusError is an error with the status that a client is told.
type statusError struct {
	status uint32
	text   string
}

func (e *statusError) Error() string { return e.text }

// handshake reads HELLO, checks everything about the client and attaches it.
func (m *Manager) handshake(ctx context.Context, conn *wire.Conn, cred unix.Ucred, pidfd *os.File) (*client, error) {
	if err := conn.SetReadDeadline(time.Now().Add(m.opt.HandshakeTimeout)); err != nil {
		return nil, err
	}
	message, files, err := conn.ReadMessage()
	if err != nil {
		return nil, fmt.Errorf("read HELLO: %w", err)
	}
	hello, ok := message.(wire.Hello)
	if !ok {
		closeFiles(files)
		return nil, errdefs.Errorf(errdefs.Invalid, "%T before HELLO", message)
	}
	// wire has made sure that a HELLO comes with exactly one descriptor.
	seg, err := shm.OpenClient(files[0])
	if err != nil {
		closeFiles(files)
		return nil, fmt.Errorf("client segment: %w", err)
	}
	hello.Name, hello.Build = shm.Printable([]byte(hello.Name)), shm.Printable([]byte(hello.Build))
	c := &client{
		hello: hello, pidfd: pidfd, segment: seg, keep: share(seg), log: shm.NewLogReader(seg.ClientView),
		samples: shm.NewSampleReader(seg.ClientView), kernels: shm.NewKernelReader(seg.ClientView),
		out: newOutbox(conn), attached: time.Now(),
	}
	if err := m.admit(ctx, c, cred, pidfd); err != nil {
		c.keep.release()
		return nil, err
	}
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		m.detach(c, err)
		c.keep.release()
		return nil, err
	}
	return c, nil
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// admit finds out who the client is, asks for its grant and makes it one of
// the attached.
func (m *Manager) admit(ctx context.Context, c *client, cred unix.Ucred, pidfd *os.File) error {
	if c.hello.ABIVersion < abi.ABIOldest || c.hello.ABIOldest > abi.ABIVersion {
		return errdefs.Errorf(errdefs.Unsupported, "interposer speaks ABI versions %d to %d, heddled %d to %d",
			c.hello.ABIOldest, c.hello.ABIVersion, abi.ABIOldest, abi.ABIVersion)
	}
	c.identity = lookUp(cred, pidfd)
	id, err := m.identify(c.hello.Token, c.identity.UID)
	if err != nil {
		return err
	}
	c.id = id
	regrants := m.regrants.Load()
	c.grant, err = m.ask(ctx, c)
	if err != nil {
		return err
	}
	c.resolve()
	c.verdict, err = shm.NewVerdict(m.opt.Generation, m.opt.Clock, m.opt.FailMode)
	if err != nil {
		return fmt.Errorf("make verdict: %w", err)
	}
	if err := m.attach(c); err != nil {
		return errors.Join(err, c.verdict.Close())
	}
	if m.regrants.Load() != regrants {
		// Something was set after this client had its answer, and before it could be found.
		m.regrant(ctx, func(i *Info) bool { return i.ID == id })
	}
	return nil
}

// attach enters the client and queues its WELCOME.
func (m *Manager) attach(c *client) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.draining {
		return &statusError{abi.StatusDraining, "heddled is stopping"}
	}
	if _, taken := m.clients[c.id]; taken {
		// Two connections came with one token at the same moment.
		return &statusError{abi.StatusFull, "this token is in use"}
	}
	if c.pidfd != nil {
		// The end of what it said comes behind what it said: a goodbye is not missed.
		if err := m.reaper.add(c.pidfd, func() { _ = c.out.conn.CloseRead() }); err != nil {
			return err
		}
	}
	m.clients[c.id] = c
	m.joinGang(c)
	m.totals.attached.Add(1)
	c.out.put(outgoing{
		message: wire.Welcome{
			Status:     abi.StatusOK,
			ABIVersion: min(c.hello.ABIVersion, abi.ABIVersion),
			Generation: m.opt.Generation,
			ClientID:   c.id,
			Token:      signToken(m.opt.Secret, c.id, c.identity.UID),
		},
		file: c.verdict.File(),
	})
	m.opt.Log.Info("client attached", "client", c.id, "pid", c.identity.PID, "uid", c.identity.UID,
		"container", c.identity.Container, "tenant", c.grant.Tenant, "name", c.hello.Name, "gang", c.hello.Gang,
		"priority", c.priority, "executable", c.identity.Executable, "interposer", c.hello.Build)
	return nil
}

// converse reads what the client says until it leaves.
func (m *Manager) converse(conn *wire.Conn, c *client) error {
	for {
		message, files, err := conn.ReadMessage()
		if err != nil {
			return err
		}
		closeFiles(files)
		switch message := message.(type) {
		case wire.Device:
			if err := m.bind(c, message); err != nil {
				return err
			}
		case wire.Bye:
			return errSaidBye
		default:
			return errdefs.Errorf(errdefs.Corrupt, "a client does not send %T", message)
		}
	}
}

// detach forgets a client, because of err. Only the first call for a client
// does anything: its connection and its data can both give a reason.
func (m *Manager) detach(c *client, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.detachLocked(c, err)
}

func (m *Manager) detachLocked(c *client, err error) {
	if c.gone || m.distrust(c, err) {
		return
	}
	c.gone = true
	delete(m.clients, c.id)
	if c.pidfd != nil {
		m.reaper.remove(c.pidfd)
	}
	log := m.opt.Log.With("client", c.id, "pid", c.identity.PID)
	if errors.Is(err, errdefs.ErrCorrupt) || errors.Is(err, errdefs.ErrExhausted) {
		log.Warn("client evicted", "tenant", c.grant.Tenant, "error", err)
		m.remember(c, err)
		c.out.finish(wire.Evict{Text: err.Error()})
	} else {
		log.Info("client left", "reason", err)
		c.out.finish(nil)
	}
	for _, b := range c.bindings {
		if b != nil {
			m.unbind(b)
		}
	}
	m.leaveGang(c)
	if closeErr := c.verdict.Close(); closeErr != nil {
		log.Debug("close verdict", "error", closeErr)
	}
}
