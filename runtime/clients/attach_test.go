package clients

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heddle-project/heddle/runtime/abi"
	"github.com/heddle-project/heddle/runtime/wire"
)

func TestAClientIsWelcomedAndListed(t *testing.T) {
	s := serve(t)
	p := attach(t, s.path, hello("train"))
	if w := p.welcome; w.Status != abi.StatusOK || w.ClientID != 1 || w.Generation != 3 || w.ABIVersion != 1 {
		t.Fatalf("%+v", w)
	}
	if h := p.verdict.Header; h.Magic != abi.MagicVerdict || h.Size != abi.SizeofVerdictSegment || h.Generation != 3 {
		t.Errorf("verdict header %+v", h)
	}
	p.open(2, gpu0)
	if p.gate(2) != 0 {
		t.Errorf("gate %#x of a client that is alone", p.gate(2))
	}
	list := s.List()
	if len(list) != 1 {
		t.Fatalf("%d clients", len(list))
	}
	c := list[0]
	if c.ID != 1 || c.Name != "train" || c.Build != "test" || c.Tenant != "t" || c.PID != os.Getpid() ||
		c.UID != os.Getuid() || c.Priority != 5 || c.Weight != 100 {
		t.Errorf("%+v", c)
	}
	if exe, err := os.Executable(); err != nil || c.Executable != exe || c.Command == "" {
		t.Errorf("executable %q, command %q", c.Executable, c.Command)
	}
	if len(c.Devices) != 1 || c.Devices[0].Slot != 2 || c.Devices[0].UUID != gpu0 {
		t.Errorf("devices %+v", c.Devices)
	}
}

func TestTheVerdictCannotBeWritten(t *testing.T) {
	p := attach(t, serve(t).path, hello(""))
	fd := int(p.files[0].Fd())
	if data, err := unix.Mmap(fd, 0, abi.SizeofVerdictSegment, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err == nil {
		_ = unix.Munmap(data)
		t.Error("mapped for writing")
	}
	if _, err := unix.Write(fd, []byte{1}); err == nil {
		t.Error("written")
	}
	if err := unix.Ftruncate(fd, 0); err == nil {
		t.Error("cut short")
	}
}

func TestALowerClassYieldsToAHigherOneAndBothAreTold(t *testing.T) {
	s := serve(t)
	low := attach(t, s.path, withPriority("low", abi.ClassLow))
	low.open(0, gpu0)
	other := attach(t, s.path, withPriority("other", abi.ClassHigh))
	other.open(0, gpu1)
	if low.gate(0) != 0 || other.gate(0) != 0 {
		t.Errorf("clients of different devices meet: %#x, %#x", low.gate(0), other.gate(0))
	}

	high := attach(t, s.path, withPriority("high", abi.ClassHigh))
	high.open(3, gpu0)
	eventually(t, "low yields", func() bool { return low.gate(0) == abi.GateYield && low.yields(0) == 1 })
	eventually(t, "high publishes", func() bool { return high.gate(3) == abi.GatePublish })
	eventually(t, "low is sent the segment of high", func() bool {
		return said(low, func(m wire.Peer) bool {
			return m.Op == abi.PeerAdd && m.Slot == 0 && m.DeviceSlot == 0 && m.PeerSlot == 3
		})
	})
	eventually(t, "low is a member of its arena", func() bool {
		return said(low, func(m wire.Arena) bool { return m.Priority == abi.ClassLow && m.Member == 0 })
	})
	eventually(t, "high sees that arena", func() bool {
		return said(high, func(m wire.Arena) bool {
			return m.Priority == abi.ClassLow && m.DeviceSlot == 3 && m.Member == abi.MemberNone
		})
	})
	high.mu.Lock()
	lookOnly := high.arenas[abi.MemberNone]
	high.mu.Unlock()
	if data, err := unix.Mmap(int(lookOnly.Fd()), 0, abi.SizeofArenaSegment, unix.PROT_WRITE, unix.MAP_SHARED); err == nil {
		_ = unix.Munmap(data)
		t.Error("high can write the arena by the descriptor that it got")
	}

	_ = high.conn.Close()
	eventually(t, "low is free again", func() bool { return low.gate(0) == 0 && low.yields(0) == 0 })
	eventually(t, "low is told that high left", func() bool {
		return said(low, func(m wire.Peer) bool { return m.Op == abi.PeerRemove && m.Slot == 0 })
	})
}

func TestHintsMoveInsideTheGrant(t *testing.T) {
	s := serve(t)
	s.policy.grants["g"] = Grant{MaxPriority: 2, Priority: 5, MaxWeight: 200, Weight: 100}
	set := 0
	s.policy.grants["set"] = Grant{MaxPriority: 5, Priority: 5, MaxWeight: 100, Weight: 100, Override: Override{Priority: &set}}
	tests := []struct {
		name             string
		hello            wire.Hello
		priority, weight int
		asked            int
	}{
		{"no hint", wire.Hello{Name: "g", PriorityHint: abi.HintNone}, 5, 100, abi.HintNone},
		{"a lower class and weight are given", wire.Hello{Name: "g", PriorityHint: 9, WeightHint: 1}, 9, 1, abi.HintNone},
		{"a class inside the grant is given", wire.Hello{Name: "g", PriorityHint: 2, WeightHint: 200}, 2, 200, abi.HintNone},
		{"a class above the grant is cut, and said", wire.Hello{Name: "g", PriorityHint: 0, WeightHint: 1 << 31}, 2, 200, 0},
		{"what was set stands above hints", wire.Hello{Name: "set", PriorityHint: 7}, 0, 100, abi.HintNone},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.hello.ABIVersion, tt.hello.ABIOldest = 1, 1
			p := attach(t, s.path, tt.hello)
			for _, c := range s.List() {
				if c.ID == p.welcome.ClientID && (c.Priority != tt.priority || c.Weight != tt.weight) {
					t.Errorf("class %d weight %d, want %d and %d", c.Priority, c.Weight, tt.priority, tt.weight)
				}
				if c.ID == p.welcome.ClientID && c.Asked != tt.asked {
					t.Errorf("asked and refused: %d, want %d", c.Asked, tt.asked)
				}
			}
		})
	}
}

