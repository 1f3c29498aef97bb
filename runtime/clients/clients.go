// Package clients owns the attached processes: it accepts them, finds out who
// they are, gives each its verdict, tells them of each other, and forgets them
// the moment they die.
//
// Policy reaches it through three interfaces: Admission says what a client may
// have, Planner what the clients of a device mean to each other, and Learner
// what a client should know of its own kernels. Everything
// that a client sent or wrote is hostile until checked; a client that breaks
// the contract is evicted and hurts nobody else.
//
// One lock guards all state. Nothing under it waits: messages go into bounded
// queues, verdicts are stores to shared memory.
package clients

import (
	"context"
	"crypto/hmac"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heddle-project/heddle/runtime/abi"
	"github.com/heddle-project/heddle/runtime/shm"
	"github.com/heddle-project/heddle/runtime/wire"
)

// Applicant is a process that wants to attach.
type Applicant struct {
	Identity
	ID   uint64
	Name string // of the workload, as the client says
}

// Grant is what an applicant may have.
type Grant struct {
	Tenant      string
	User        string // name of the uid, for people
	MaxPriority int    // most urgent class that a hint may ask for
	Priority    int    // class without a hint
	MaxWeight   int    // largest weight that a hint may ask for
	Weight      int
	Strict      bool // sees no peers
	Objective   Objective
	Override    Override
}

// Objective is what a client accepts of those that share its devices. With neither a slowdown nor a
// latency it accepts everything.
type Objective struct {
	Set      bool          // else that of the node counts
	Slowdown float64       // 0.02 = 2 %
	Latency  time.Duration // mean time with work on the device without a pause
}

// Override is what an administrator set for one client; nil = nothing.
type Override struct {
	Priority  *int
	Weight    *int
	Objective *Objective
}

// Admission decides who may attach and with which grant. A refusal is an error
// whose text the client sees.
type Admission interface {
	Admit(ctx context.Context, a *Applicant) (Grant, error)
}

// Member is one client of a device, as the Planner sees it.
type Member struct {
	Client uint64
	PID    int // 0 = not visible
	Class  int
	Weight int
	Strict bool
	// Gang says that the client is a rank of one.
	Gang bool
	// Objective is the client's own.
	Objective Objective
	// Observed is what was read last; a planner without an interval gets none.
	Observed Observed
}

// Observed is what a client did on a device.
type Observed struct {
	Service    time.Duration // device time consumed
	Busy       time.Duration // time with work on the device, ended spans only
	Worked     time.Duration // time with work on the device and not held, up to now
	Spans      uint64        // such spans
	Backlogged bool          // has work outstanding, or waits to launch
	Waiting    time.Duration // how long its launch will take that waits for others, 0 = none does
}

// Beside says which kernels may run beside a peer: those that ask for no more.
type Beside struct {
	SMs  int
	DRAM float64 // of the device's bandwidth, 0 to 1
}

// Decision is what the Planner decided for one member.
type Decision struct {
	Client uint64
	// Verdict holds gate bits and parameters; its peer sets are filled in from
	// Yields and CoRun.
	Verdict shm.DeviceVerdict
	Yields  []uint64 // clients, most urgent first
	CoRun   []uint64
	Beside  Beside // of its kernels, beside CoRun
	// Mediated members watch no peers: the gate is opened and closed for them.
	Mediated bool
}

// GatePeer is what a peer of a mediated member published.
type GatePeer struct {
	Busy         uint32
	CoRun        bool
	IdleSinceNs  uint64
	NextLaunchNs uint64
	WantNs       uint64
}

// Planner decides what the clients of one device mean to each other.
type Planner interface {
	// Plan returns one decision for each member. now is of the common clock.
	Plan(device wire.UUID, now uint64, members []Member) []Decision
	// Interval is how often to plan anew while clients are at work, 0 = only when they come, go or
	// change.
	Interval() time.Duration
	// Open says whether a mediated member may launch now. heldSince is when
	// its gate was closed, 0 = it is open.
	Open(v *shm.DeviceVerdict, peers []GatePeer, now, heldSince uint64) bool
	// Together says of each seat whether it is closed, so that the ranks of a
	// gang run together or not at all. It is asked after every plan, about all
	// devices with gangs.
	Together(now uint64, seats []Seat) []bool
}

// Options are what a Manager is made of.
type Options struct {
	Log        *slog.Logger
	Admission  Admission
	Planner    Planner
	Learner    Learner // nil = nobody learns
	Generation uint64
	Secret     []byte                 // signs tokens
	NextID     func() (uint64, error) // a number never used before
	Clock      shm.ClockParams
	Now        func() uint64 // of the clock above
	FailMode   uint32        // abi.Fail values

	Max              int // clients, those in their handshake included
	MaxPerUser       int
	HandshakeTimeout time.Duration
}

