package mig

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-project/heddle/partition"
	"github.com/heddle-project/heddle/runtime/errdefs"
	"github.com/heddle-project/heddle/runtime/gpu"
	"github.com/heddle-project/heddle/runtime/gpu/gputest"
	"github.com/heddle-project/heddle/tests/softgpu/models/catalog"
)

var device = gpu.UUID{1}

// rig is a device and how it is cut by hand.
type rig struct {
	t       *testing.T
	mig     *gputest.MIG
	board   *partition.Board
	opt     Options
	foreign []gpu.GPUInstance
}

func newRig(t *testing.T) *rig {
	t.Helper()
	m, err := catalog.Lookup("H100")
	if err != nil {
		t.Fatal(err)
	}
	var profiles []gpu.Profile
	for _, p := range m.MIG.Profiles {
		profiles = append(profiles, gpu.Profile{
			ID: p.ID, Name: p.Name, ComputeSlices: p.Slices, MemorySlices: p.Size, MemoryBytes: uint64(p.MemoryMiB) << 20,
			Multiprocessors: p.SMs, InstancesMax: p.Instances, Starts: p.Starts,
			Engines: gpu.Engines{Copy: p.Copy, Decode: p.Decoders, Encode: p.Encoders, JPEG: p.JPEG, OFA: p.OFA},
		})
	}
	board, err := partition.NewBoard(profiles)
	if err != nil {
		t.Fatal(err)
	}
	fake := gputest.NewMIG(profiles, device)
	return &rig{t: t, mig: fake, board: board, opt: Options{MIG: fake, Boot: "boot-1", Journal: filepath.Join(t.TempDir(), "partition.journal")}}
}

func (r *rig) open() *Executor {
	r.t.Helper()
	e, err := Open(r.opt)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = e.Close() })
	return e
}

// addForeign cuts an instance as another tool would.
func (r *rig) addForeign(profile string, start int) {
	r.t.Helper()
	p, err := r.board.Named(profile)
	if err != nil {
		r.t.Fatal(err)
	}
	in, err := r.mig.CreateGPUInstance(r.t.Context(), device, p.ID, gpu.Placement{Start: start, Size: p.MemorySlices})
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.mig.CreateComputeInstance(r.t.Context(), device, in.ID); err != nil {
		r.t.Fatal(err)
	}
	r.foreign = r.now()
}

func (r *rig) now() []gpu.GPUInstance {
	r.t.Helper()
	now, err := r.mig.GPUInstances(context.Background(), device)
	if err != nil {
		r.t.Fatal(err)
	}
	return now
}

