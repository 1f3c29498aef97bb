package daemon

import (
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/heddle-project/heddle/runtime/abi"
	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
	"github.com/heddle-project/heddle/runtime/clients"
	"github.com/heddle-project/heddle/runtime/config"
	"github.com/heddle-project/heddle/runtime/errdefs"
	"github.com/heddle-project/heddle/runtime/gpu"
	"github.com/heddle-project/heddle/runtime/gpu/gputest"
	"github.com/heddle-project/heddle/runtime/sched"
	"github.com/heddle-project/heddle/runtime/store"
	"github.com/heddle-project/heddle/runtime/wire"
)

const ms = time.Millisecond

func request(pid int, period, budget time.Duration) *heddlev1.ReserveRequest {
	return &heddlev1.ReserveRequest{Pid: uint32(pid), Period: durationpb.New(period), Budget: durationpb.New(budget)} // a pid
}

func TestAReservationPutsItsProcessFirstUntilItEnds(t *testing.T) {
	l := load(t, shortDir(t), "[[rule]]\npriority = \"low\"\n")
	r := start(t, options(l))
	attach(t, l, wire.Hello{PriorityHint: abi.HintNone})
	class := func() uint32 {
		list, err := r.Clients(t.Context(), nil)
		if err != nil || len(list) != 1 {
			t.Fatalf("%v, %v", list, err)
		}
		return list[0].GetPriority()
	}
	made, err := r.Reserve(t.Context(), request(os.Getpid(), 20*ms, 2*ms))
	if err != nil || made.GetDeadline().AsDuration() != 20*ms || made.GetResponse().AsDuration() != 2*ms {
		t.Fatalf("%v, %v", made, err)
	}
	if class() != abi.ClassRealtime {
		t.Errorf("it is in class %d", class())
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	r = start(t, options(l))
	list, err := r.Reservations(t.Context())
	if err != nil || len(list) != 1 || list[0].GetPid() != made.GetPid() || list[0].GetAtRisk() != "" {
		t.Errorf("after a restart: %v, %v", list, err)
	}
	if _, err := r.Reserve(t.Context(), &heddlev1.ReserveRequest{Pid: made.GetPid(), Release: true}); err != nil {
		t.Fatal(err)
	}
	attach(t, l, wire.Hello{PriorityHint: abi.HintNone})
	if class() != abi.ClassLow {
		t.Errorf("after the release it is in class %d", class())
	}
	for _, bad := range []struct {
		req  *heddlev1.ReserveRequest
		want error
	}{
		{&heddlev1.ReserveRequest{Pid: made.GetPid(), Release: true}, errdefs.ErrNotFound},
		{request(0, 20*ms, ms), errdefs.ErrInvalid},
		{request(pidMax, 20*ms, ms), errdefs.ErrNotFound}, // no process can have it
		{request(os.Getpid(), 20*ms, 30*ms), errdefs.ErrInvalid},
		{&heddlev1.ReserveRequest{Pid: made.GetPid(), Device: "GPU-1"}, errdefs.ErrInvalid},
	} {
		if _, err := r.Reserve(t.Context(), bad.req); !errors.Is(err, bad.want) {
			t.Errorf("%v: %v, want %v", bad.req, err, bad.want)
		}
	}
}

// promises are reservations without a daemon; what is in the way is what the test says.
func promises(t *testing.T, s *store.Store, way *blocking) *reservations {
	t.Helper()
	r, err := newReservations(s, slog.New(slog.DiscardHandler), func(gpu.UUID, time.Duration, func(int) bool) blocking { return *way })
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func openStore(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// sleeper is a process that does nothing until the test ends it.
func sleeper(t *testing.T) (pid int, end func()) {
	t.Helper()
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	}
	t.Cleanup(end)
	return cmd.Process.Pid, end
}

func TestPromisesAreMadeOnlyIfAllCanBeKept(t *testing.T) {
	s := openStore(t)
	var way blocking
	r := promises(t, s, &way)
	device, other := gputest.H100(0).UUID.GPUString(), gputest.H100(1).UUID.GPUString()
	want := func(pid int, device string, budget time.Duration) store.Reservation {
		return store.Reservation{PID: pid, Device: device, Period: 10 * ms, Deadline: 10 * ms, Budget: budget}
	}
	a, endA := sleeper(t)
	b, _ := sleeper(t)
	if made, err := r.reserve(want(a, device, 6*ms)); err != nil || made.Response != 6*ms {
		t.Fatalf("%+v, %v", made, err)
	}
	if _, err := r.reserve(want(b, device, 5*ms)); !errors.Is(err, errdefs.ErrExhausted) || !strings.Contains(err.Error(), "11ms") {
		t.Errorf("11 of 10 ms: %v", err)
	}
	if r.of(b) || !r.of(a) {
		t.Error("who was refused has a promise, or who was not has none")
	}
	if _, err := r.reserve(want(b, other, 5*ms)); err != nil {
		t.Errorf("on another device: %v", err)
	}
	if made, err := r.reserve(want(b, device, 4*ms)); err != nil || made.Response != 10*ms {
		t.Errorf("in place of that: %+v, %v", made, err)
	}
	way.Time = 1
	r.sweep()
	for _, k := range r.list() {
		if k.AtRisk == "" {
			t.Errorf("%+v is not at risk, though something is in the way", k)
		}
	}
	endA()
	r.sweep()
	if list := r.list(); len(list) != 1 || list[0].PID != b || list[0].AtRisk != "" {
		t.Errorf("after one process ended: %+v", list)
	}
	if kept, err := s.Reservations(); len(kept) != 1 || err != nil {
		t.Errorf("on disk: %+v, %v", kept, err)
	}
	way = blocking{Unbounded: "nobody waits"}
	if _, err := r.reserve(want(b, device, ms)); err == nil || err.Error() != "nobody waits" {
		t.Errorf("%v", err)
	}
}

func TestAPromiseIsNotThatOfAnotherProcessOfTheNumber(t *testing.T) {
	s := openStore(t)
	err := s.KeepReservation(store.Reservation{PID: os.Getpid(), Started: "long ago", Device: gputest.H100(0).UUID.GPUString(), Period: ms, Budget: 1, Deadline: ms})
	if err != nil {
		t.Fatal(err)
	}
	if r := promises(t, s, &blocking{}); r.of(os.Getpid()) {
		t.Error("this process was given another's")
	}
	if kept, _ := s.Reservations(); len(kept) != 0 {
		t.Errorf("still on disk: %+v", kept)
	}
}

func TestTheShortestBoundOfADeviceHoldsLowerClasses(t *testing.T) {
	cfg := config.Default(config.System{})
	r := promises(t, openStore(t), &blocking{})
	device := gputest.H100(0).UUID
	p := testPlanner(&cfg, &inventory{})
	p.maxBlock = r.maxBlock
	members := []clients.Member{{Client: 1, Class: 0, Weight: 1}, {Client: 2, Class: 7, Weight: 1}}
	bound := func() time.Duration {
		for _, d := range p.Plan(wire.UUID(device), 0, members) {
			if d.Client == 2 {
				return d.Verdict.MaxBlock
			} else if d.Verdict.MaxBlock != 0 {
				t.Errorf("the real-time client itself is bounded: %v", d.Verdict.MaxBlock)
			}
		}
		return -1
	}
	if bound() != 0 {
		t.Error("bounded before there is a promise")
	}
	for i, block := range []time.Duration{3 * ms, 2 * ms, 0} {
		pid, _ := sleeper(t)
		_, err := r.reserve(store.Reservation{
			PID: pid, Device: device.GPUString(), Period: 100 * ms, Budget: ms, Deadline: 50 * ms, MaxBlock: block,
		})
		if want := []time.Duration{3 * ms, 2 * ms, 2 * ms}[i]; err != nil || bound() != want {
			t.Errorf("bounded by %v, want %v; %v", bound(), want, err)
		}
	}
}

func TestWhatCanBeInTheWay(t *testing.T) {
	cfg := config.Default(config.System{})
	inv := &inventory{}
	p := testPlanner(&cfg, inv)
	uuid := gputest.H100(0).UUID
	p.Plan(wire.UUID(uuid), 0, []clients.Member{
		{Client: 1, PID: 1, Class: 0, Weight: 1}, {Client: 2, PID: 2, Class: 7, Weight: 1}, {Client: 3, PID: 3, Class: 9, Weight: 1},
	})
	all := func(int) bool { return true }
	window := p.settings.Classes[7].Window + p.settings.Classes[9].Window
	if b := p.blockingOn(uuid, 0, all); b.Time != window || b.Unbounded != "" {
		t.Errorf("%+v, want the windows of two clients, %v", b, window)
	}
	if b := p.blockingOn(uuid, 0, func(int) bool { return false }); !strings.Contains(b.Unbounded, "client 1 is in class realtime") {
		t.Errorf("%+v", b)
	}
	p.settings.Classes[7].Estimate = 5 * ms // of kernels that nobody measured
	if b := p.blockingOn(uuid, 0, all); b.Time != 5*ms+p.settings.Classes[9].Window {
		t.Errorf("%+v", b)
	}
	if b := p.blockingOn(uuid, ms, all); b.Time != ms+p.settings.Classes[9].Window {
		t.Errorf("with a bound: %+v", b)
	}
	p.policies.change((sched.None{}).Name(), []string{inv.name(uuid)})
	if b := p.blockingOn(uuid, 0, all); b.Unbounded == "" {
		t.Errorf("under the policy none: %+v", b)
	}
}