// Manager holds the attached clients of this node.
type Manager struct {
	opt Options

	kick      chan struct{} // a device is dirty
	mediated  chan struct{} // there is somebody to mediate for
	teach     chan struct{} // there is somebody to learn from
	replanned chan struct{} // the planner decides otherwise than before
	reaper    *reaper
	workers   sync.WaitGroup

	refusing atomic.Int32 // refusals under way
	regrants atomic.Uint64
	totals   struct{ attached, refused, evicted atomic.Uint64 }

	regranting sync.Mutex // taken before mu

	mu       sync.Mutex
	draining bool
	clients  map[uint64]*client
	conns    map[*wire.Conn]struct{} // all, those in their handshake included
	perUser  map[int]int
	devices  map[wire.UUID]*device
	gangs    map[gangKey]*gang
	lastGang uint64
	dirty    []*device
	evicted  []Info // the latest, oldest first
	traces   int    // timelines that are being recorded
	timeline uint32 // number of the last one
}

// New returns a Manager that accepts nobody yet.
func New(opt Options) *Manager {
	return &Manager{
		opt:       opt,
		kick:      make(chan struct{}, 1),
		mediated:  make(chan struct{}, 1),
		teach:     make(chan struct{}, 1),
		replanned: make(chan struct{}, 1),
		clients:   map[uint64]*client{},
		conns:     map[*wire.Conn]struct{}{},
		perUser:   map[int]int{},
		devices:   map[wire.UUID]*device{},
		gangs:     map[gangKey]*gang{},
	}
}

// Run accepts clients from listener until ctx ends, then lets go of all of
// them: they run on under their last verdict and look for the next heddled. It
// closes listener.
func (m *Manager) Run(ctx context.Context, listener *net.UnixListener) error {
	reaper, err := newReaper()
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	m.reaper = reaper
	var background sync.WaitGroup
	background.Go(m.reaper.run)
	background.Go(func() { m.planLoop(ctx) })
	background.Go(func() { m.mediateLoop(ctx) })
	background.Go(func() { m.replanLoop(ctx) })
	background.Go(func() { m.learnLoop(ctx) })
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	err = m.accept(ctx, listener)
	m.drain()
	m.workers.Wait()
	err = errors.Join(err, m.reaper.close())
	background.Wait()
	m.planDirty() // for nobody: gives back what the last clients left on devices
	return err
}

func (m *Manager) accept(ctx context.Context, listener *net.UnixListener) error {
	for {
		conn, err := listener.AcceptUnix()
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return nil
			}
			if !temporary(err) {
				return fmt.Errorf("accept clients: %w", err)
			}
			// Out of descriptors or memory: others may give some back.
			m.opt.Log.Warn("accept failed", "error", err)
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(acceptPause):
			}
			continue
		}
		m.workers.Go(func() { m.serve(ctx, wire.NewConn(conn)) })
	}
}

// acceptPause is short against a person's patience and long for a processor.
const acceptPause = 50 * time.Millisecond

// drain closes every connection; their goroutines do the rest.
func (m *Manager) drain() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.draining = true
	for conn := range m.conns {
		_ = conn.Close()
	}
}

// reserve takes one of the places, before anything of the client is looked at.
func (m *Manager) reserve(conn *wire.Conn, uid int) (status uint32, text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.draining:
		return abi.StatusDraining, "heddled is stopping"
	case len(m.conns) >= m.opt.Max:
		return abi.StatusFull, fmt.Sprintf("%d clients are attached, the most that clients.max allows", m.opt.Max)
	case m.perUser[uid] >= m.opt.MaxPerUser:
		return abi.StatusFull, fmt.Sprintf("uid %d has %d clients, the most that clients.max_per_user allows", uid, m.opt.MaxPerUser)
	}
	m.conns[conn] = struct{}{}
	m.perUser[uid]++
	return abi.StatusOK, ""
}

func (m *Manager) release(conn *wire.Conn, uid int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.conns, conn)
	if m.perUser[uid]--; m.perUser[uid] <= 0 {
		delete(m.perUser, uid)
	}
}

// identify returns the id for a client: the one of its token if that is
// genuine and free, else a new one.
func (m *Manager) identify(token wire.Token, uid int) (uint64, error) {
	id, ok := m.checkToken(token, uid)
	if ok {
		m.mu.Lock()
		_, taken := m.clients[id]
		m.mu.Unlock()
		if !taken {
			return id, nil
		}
	}
	return m.opt.NextID()
}

func (m *Manager) checkToken(token wire.Token, uid int) (uint64, bool) {
	id := tokenID(token)
	want := signToken(m.opt.Secret, id, uid)
	return id, id != 0 && hmac.Equal(token[:], want[:])
}
