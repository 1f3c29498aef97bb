package clients

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heddle-project/heddle/runtime/abi"
	"github.com/heddle-project/heddle/runtime/wire"
)

func TestAHostileHelloIsRefusedWithItsReason(t *testing.T) {
	full := abi.SizeofClientSegment
	tests := []struct {
		name   string
		hello  wire.Hello
		size   int
		seals  int
		fill   func(*abi.ClientSegment)
		status uint32
		says   string
	}{
		{"no common ABI version", wire.Hello{ABIVersion: 9, ABIOldest: 8}, full, goodSeals, goodHeader, abi.StatusVersion, "ABI versions 8 to 9"},
		{"no seals", hello(""), full, 0, goodHeader, abi.StatusInvalid, "seals"},
		{"a segment that can shrink", hello(""), full, goodSeals &^ unix.F_SEAL_SHRINK, goodHeader, abi.StatusInvalid, "seals"},
		{"a segment that others can write", hello(""), full, goodSeals &^ unix.F_SEAL_FUTURE_WRITE, goodHeader, abi.StatusInvalid, "seals"},
		{"an empty segment", hello(""), 0, goodSeals, goodHeader, abi.StatusInvalid, "segment"},
		{"a short segment", hello(""), 4096, goodSeals, goodHeader, abi.StatusInvalid, "4096 bytes"},
		{"a huge segment", hello(""), 1 << 30, goodSeals, goodHeader, abi.StatusInvalid, "bytes"},
		{"a wrong magic", hello(""), full, goodSeals, func(s *abi.ClientSegment) {
			goodHeader(s)
			s.Header.Magic++
		}, abi.StatusInvalid, "magic"},
		{"a size that is a lie", hello(""), full, goodSeals, func(s *abi.ClientSegment) {
			goodHeader(s)
			s.Header.Size = 1 << 40
		}, abi.StatusInvalid, "bytes"},
	}
	s := serve(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.hello.PriorityHint == 0 {
				tt.hello.PriorityHint = abi.HintNone
			}
			conn := dial(t, s.path)
			f, _ := memfd(t, tt.size, tt.seals, tt.fill)
			if err := conn.WriteMessage(tt.hello, f); err != nil {
				t.Fatal(err)
			}
			message, _, err := conn.ReadMessage()
			if err != nil {
				t.Fatal(err)
			}
			w, ok := message.(wire.Welcome)
			if !ok || w.Status != tt.status || !strings.Contains(w.Text, tt.says) {
				t.Errorf("%+v, want status %d and %q", message, tt.status, tt.says)
			}
		})
	}
	if n := s.Count(); n != 0 {
		t.Errorf("%d clients attached", n)
	}
	if p := attach(t, s.path, hello("honest")); p.welcome.Status != abi.StatusOK {
		t.Errorf("an honest client afterwards: %+v", p.welcome)
	}
}

func TestNoiseOnTheSocketHurtsNobody(t *testing.T) {
	s := serve(t, func(o *Options) { o.HandshakeTimeout = 50 * time.Millisecond })
	honest := attach(t, s.path, hello("honest"))
	raw := wire.Encode(nil, hello("x"))
	pipeRead, pipeWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = pipeRead.Close(), pipeWrite.Close() })
	bomb := make([]int, 200)
	for i := range bomb {
		bomb[i] = int(pipeWrite.Fd())
	}
	before := openDescriptors(t)
	for name, send := range map[string]func(*net.UnixConn) error{
		"silence":      func(*net.UnixConn) error { return nil },
		"half a HELLO": func(c *net.UnixConn) error { _, err := c.Write(raw[:50]); return err },
		"HTTP": func(c *net.UnixConn) error {
			_, err := c.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
			return err
		},
		"a huge size": func(c *net.UnixConn) error {
			big := append([]byte(nil), raw...)
			big[8], big[9], big[10] = 0xff, 0xff, 0xff
			_, err := c.Write(big)
			return err
		},
		"a HELLO without a segment": func(c *net.UnixConn) error { _, err := c.Write(raw); return err },
		"200 descriptors": func(c *net.UnixConn) error {
			_, _, err := c.WriteMsgUnix(raw, unix.UnixRights(bomb...), nil)
			return err
		},
		"a DEVICE first": func(c *net.UnixConn) error {
			_, err := c.Write(wire.Encode(nil, wire.Device{UUID: gpu0}))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			conn := dial(t, s.path)
			if err := send(conn.UnixConn); err != nil {
				t.Fatal(err)
			}
			// Either it is told why, or the connection just ends.
			for {
				message, _, err := conn.ReadMessage()
				if err != nil {
					break
				}
				if w, ok := message.(wire.Welcome); !ok || w.Status == abi.StatusOK {
					t.Errorf("%+v", message)
				}
			}
			_ = conn.Close()
		})
	}
	eventually(t, "every descriptor is closed", func() bool { return openDescriptors(t) <= before })
	if honest.open(0, gpu0); honest.over() {
		t.Error("the honest client was disconnected")
	}
}

func openDescriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestAClientThatBreaksTheContractIsEvictedAlone(t *testing.T) {
	tests := []struct {
		name string
		sin  func(*program)
		says string
	}{
		{"an impossible number of streams", func(p *program) {
			atomic.StoreUint32(&p.seg.Devices[0].BusyStreams, 1<<31)
		}, "busy streams"},
		{"a header that changes", func(p *program) {
			atomic.StoreUint32(&p.seg.Header.Magic, 7)
		}, "magic"},
		{"more memory than there is", func(p *program) {
			atomic.StoreUint64(&p.seg.Devices[0].MemoryBytes, 1<<63)
		}, "memory"},
		{"a slot that is opened twice", func(p *program) {
			_ = p.conn.WriteMessage(wire.Device{Slot: 0, UUID: gpu1})
		}, "opened before"},
		{"a message of the wrong direction", func(p *program) {
			_ = p.conn.WriteMessage(wire.Evict{Text: "you"})
		}, "does not send"},
		{"noise after the handshake", func(p *program) {
			_, _ = p.conn.Write([]byte(strings.Repeat("x", 64)))
		}, "magic"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t)
			low := attach(t, s.path, withPriority("low", 7))
			low.open(0, gpu0)
			bad := attach(t, s.path, withPriority("bad", 2))
			bad.open(0, gpu0)
			eventually(t, "low yields", func() bool { return low.gate(0) == abi.GateYield })
			tt.sin(bad)
			var sample Sample
			eventually(t, "the client is evicted and the list says why", func() bool {
				s.Each(&sample, func(*Sample) {}, func(Record) {})
				return strings.Contains(s.evicted("bad"), tt.says)
			})
			eventually(t, "low is free", func() bool { return low.gate(0) == 0 })
			if list := s.List(); len(list) != 2 || s.evicted("low") != "" || low.over() {
				t.Errorf("low was evicted as well: %+v", list)
			}
		})
	}
}

// What an evicted program launches, it still launches: its betters must go on telling it that they
// are busy, and it must go on learning of new ones.
func TestAnEvictedClientYieldsAsBefore(t *testing.T) {
	s := serve(t)
	high := attach(t, s.path, withPriority("high", 2))
	high.open(0, gpu0)
	bad := attach(t, s.path, withPriority("bad", 7))
	bad.open(0, gpu0)
	idle := attach(t, s.path, withPriority("idle", 9))
	idle.open(0, gpu0)
	eventually(t, "bad yields to high, and idle to both", func() bool { return bad.yields(0) == 1 && idle.yields(0) == 2 })
	atomic.StoreUint32(&bad.seg.Header.Magic, 7)
	var sample Sample
	eventually(t, "bad is evicted", func() bool {
		s.Each(&sample, func(*Sample) {}, func(Record) {})
		return s.evicted("bad") != ""
	})
	eventually(t, "idle yields to high alone", func() bool { return idle.yields(0) == 1 })
	next := attach(t, s.path, withPriority("next", 0))
	next.open(0, gpu0)
	eventually(t, "bad yields to the next, too", func() bool { return bad.yields(0) == 2 })
	_ = idle.conn.Close()
	eventually(t, "idle is gone", func() bool { return s.Count() == 3 })
	eventually(t, "high and next are watched by bad alone", func() bool {
		return high.gate(0)&abi.GatePublish != 0 && next.gate(0)&abi.GatePublish != 0
	})
	_ = bad.conn.Close()
	eventually(t, "bad is gone, and nobody is watched", func() bool { return s.Count() == 2 && high.gate(0)&abi.GatePublish == 0 })
	if s.evicted("bad") == "" {
		t.Error("it is not listed any more")
	}
}

