package clients

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/heddle-project/heddle/runtime/abi"
	"github.com/heddle-project/heddle/runtime/errdefs"
	"github.com/heddle-project/heddle/runtime/shm"
	"github.com/heddle-project/heddle/runtime/wire"
)

// Mapped memory is unknown to the race detector, so these tests see races in
// heddled's own state only; package shm tests its views over Go memory.

// policy is Admission and Planner of the tests: every client gets what its
// name says, and lower classes yield to higher ones.
type policy struct {
	mu     sync.Mutex
	grants map[string]Grant // by name; others get class 5
	refuse map[string]bool

	interval time.Duration
	plans    func(members []Member) // told of every plan; nil = nobody is
	pause    map[uint64]bool        // by client id: gates to close
	corun    bool                   // everybody may run beside those to whom it yields
}

func (p *policy) Admit(_ context.Context, a *Applicant) (Grant, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuse[a.Name] {
		return Grant{}, errdefs.Errorf(errdefs.PermissionDenied, "not you")
	}
	if g, ok := p.grants[a.Name]; ok {
		return g, nil
	}
	return Grant{Tenant: "t", MaxPriority: 0, Priority: 5, MaxWeight: 100, Weight: 100}, nil
}

func (p *policy) Plan(_ wire.UUID, _ uint64, members []Member) []Decision {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.plans != nil {
		p.plans(members)
	}
	decisions := make([]Decision, 0, len(members))
	for _, m := range members {
		d := Decision{Client: m.Client, Verdict: shm.DeviceVerdict{
			Priority: uint32(m.Class), Weight: uint32(m.Weight), Window: time.Millisecond, // small
		}}
		for _, h := range members {
			if h.Class < m.Class {
				d.Yields = append(d.Yields, h.Client)
			}
			if h.Class > m.Class {
				d.Verdict.Gate |= abi.GatePublish
			}
		}
		if len(d.Yields) > 0 {
			d.Mediated = m.Strict
			if !m.Strict {
				d.Verdict.Gate |= abi.GateYield
			}
		}
		if p.corun {
			d.CoRun = d.Yields
		}
		if p.pause[m.Client] {
			d.Verdict.Gate |= abi.GateClosed
		}
		decisions = append(decisions, d)
	}
	return decisions
}

func (p *policy) Interval() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.interval
}

// Together closes a gang that is not complete, or has a rank that waits.
func (p *policy) Together(_ uint64, seats []Seat) []bool {
	open := map[uint64]bool{}
	for _, s := range seats {
		was, seen := open[s.Gang]
		open[s.Gang] = (was || !seen) && s.Complete && !s.Closed
	}
	closed := make([]bool, len(seats))
	for i, s := range seats {
		closed[i] = s.Closed || s.Gang != 0 && !open[s.Gang]
	}
	return closed
}

func (p *policy) Open(_ *shm.DeviceVerdict, peers []GatePeer, _, _ uint64) bool {
	for _, h := range peers {
		if h.Busy != 0 {
			return false
		}
	}
	return true
}

// server is a Manager that serves for one test.
type server struct {
	*Manager
	path   string
	policy *policy
	stop   func() error
}

var secret = []byte("0123456789abcdef0123456789abcdef")

func serve(t *testing.T, change ...func(*Options)) *server {
	t.Helper()
	p := &policy{grants: map[string]Grant{}, refuse: map[string]bool{}}
	var last atomic.Uint64
	opt := Options{
		Log: slog.New(slog.DiscardHandler), Admission: p, Planner: p, Generation: 3, Secret: secret,
		NextID: func() (uint64, error) { return last.Add(1), nil },
		Now:    func() uint64 { return uint64(time.Now().UnixNano()) }, // after 1970
		Max:    600, MaxPerUser: 600, HandshakeTimeout: 5 * time.Second,
	}
	for _, f := range change {
		f(&opt)
	}
	path := filepath.Join(shortDir(t), "attach.sock")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	m := New(opt)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx, listener) }()
	s := &server{Manager: m, path: path, policy: p}
	s.stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// shortDir is a folder whose name leaves room for a socket: a unix socket's path
// has 107 bytes, and t.TempDir spends many of them on the name of the test.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "heddle")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// eventually waits for a condition that another goroutine or process makes
// true; the limit is for a test that fails.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
		time.Sleep(200 * time.Microsecond)
	}
}

// program is a client of the attach protocol, as the interposer is one.
type program struct {
	t       *testing.T
	conn    *wire.Conn
	seg     *abi.ClientSegment
	welcome wire.Welcome
	verdict *abi.VerdictSegment

	mu     sync.Mutex
	heard  []wire.Message
	ended  error
	files  []*os.File
	arenas map[int32]*os.File
}