// plan is the way from what is there to these profiles.
func (r *rig) plan(e *Executor, names ...string) *partition.Plan {
	r.t.Helper()
	now, err := e.Instances(r.t.Context(), device)
	if err != nil {
		r.t.Fatal(err)
	}
	var ids []int
	for _, name := range names {
		p, err := r.board.Named(name)
		if err != nil {
			r.t.Fatal(err)
		}
		ids = append(ids, p.ID)
	}
	l, err := r.board.Arrange(now, ids, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	plan, err := r.board.Diff(now, l)
	if err != nil {
		r.t.Fatal(err)
	}
	return plan
}

// layout is what of ours is on the device, as names.
func (r *rig) layout(e *Executor) string {
	r.t.Helper()
	now, err := e.Instances(r.t.Context(), device)
	if err != nil {
		r.t.Fatal(err)
	}
	var l partition.Layout
	for _, p := range now {
		if !p.Foreign {
			l = append(l, p.Instance)
		}
	}
	return r.board.String(l.Sorted())
}

// check is what must hold whenever nothing runs: nothing leaks, and nothing foreign changed.
func (r *rig) check(e *Executor, what string) {
	r.t.Helper()
	listed, err := e.Instances(r.t.Context(), device)
	if err != nil {
		r.t.Fatal(err)
	}
	var foreign []gpu.GPUInstance
	for i, in := range r.now() {
		if listed[i].Foreign {
			foreign = append(foreign, in)
		} else if len(in.Compute) == 0 {
			r.t.Errorf("%s: GPU instance %d has no compute instance", what, in.ID)
		}
	}
	if !slices.EqualFunc(foreign, r.foreign, func(a, b gpu.GPUInstance) bool { return fmt.Sprint(a) == fmt.Sprint(b) }) {
		r.t.Errorf("%s: foreign instances are %+v, were %+v", what, foreign, r.foreign)
	}
}

func TestADeviceIsCutAndCutAnew(t *testing.T) {
	r := newRig(t)
	r.addForeign("1g.10gb", 6)
	published := 0
	r.opt.Publish = func(_ context.Context, _ gpu.UUID, now []gpu.GPUInstance) error { published = len(now); return nil }
	e := r.open()
	for _, names := range [][]string{
		{"4g.40gb"}, {"4g.40gb", "1g.10gb"}, {"3g.40gb", "2g.20gb"}, {}, {"1g.10gb", "1g.10gb", "1g.10gb+me"},
	} {
		if err := e.Apply(t.Context(), device, r.plan(e, names...)); err != nil {
			t.Fatal(err)
		}
		if got := len(r.now()); got != len(names)+1 || published != got {
			t.Errorf("%v: %d instances, %d published", names, got, published)
		}
		r.check(e, strings.Join(names, " "))
		// The next heddled knows them as its own.
		if again := r.open(); r.layout(again) != r.layout(e) {
			t.Errorf("%s, for the next one %s", r.layout(e), r.layout(again))
		}
	}
}

// dies is what a test lets a process end with.
type dies struct{}

// killed runs f until its process ends at the n-th point; it reports whether it came so far.
func killed(r *rig, n int, f func()) (was bool) {
	count := 0
	point := func(string) {
		if count++; count == n {
			panic(dies{})
		}
	}
	r.mig.Before = func(call string) error { point(call); return nil }
	r.mig.After = point
	r.opt.point = point
	defer func() {
		r.mig.Before, r.mig.After, r.opt.point = nil, nil, nil
		if p := recover(); p != nil {
			if _, ok := p.(dies); !ok {
				panic(p)
			}
			was = true
		}
	}()
	f()
	return false
}

// At every point of a transaction the process dies, and at every point of the recovery again. The device
// ends as it was or as it was wanted.
func TestADeathAnywhereLeavesTheDeviceWhole(t *testing.T) {
	for n := 1; ; n++ {
		finished := false
		for m := 0; ; m++ {
			r := newRig(t)
			r.addForeign("1g.10gb", 3)
			e := r.open()
			if err := e.Apply(t.Context(), device, r.plan(e, "1g.10gb", "2g.20gb")); err != nil {
				t.Fatal(err)
			}
			before := r.layout(e)
			plan := r.plan(e, "3g.40gb", "1g.10gb")
			want := "1g.10gb at 2, 3g.40gb at 4"
			if !killed(r, n, func() { _ = r.open().Apply(t.Context(), device, plan) }) {
				finished = true
				break
			}
			again := m > 0 && killed(r, m, func() { _ = r.open().Recover(t.Context()) })
			last := r.open()
			if err := last.Recover(t.Context()); err != nil {
				t.Fatalf("dead at %d and %d: %v", n, m, err)
			}
			what := fmt.Sprintf("dead at %d and %d", n, m)
			r.check(last, what)
			if got := r.layout(last); got != before && got != want {
				t.Fatalf("%s: the device is cut into %s, was into %s", what, got, before)
			}
			if err := last.Apply(t.Context(), device, r.plan(last, "2g.20gb", "1g.10gb")); err != nil {
				t.Fatalf("%s: the next plan: %v", what, err)
			}
			r.check(last, what)
			if m > 0 && !again {
				break
			}
		}
		if finished {
			t.Logf("%d points", n-1)
			if n < 15 {
				t.Error("they are too few")
			}
			return
		}
	}
}

// Every change of the device fails once, for every reason; it goes back to what it was.
func TestAStepThatFailsIsUndone(t *testing.T) {
	for _, kind := range []error{errdefs.ErrBusy, errdefs.ErrExhausted, errdefs.ErrInvalid, errdefs.ErrNotFound, errors.New("unknown")} {
		for n := 1; n < 12; n++ {
			r := newRig(t)
			r.addForeign("1g.10gb", 3)
			e := r.open()
			if err := e.Apply(t.Context(), device, r.plan(e, "1g.10gb", "2g.20gb")); err != nil {
				t.Fatal(err)
			}
			before := r.layout(e)
			count, failed := 0, ""
			r.mig.Before = func(call string) error {
				if count++; count == n {
					failed = call
					return kind
				}
				return nil
			}
			err := e.Apply(t.Context(), device, r.plan(e, "3g.40gb", "1g.10gb"))
			r.mig.Before = nil
			what := fmt.Sprintf("call %d (%s) failed: %v", n, failed, kind)
			r.check(e, what)
			switch {
			case err == nil:
				if got := r.layout(e); got == before {
					t.Errorf("%s: nothing was done", what)
				}
			case failed == "":
				t.Errorf("%s: %v", what, err)
			case !errors.Is(err, kind) && !errors.Is(kind, errdefs.ErrNotFound): // what is said to be gone is looked for later
				t.Errorf("%s: the error is %v", what, err)
			default:
				if got := r.layout(e); got != before || e.Quarantined(device) != "" {
					t.Errorf("%s: %s, was %s; quarantined: %q", what, got, before, e.Quarantined(device))
				}
			}
		}
	}
}

func TestADeviceThatCannotBeUndoneIsLeftAlone(t *testing.T) {
	r := newRig(t)
	e := r.open()
	if err := e.Apply(t.Context(), device, r.plan(e, "1g.10gb")); err != nil {
		t.Fatal(err)
	}
	plan := r.plan(e, "7g.80gb")
	r.mig.Before = func(call string) error {
		if call == "create GPU instance" {
			return errors.New("broken")
		}
		return nil
	}
	if err := e.Apply(t.Context(), device, plan); !errors.Is(err, errdefs.ErrUnavailable) || !strings.Contains(err.Error(), "is quarantined: broken; and undoing it: broken") {
		t.Errorf("%v", err)
	}
	r.mig.Before = nil
	for _, e := range []*Executor{e, r.open()} {
		if e.Quarantined(device) == "" {
			t.Error("it is not quarantined")
		}
		if err := e.Apply(t.Context(), device, &partition.Plan{}); !errors.Is(err, errdefs.ErrUnavailable) || !strings.Contains(err.Error(), "broken") {
			t.Errorf("the next plan: %v", err)
		}
	}
	r.opt.Boot = "boot-2" // which takes all instances away
	if reason := r.open().Quarantined(device); reason != "" {
		t.Errorf("after a start of the machine: %s", reason)
	}
}

func TestAfterAStartOfTheMachineNothingIsOurs(t *testing.T) {
	r := newRig(t)
	e := r.open()
	if err := e.Apply(t.Context(), device, r.plan(e, "1g.10gb")); err != nil {
		t.Fatal(err)
	}
	r.opt.Boot = "boot-2"
	next := r.open()
	if err := next.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := r.layout(next); got != "nothing" { // somebody else made what is there now
		t.Errorf("ours are %s", got)
	}
}

func TestAHolderIsWaitedForAndNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.opt.Patience = 3 * time.Second
		e := r.open()
		if err := e.Apply(t.Context(), device, r.plan(e, "1g.10gb")); err != nil {
			t.Fatal(err)
		}
		id := r.now()[0].ID
		r.mig.Hold(device, id, true)
		plan := r.plan(e)
		begin := time.Now()
		if err := e.Apply(t.Context(), device, plan); !errors.Is(err, errdefs.ErrBusy) {
			t.Errorf("%v", err)
		}
		if took := time.Since(begin); took < 3*time.Second || took > 7*time.Second { // once, and once to undo it
			t.Errorf("it took %v", took)
		}
		r.check(e, "held")
		go func() {
			time.Sleep(time.Second)
			r.mig.Hold(device, id, false)
		}()
		if err := e.Apply(t.Context(), device, plan); err != nil {
			t.Error(err)
		}
	})
}