func TestAClientThatChangesItsClassTradesItsArena(t *testing.T) {
	s := serve(t)
	a := attach(t, s.path, withPriority("a", 5))
	a.open(0, gpu0)
	b := attach(t, s.path, withPriority("b", 5))
	b.open(0, gpu0)
	// last is what a program was told last about the arena of a class.
	last := func(p *program, class uint32) int32 {
		p.mu.Lock()
		defer p.mu.Unlock()
		member := int32(-2)
		for _, m := range p.heard {
			if m, ok := m.(wire.Arena); ok && m.Priority == class {
				member = m.Member
			}
		}
		return member
	}
	// While a is above it looks at every arena, the one that it was a member of
	// included, and must get its place there back.
	for range 3 {
		for _, class := range []int{7, 2} {
			s.policy.mu.Lock()
			s.policy.grants["a"] = Grant{Tenant: "t", Override: Override{Priority: &class}}
			s.policy.mu.Unlock()
			s.Regrant(t.Context(), func(i *Info) bool { return i.ID == a.welcome.ClientID })
			low, high, below := a, b, uint32(7)
			if class == 2 {
				low, high, below = b, a, 5
			}
			eventually(t, "the lower is a member, the higher looks on", func() bool {
				return low.gate(0) == abi.GateYield && high.gate(0) == abi.GatePublish &&
					last(low, below) == 0 && last(high, below) == abi.MemberNone
			})
		}
	}
}

func TestATokenBringsTheIdBackAfterARestart(t *testing.T) {
	first := serve(t)
	attach(t, first.path, hello("x"))
	p := attach(t, first.path, hello("y"))
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the client sees the end", p.over)

	second := serve(t, func(o *Options) {
		o.Generation = 4
		o.NextID = func() (uint64, error) { return 1000, nil }
	})
	h := hello("y")
	h.Token = p.welcome.Token
	back := attach(t, second.path, h)
	if back.welcome.ClientID != p.welcome.ClientID || back.welcome.Generation != 4 {
		t.Errorf("%+v, was %+v", back.welcome, p.welcome)
	}
	if again := attach(t, second.path, h); again.welcome.ClientID != 1000 {
		t.Errorf("a token in use gave id %d", again.welcome.ClientID)
	}
	h.Token[15] ^= 1
	if forged := attach(t, serve(t).path, h); forged.welcome.ClientID != 1 {
		t.Errorf("a forged token gave id %d", forged.welcome.ClientID)
	}
}

func TestSamplesAreReadAndLogRecordsHandedOn(t *testing.T) {
	s := serve(t)
	p := attach(t, s.path, hello("x"))
	p.open(1, gpu0)
	p.seg.Threads[5].Launches = 41
	p.seg.Devices[1].MemoryBytes = 7
	p.seg.Log[0].Length = 2
	copy(p.seg.Log[0].Text[:], "hi")
	p.seg.Log[0].Sequence = 1
	p.seg.Process.LogHead = 1
	var sample Sample
	seen, text := 0, ""
	s.Each(&sample, func(x *Sample) {
		seen++
		if x.ID != 1 || x.Process.Launches != 41 || !x.Bound[1] || x.Bound[0] || x.Devices[1].MemoryBytes != 7 {
			t.Errorf("%+v", x)
		}
	}, func(r Record) { text = r.Text })
	if seen != 1 || text != "hi" {
		t.Errorf("%d samples, log %q", seen, text)
	}
	allocations := testing.AllocsPerRun(100, func() {
		s.Each(&sample, func(*Sample) {}, func(Record) {})
	})
	if allocations > 2 { // the closures of Each itself, whatever the number of clients
		t.Errorf("%v allocations to read a client", allocations)
	}
}

func TestTheDeathOfAProcessIsSeenByItsPidfd(t *testing.T) {
	// A child that inherits the socket keeps the connection open, so only the
	// pidfd can tell.
	r, err := newReaper()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.run()
	}()
	t.Cleanup(func() {
		if err := r.close(); err != nil {
			t.Error(err)
		}
		<-ended
	})
	cmd := exec.CommandContext(t.Context(), "sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.PidfdOpen(cmd.Process.Pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	pidfd := os.NewFile(uintptr(fd), "pidfd")
	t.Cleanup(func() { _ = pidfd.Close() })
	dead := make(chan struct{})
	if err := r.add(pidfd, func() { close(dead) }); err != nil {
		t.Fatal(err)
	}
	select {
	case <-dead:
		t.Fatal("a living process was reported dead")
	default:
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-dead:
	case <-time.After(10 * time.Second):
		t.Error("the death was not reported")
	}
	_ = cmd.Wait()
}