// memfd makes a file of size bytes, lets fill write it, and seals it.
func memfd(t *testing.T, size int, seals int, fill func(*abi.ClientSegment)) (*os.File, *abi.ClientSegment) {
	t.Helper()
	fd, err := unix.MemfdCreate("test-client", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "test-client")
	t.Cleanup(func() { _ = f.Close() })
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		t.Fatal(err)
	}
	var seg *abi.ClientSegment
	if size >= abi.SizeofClientSegment {
		data, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Munmap(data) })
		seg = (*abi.ClientSegment)(unsafe.Pointer(unsafe.SliceData(data)))
		fill(seg)
	}
	if seals != 0 {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
			t.Fatal(err)
		}
	}
	return f, seg
}

const goodSeals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_FUTURE_WRITE | unix.F_SEAL_SEAL

func goodHeader(s *abi.ClientSegment) {
	s.Header.Magic = abi.MagicClient
	s.Header.ABIVersion = abi.ABIVersion
	s.Header.Size = abi.SizeofClientSegment
}

func hello(name string) wire.Hello {
	return wire.Hello{ABIVersion: 1, ABIOldest: 1, PriorityHint: abi.HintNone, Name: name, Build: "test"}
}

func dial(t *testing.T, path string) *wire.Conn {
	t.Helper()
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return wire.NewConn(conn)
}

// attach connects a program and waits for its WELCOME, whatever it says.
func attach(t *testing.T, path string, h wire.Hello) *program {
	t.Helper()
	p := &program{t: t, conn: dial(t, path), arenas: map[int32]*os.File{}}
	f, seg := memfd(t, abi.SizeofClientSegment, goodSeals, goodHeader)
	p.seg = seg
	if err := p.conn.WriteMessage(h, f); err != nil {
		t.Fatal(err)
	}
	message, files, err := p.conn.ReadMessage()
	if err != nil {
		t.Fatal(err)
	}
	var ok bool
	if p.welcome, ok = message.(wire.Welcome); !ok {
		t.Fatalf("%T instead of WELCOME", message)
	}
	if p.welcome.Status != abi.StatusOK {
		return p
	}
	data, err := unix.Mmap(int(files[0].Fd()), 0, abi.SizeofVerdictSegment, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	p.verdict = (*abi.VerdictSegment)(unsafe.Pointer(unsafe.SliceData(data)))
	p.files = files
	listened := make(chan struct{})
	go func() {
		defer close(listened)
		p.listen()
	}()
	t.Cleanup(func() {
		_ = p.conn.Close()
		<-listened
		closeFiles(p.files)
		_ = unix.Munmap(data)
	})
	return p
}

// listen keeps what heddled says.
func (p *program) listen() {
	for {
		message, files, err := p.conn.ReadMessage()
		p.mu.Lock()
		if err != nil {
			p.ended = err
			p.mu.Unlock()
			return
		}
		p.heard = append(p.heard, message)
		p.files = append(p.files, files...)
		if a, ok := message.(wire.Arena); ok {
			p.arenas[a.Member] = files[0]
		}
		p.mu.Unlock()
	}
}

// said reports whether heddled has said something for which ok holds.
func said[M wire.Message](p *program, ok func(M) bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.heard {
		if m, is := m.(M); is && ok(m) {
			return true
		}
	}
	return false
}

// over reports whether the connection has ended.
func (p *program) over() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Is(p.ended, io.EOF) || errors.Is(p.ended, unix.ECONNRESET)
}

// open tells heddled of a device and waits until the slot is bound.
func (p *program) open(slot int, uuid wire.UUID) {
	p.t.Helper()
	p.seg.Devices[slot].UUID = uuid
	if err := p.conn.WriteMessage(wire.Device{Slot: uint32(slot), UUID: uuid}); err != nil { // small
		p.t.Fatal(err)
	}
	eventually(p.t, "the slot is bound", func() bool {
		return atomic.LoadUint32(&p.verdict.Devices[slot].Generation) != 0
	})
}

// gate is the gate word of a slot.
func (p *program) gate(slot int) uint32 { return atomic.LoadUint32(&p.verdict.Devices[slot].Gate) }

// yields is how many peers the slot yields to.
func (p *program) yields(slot int) int {
	n := 0
	for bit := range abi.PeersMax {
		if atomic.LoadUint64(&p.verdict.Devices[slot].Yields[bit/64])&(1<<(bit%64)) != 0 {
			n++
		}
	}
	return n
}

var (
	gpu0 = wire.UUID{1}
	gpu1 = wire.UUID{2}
)

func withPriority(name string, priority int32) wire.Hello {
	h := hello(name)
	h.PriorityHint = priority
	return h
}