// evicted is why the client of that name was evicted, empty if it was not.
func (s *server) evicted(name string) string {
	for _, info := range s.List() {
		if info.Name == name && info.Evicted != "" {
			return info.Evicted
		}
	}
	return ""
}

func TestALogThatGoesBackEvicts(t *testing.T) {
	s := serve(t)
	p := attach(t, s.path, hello("x"))
	var sample Sample
	each := func() { s.Each(&sample, func(*Sample) {}, func(Record) {}) }
	atomic.StoreUint64(&p.seg.Process.LogHead, 200)
	each()
	atomic.StoreUint64(&p.seg.Process.LogHead, 3)
	eventually(t, "the client is evicted", func() bool {
		each()
		return strings.Contains(s.evicted("x"), "log")
	})
}

func TestLimitsHoldPerUserAndForAll(t *testing.T) {
	for name, limit := range map[string]func(*Options){
		"for all":  func(o *Options) { o.Max = 2 },
		"per user": func(o *Options) { o.MaxPerUser = 2 },
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, limit)
			first := attach(t, s.path, hello(""))
			attach(t, s.path, hello(""))
			p := attach(t, s.path, hello(""))
			if p.welcome.Status != abi.StatusFull || !strings.Contains(p.welcome.Text, "2 clients") {
				t.Errorf("%+v", p.welcome)
			}
			_ = first.conn.Close()
			eventually(t, "the place is free again", func() bool {
				return attach(t, s.path, hello("")).welcome.Status == abi.StatusOK
			})
		})
	}
}

func TestAClientThatDoesNotReadDelaysNobody(t *testing.T) {
	s := serve(t)
	// It attaches, opens a device and then never reads again.
	deaf := dial(t, s.path)
	f, _ := memfd(t, abi.SizeofClientSegment, goodSeals, goodHeader)
	if err := deaf.WriteMessage(withPriority("deaf", 9), f); err != nil {
		t.Fatal(err)
	}
	if err := deaf.WriteMessage(wire.Device{Slot: 0, UUID: gpu0}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it has its device", func() bool {
		list := s.List()
		return len(list) == 1 && len(list[0].Devices) == 1
	})
	// Higher clients that come and go fill its queue.
	eventually(t, "it is evicted", func() bool {
		h := attach(t, s.path, withPriority("high", 2))
		h.open(0, gpu0)
		_ = h.conn.Close()
		for _, c := range s.List() {
			if c.Name == "deaf" && strings.Contains(c.Evicted, "does not read") {
				return true
			}
		}
		return false
	})
}