// Random plans with random faults and deaths, one after the other on one device.
func TestRandomTransactions(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	r := newRig(t)
	r.addForeign("1g.10gb", 3)
	e := r.open()
	names := []string{"1g.10gb", "1g.10gb+me", "2g.20gb", "1g.20gb", "3g.40gb"}
	for i := range 300 {
		var wanted []string
		for range rng.IntN(4) {
			wanted = append(wanted, names[rng.IntN(len(names))])
		}
		now, err := e.Instances(t.Context(), device)
		if err != nil {
			t.Fatal(err)
		}
		var ids []int
		for _, name := range wanted {
			p, _ := r.board.Named(name)
			ids = append(ids, p.ID)
		}
		l, err := r.board.Arrange(now, ids, nil)
		if err != nil {
			continue
		}
		plan, err := r.board.Diff(now, l)
		if err != nil {
			t.Fatal(err)
		}
		before, want := r.layout(e), r.board.String(l)
		what := fmt.Sprintf("transaction %d, from %s to %s", i, before, want)
		switch rng.IntN(3) {
		case 0:
			if err := e.Apply(t.Context(), device, plan); err != nil || r.layout(e) != want {
				t.Fatalf("%s: %s, %v", what, r.layout(e), err)
			}
		case 1:
			n := 1 + rng.IntN(8)
			r.mig.Before = func(string) error {
				if n--; n == 0 {
					return errdefs.ErrExhausted
				}
				return nil
			}
			err := e.Apply(t.Context(), device, plan)
			r.mig.Before = nil
			if got := r.layout(e); err == nil && got != want || err != nil && got != before {
				t.Fatalf("%s with a fault: %s, %v", what, got, err)
			}
		default:
			killed(r, 1+rng.IntN(25), func() { _ = r.open().Apply(t.Context(), device, plan) })
			e = r.open()
			if err := e.Recover(t.Context()); err != nil {
				t.Fatalf("%s with a death: %v", what, err)
			}
			if got := r.layout(e); got != want && got != before {
				t.Fatalf("%s with a death: %s", what, got)
			}
		}
		r.check(e, what)
	}
}
