package clients

import (
	"bytes"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heddle-project/heddle/runtime/abi"
	"github.com/heddle-project/heddle/runtime/wire"
)

// rank is the HELLO of one rank of a gang.
func rank(name, gang string, size uint32) wire.Hello {
	h := hello(name)
	h.Gang, h.GangSize = gang, size
	return h
}

// gates waits until the first slot of each program is closed or open as wanted.
func gates(t *testing.T, what string, closed bool, programs ...*program) {
	t.Helper()
	eventually(t, what, func() bool {
		return !slices.ContainsFunc(programs, func(p *program) bool {
			return (p.gate(0)&abi.GateClosed != 0) != closed
		})
	})
}

func TestAGangWaitsForItsRanks(t *testing.T) {
	s := serve(t)
	other := attach(t, s.path, hello("other"))
	other.open(0, gpu0)
	a := attach(t, s.path, rank("a", "job", 3))
	a.open(0, gpu0)
	b := attach(t, s.path, rank("b", "job", 3))
	b.open(0, gpu1)
	c := attach(t, s.path, rank("c", "job", 3)) // there, and without a device yet
	gates(t, "two of three ranks wait", true, a, b)
	gates(t, "the client beside them does not", false, other)
	for _, info := range s.List() {
		if info.Gang == "job" && (info.Ranks != 2 || info.GangSize != 3) {
			t.Errorf("%s is shown with %d of %d ranks", info.Name, info.Ranks, info.GangSize)
		}
	}
	c.open(0, gpu1)
	gates(t, "the gang opens", false, a, b, c, other)
	_ = b.conn.Close()
	gates(t, "the gang closes when a rank is gone", true, a, c)
	again := attach(t, s.path, rank("b", "job", 3))
	again.open(0, gpu0)
	gates(t, "the gang opens with a new rank", false, a, c, again)
	_ = a.conn.Close()
	_ = c.conn.Close()
	_ = again.conn.Close()
	eventually(t, "the gang is forgotten", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.gangs) == 0
	})
}

func TestGangsOfOneNameAreToldApart(t *testing.T) {
	s := serve(t)
	s.policy.grants["stranger"] = Grant{Tenant: "another", Priority: 5, MaxPriority: 5, Weight: 100, MaxWeight: 100}
	a := attach(t, s.path, rank("a", "job", 2))
	a.open(0, gpu0)
	for _, h := range []wire.Hello{rank("stranger", "job", 2), rank("b", "job", 3), rank("b", "job2", 2)} {
		p := attach(t, s.path, h)
		p.open(0, gpu0)
		gates(t, "neither has its ranks", true, a, p)
	}
	b := attach(t, s.path, rank("b", "job", 2))
	b.open(0, gpu0)
	gates(t, "the gang opens", false, a, b)
}

// A plan that has one rank wait closes those on other devices, where nobody planned anew.
func TestARankThatWaitsClosesItsGangEverywhere(t *testing.T) {
	s := serve(t)
	a, b := attach(t, s.path, rank("a", "job", 2)), attach(t, s.path, rank("b", "job", 2))
	a.open(0, gpu0)
	b.open(0, gpu1)
	gates(t, "the gang opens", false, a, b)
	pause := func(paused bool) {
		s.policy.mu.Lock()
		s.policy.pause = map[uint64]bool{a.welcome.ClientID: paused}
		s.policy.mu.Unlock()
		s.mu.Lock()
		s.markDirty(s.devices[gpu0])
		s.mu.Unlock()
	}
	for range 3 {
		pause(true)
		gates(t, "both ranks wait", true, a, b)
		pause(false)
		gates(t, "both ranks run", false, a, b)
	}
}

// A launch that waits for the gang is nothing that a policy could let go.
func TestARankWithoutItsGangHasNoWorkForThePlanner(t *testing.T) {
	var mu sync.Mutex
	backlogged := map[uint64]bool{}
	s := serve(t, func(o *Options) {
		o.Planner.(*policy).interval = time.Millisecond
		o.Planner.(*policy).plans = func(members []Member) {
			mu.Lock()
			defer mu.Unlock()
			for _, m := range members {
				backlogged[m.Client] = m.Observed.Backlogged
			}
		}
	})
	shows := func(p *program) func() bool {
		return func() bool {
			mu.Lock()
			defer mu.Unlock()
			return backlogged[p.welcome.ClientID]
		}
	}
	other, a := attach(t, s.path, hello("other")), attach(t, s.path, rank("a", "job", 2))
	for _, p := range []*program{other, a} {
		p.open(0, gpu0)
		atomic.StoreUint64(&p.seg.Devices[0].HeldSinceNs, 7)
	}
	eventually(t, "the other client is shown with work", shows(other))
	if shows(a)() {
		t.Error("a rank that waits for its gang is shown with work")
	}
	b := attach(t, s.path, rank("b", "job", 2))
	b.open(0, gpu1)
	eventually(t, "the rank of a complete gang is shown with work", shows(a))
}

// heddled opens and closes the gate of a strict rank for its peers; its gang stands above.
func TestAMediatedRankWaitsForItsGang(t *testing.T) {
	s := serve(t)
	s.policy.grants["strict"] = Grant{Tenant: "t", Priority: 7, MaxPriority: 7, Weight: 100, MaxWeight: 100, Strict: true}
	high := attach(t, s.path, withPriority("high", 2))
	high.open(0, gpu0)
	a := attach(t, s.path, rank("strict", "job", 2))
	a.open(0, gpu0)
	b := attach(t, s.path, rank("b", "job", 2))
	gates(t, "the rank waits", true, a)
	b.open(0, gpu1)
	gates(t, "the gang opens", false, a, b)
	_ = b.conn.Close()
	gates(t, "the rank waits again", true, a)
}

// lines keeps what was logged.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) have(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Contains(l.text.Bytes(), []byte(text))
}

func TestTheLogTellsOfGangs(t *testing.T) {
	var log lines
	s := serve(t, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	a, b := attach(t, s.path, rank("a", "job", 2)), attach(t, s.path, rank("b", "job", 2))
	a.open(0, gpu0)
	s.mu.Lock()
	for _, g := range s.gangs {
		g.overdue.Reset(time.Nanosecond) // as if it had waited for long
	}
	s.mu.Unlock()
	for _, step := range []struct {
		do   func()
		text string
	}{
		{func() {}, `msg="gang still waits for its ranks" gang=job tenant=t ranks=1 size=2`},
		{func() { b.open(0, gpu0) }, `msg="gang complete" gang=job tenant=t ranks=2 size=2`},
		{func() { _ = a.conn.Close() }, `msg="gang has lost a rank, the others wait" gang=job tenant=t ranks=1 size=2`},
	} {
		step.do()
		eventually(t, step.text, func() bool { return log.have(step.text) })
	}
}