func TestManyAttachAtOnceAndAllFindEachOther(t *testing.T) {
	s := serve(t)
	const each = 50
	var wg sync.WaitGroup
	programs := make([]*program, 2*each)
	for i := range programs {
		wg.Go(func() {
			priority := int32(2)
			if i%2 == 1 {
				priority = 7
			}
			programs[i] = attach(t, s.path, withPriority(fmt.Sprint(i), priority))
			programs[i].open(0, gpu0)
		})
	}
	wg.Wait()
	for i, p := range programs {
		eventually(t, "everybody has the final verdict", func() bool {
			if i%2 == 1 {
				return p.gate(0) == abi.GateYield && p.yields(0) == each
			}
			return p.gate(0) == abi.GatePublish && p.yields(0) == 0
		})
	}
	for i := 0; i < len(programs); i += 2 {
		_ = programs[i].conn.Close()
	}
	for i := 1; i < len(programs); i += 2 {
		eventually(t, "the low ones are free", func() bool { return programs[i].gate(0) == 0 })
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	for i := 1; i < len(programs); i += 2 {
		eventually(t, "the connection ends with heddled", programs[i].over)
	}
}

func TestMoreHigherClientsThanSlotsAreWatchedByHeddled(t *testing.T) {
	s := serve(t)
	low := attach(t, s.path, withPriority("low", 7))
	low.open(0, gpu0)
	high := make([]*program, abi.PeersMax+1)
	for i := range high {
		high[i] = attach(t, s.path, withPriority("high", 2))
		high[i].open(0, gpu0)
	}
	eventually(t, "the gate is heddled's", func() bool {
		list := s.List()
		return list[0].Devices[0].Mediated && low.gate(0)&abi.GateYield == 0
	})
	atomic.StoreUint32(&high[abi.PeersMax].seg.Devices[0].BusyStreams, 1)
	eventually(t, "the gate closes", func() bool { return low.gate(0)&abi.GateClosed != 0 })
	atomic.StoreUint32(&high[abi.PeersMax].seg.Devices[0].BusyStreams, 0)
	eventually(t, "the gate opens", func() bool { return low.gate(0)&abi.GateClosed == 0 })
}

func TestAStrictClientSeesNobodyAndIsHeldByHeddled(t *testing.T) {
	s := serve(t)
	s.policy.grants["strict"] = Grant{MaxPriority: 7, Priority: 7, MaxWeight: 1, Weight: 1, Strict: true}
	strict := attach(t, s.path, hello("strict"))
	strict.open(0, gpu0)
	high := attach(t, s.path, withPriority("high", 2))
	atomic.StoreUint32(&high.seg.Devices[0].BusyStreams, 1)
	high.open(0, gpu0)
	eventually(t, "the gate closes", func() bool { return strict.gate(0) == abi.GateClosed })
	eventually(t, "high is watched", func() bool { return high.gate(0) == abi.GatePublish })
	atomic.StoreUint32(&high.seg.Devices[0].BusyStreams, 0)
	eventually(t, "the gate opens", func() bool { return strict.gate(0) == 0 })
	atomic.StoreUint32(&high.seg.Devices[0].BusyStreams, 1)
	eventually(t, "the gate closes again", func() bool { return strict.gate(0) == abi.GateClosed })
	_ = high.conn.Close()
	eventually(t, "the gate opens when high is gone", func() bool { return strict.gate(0) == 0 })
	strict.mu.Lock()
	defer strict.mu.Unlock()
	if len(strict.heard) != 0 {
		t.Errorf("a strict client was told %+v", strict.heard)
	}
}

func TestDrainingIsToldToLateComers(t *testing.T) {
	m := New(Options{Max: 1, MaxPerUser: 1})
	m.drain()
	if status, _ := m.reserve(nil, 0); status != abi.StatusDraining {
		t.Errorf("status %d", status)
	}
	if err := m.attach(&client{}); statusOf(err) != abi.StatusDraining {
		t.Errorf("%v", err)
	}
}

func TestStatusOfAnErrorThatIsOursInvitesToTryAgain(t *testing.T) {
	if got := statusOf(errors.New("disk full")); got != abi.StatusFull {
		t.Errorf("status %d", got)
	}
}

func TestANameCannotPaintOnATerminal(t *testing.T) {
	s := serve(t)
	p := attach(t, s.path, hello("a\x1b[31mb\nc"))
	if p.welcome.Status != abi.StatusOK {
		return // refusing it is as good
	}
	if name := s.List()[0].Name; strings.ContainsAny(name, "\x1b\n") {
		t.Errorf("name %q", name)
	}
}
