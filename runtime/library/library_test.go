package library

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddle-project/heddle/runtime/errdefs"
	"github.com/heddle-project/heddle/runtime/profiles"
	"github.com/heddle-project/heddle/runtime/sched"
	"github.com/heddle-project/heddle/runtime/store"
)

const us = time.Microsecond

// node is a library with a clock that stands still until it is moved.
type node struct {
	*Library
	t     *testing.T
	dir   string
	store *store.Store
	now   time.Time
}

func newNode(t *testing.T) *node {
	n := &node{t: t, dir: t.TempDir(), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	n.restart()
	return n
}

// restart opens the store anew, with a library that has read nothing of it.
func (n *node) restart() {
	n.t.Helper()
	if n.store != nil {
		if err := n.store.Close(); err != nil {
			n.t.Fatal(err)
		}
	}
	s, err := store.Open(n.dir)
	if err != nil {
		n.t.Fatal(err)
	}
	n.store = s
	n.t.Cleanup(func() { _ = s.Close() })
	n.Library = New(Options{Store: s, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return n.now }})
}

func workload(name string) Workload {
	return Workload{Identity: profiles.Identity{Tenant: "t", Name: name}, Model: "GPU", Device: profiles.Device{SMs: 100}}
}

func idOf(w Workload) profiles.ID {
	return profiles.ID{Workload: w.Identity.Key(), Device: w.Model}
}

// launches are measured launches of one kernel.
func launches(n int, key uint64, took time.Duration) (samples []profiles.Sample) {
	for range n {
		samples = append(samples, profiles.Sample{Kernel: key, DeviceTime: took, Measured: true})
	}
	return samples
}

func (n *node) estimate(a Advice, key uint64) time.Duration {
	for _, e := range a.Table {
		if e.Key == key {
			return e.Estimate
		}
	}
	return 0
}

func TestClientsOfAWorkloadLearnTogether(t *testing.T) {
	n := newNode(t)
	w := workload("train")
	a := n.Learn(Reader{1, "d"}, &Lesson{Sparse: 50, Workload: w, Samples: launches(200, 7, 40*us)})
	if a.MeasureEvery != 50 || n.estimate(a, 7) != 40*us || !a.Fresh {
		t.Errorf("after 200 equal launches: %+v", a)
	}
	if a := n.Learn(Reader{1, "d"}, &Lesson{Sparse: 50, Workload: w}); a.Fresh || n.estimate(a, 7) != 40*us {
		t.Errorf("with nothing new: %+v", a)
	}
	if a := n.Learn(Reader{2, "d"}, &Lesson{Sparse: 50, Workload: w}); a.MeasureEvery != 50 || n.estimate(a, 7) != 40*us || !a.Fresh {
		t.Errorf("another client of the workload: %+v", a)
	}
	if a := n.Learn(Reader{2, "d"}, &Lesson{Workload: w}); a.MeasureEvery != 0 {
		t.Errorf("where nobody wants to know more: %+v", a)
	}
	if a := n.Learn(Reader{3, "d"}, &Lesson{Sparse: 50, Workload: workload("other")}); a.MeasureEvery != 1 || len(a.Table) != 0 {
		t.Errorf("a client of another workload: %+v", a)
	}
	other := w
	other.Model = "other"
	if a := n.Learn(Reader{1, "e"}, &Lesson{Sparse: 50, Workload: other}); a.MeasureEvery != 1 || len(a.Table) != 0 {
		t.Errorf("on another model: %+v", a)
	}
}

func TestAClientWithoutIdentityLearnsNothing(t *testing.T) {
	n := newNode(t)
	w := Workload{Model: "GPU"}
	if a := n.Learn(Reader{1, "d"}, &Lesson{Sparse: 50, Workload: w, Samples: launches(20, 7, us)}); a.MeasureEvery != 0 || a.Table != nil {
		t.Errorf("%+v", a)
	}
	n.Leave(1)
}

func TestTablesAreMadeAnewInTheirTime(t *testing.T) {
	n := newNode(t)
	w := workload("train")
	who := Reader{1, "d"}
	learn := func(samples []profiles.Sample, beside sched.Bound) Advice {
		return n.Learn(who, &Lesson{Sparse: 50, Workload: w, Samples: samples, Beside: beside})
	}
	learn(launches(1, 7, 40*us), sched.Bound{})
	if a := learn(launches(1, 8, 40*us), sched.Bound{}); a.Fresh {
		t.Error("at once")
	}
	n.now = n.now.Add(refreshLearning)
	if a := learn(nil, sched.Bound{}); !a.Fresh || n.estimate(a, 8) != 40*us {
		t.Errorf("after a while: %+v", a)
	}
	learn(launches(300, 7, 40*us), sched.Bound{})
	n.now = n.now.Add(refreshLearning)
	if a := learn(nil, sched.Bound{}); a.Fresh {
		t.Error("as often as while it is learnt")
	}
	if a := learn(nil, sched.Bound{SMs: 3, DRAM: 1}); !a.Fresh {
		t.Error("not when another demand may run beside others")
	}
	n.now = n.now.Add(refreshKnown)
	learn(launches(1, 7, 40*us), sched.Bound{SMs: 3, DRAM: 1})
	n.now = n.now.Add(refreshKnown)
	if a := learn(launches(1, 7, 40*us), sched.Bound{SMs: 3, DRAM: 1}); !a.Fresh {
		t.Error("not after a longer while")
	}
}

func TestAPolicyIsToldOfDemandAndSlowdown(t *testing.T) {
	n := newNode(t)
	who := Reader{1, "d"}
	if k := n.Known(who); !cmp.Equal(k, Known{}) {
		t.Errorf("of a stranger: %+v", k)
	}
	n.Learn(who, &Lesson{Sparse: 50, Workload: workload("w"), Samples: launches(20, 7, 40*us)})
	before := n.Known(who)
	slow := launches(10, 7, 60*us)
	for i := range slow {
		slow[i].Shared = true
	}
	n.Learn(who, &Lesson{Sparse: 50, Workload: workload("w"), Samples: slow})
	after := n.Known(who)
	if after.Measured-before.Measured != 600*us || after.Expected-before.Expected != 400*us {
		t.Errorf("ten launches of 60us where 40us are usual: measured %v, expected %v", after.Measured-before.Measured, after.Expected-before.Expected)
	}
	if before.Demand.Longest != 40*us {
		t.Errorf("demand %+v", before.Demand)
	}
	n.Leave(1)
	if k := n.Known(who); !cmp.Equal(k, Known{}) {
		t.Errorf("of one who left: %+v", k)
	}
}

func TestWhatWasLearntOutlivesClientsAndRestarts(t *testing.T) {
	n := newNode(t)
	w := workload("w")
	n.Learn(Reader{1, "d"}, &Lesson{Sparse: 50, Workload: w, Samples: launches(200, 7, 40*us)})
	n.Leave(1)
	if len(n.open) != 1 {
		t.Error("a profile that is not on disk was let go")
	}
	if err := n.Save(); err != nil {
		t.Fatal(err)
	}
	if len(n.open) != 0 || len(n.tenants) != 0 {
		t.Errorf("%d profiles of %d tenants are still in use", len(n.open), len(n.tenants))
	}
	n.restart()
	if a := n.Learn(Reader{9, "d"}, &Lesson{Sparse: 50, Workload: w}); a.MeasureEvery != 50 || n.estimate(a, 7) != 40*us {
		t.Errorf("after a restart: %+v", a)
	}
	list, err := n.List()
	if err != nil || len(list) != 1 || list[0].Clients != 1 || list[0].ID != idOf(w) || !list[0].Kept.Equal(n.now) {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestADiskThatFailsLosesNothingInUse(t *testing.T) {
	n := newNode(t)
	w := workload("w")
	n.Learn(Reader{1, "d"}, &Lesson{Sparse: 50, Workload: w, Samples: launches(20, 7, 40*us)})
	n.Leave(1)
	_ = n.store.Close()
	if err := n.Save(); err == nil {
		t.Error("saved to a store that is closed")
	}
	if b := n.open[idOf(w)]; b == nil || !b.dirty {
		t.Error("what was learnt is gone")
	}
}

func TestADamagedProfileIsLearntAnew(t *testing.T) {
	n := newNode(t)
	w := workload("w")
	_, err := n.store.KeepProfiles(store.Profile{Key: store.ProfileKey(idOf(w)), Data: []byte("damaged")})
	if err != nil {
		t.Fatal(err)
	}
	if list, err := n.List(); len(list) != 0 || err != nil {
		t.Errorf("%+v, %v", list, err)
	}
	if a := n.Learn(Reader{1, "d"}, &Lesson{Sparse: 50, Workload: w}); a.MeasureEvery != 1 {
		t.Errorf("%+v", a)
	}
	if err := n.View(idOf(workload("x")), nil); !errors.Is(err, errdefs.ErrNotFound) {
		t.Errorf("a profile that there is not: %v", err)
	}
}

func TestOneTenantCannotUseAllPlaces(t *testing.T) {
	n := newNode(t)
	for i := range openPerTenant + 10 {
		n.Learn(Reader{uint64(i + 1), "d"}, &Lesson{Sparse: 50, Workload: workload(fmt.Sprint(i))})
	}
	if len(n.open) != openPerTenant {
		t.Errorf("%d profiles of one tenant are in use", len(n.open))
	}
	w := workload("w")
	w.Identity.Tenant = "other"
	if a := n.Learn(Reader{9999, "d"}, &Lesson{Sparse: 50, Workload: w}); a.MeasureEvery != 1 {
		t.Errorf("another tenant: %+v", a)
	}
}

func TestForgettingBeginsAnew(t *testing.T) {
	n := newNode(t)
	w := workload("w")
	n.Learn(Reader{1, "d"}, &Lesson{Sparse: 50, Workload: w, Samples: launches(200, 7, 40*us)})
	for range 2 { // not on disk yet, and in use with nothing known
		if err := n.Forget(idOf(w)); err != nil {
			t.Fatal(err)
		}
	}
	if a := n.Learn(Reader{1, "d"}, &Lesson{Sparse: 50, Workload: w}); a.MeasureEvery != 1 {
		t.Errorf("a client of a forgotten workload: %+v", a)
	}
	n.now = n.now.Add(refreshKnown)
	if a := n.Learn(Reader{1, "d"}, &Lesson{Sparse: 50, Workload: w}); len(a.Table) != 0 {
		t.Errorf("still told %+v", a.Table)
	}
	n.Leave(1)
	if err := n.Save(); err != nil {
		t.Fatal(err)
	}
	if err := n.Forget(idOf(w)); !errors.Is(err, errdefs.ErrNotFound) {
		t.Errorf("forgotten once more: %v", err)
	}
}

func TestMergingAddsAndIsKept(t *testing.T) {
	n := newNode(t)
	w := workload("w")
	other := profiles.New(idOf(w))
	for _, s := range launches(200, 7, 40*us) {
		other.Observe(s)
	}
	if err := n.Merge(other); err != nil {
		t.Fatal(err)
	}
	n.restart()
	samples := uint64(0)
	view := func(p *profiles.Profile) error {
		samples = p.Summary().Samples
		return nil
	}
	if err := n.View(idOf(w), view); err != nil || samples != 200 {
		t.Errorf("%d samples, %v", samples, err)
	}
	// Into one in use, whose clients are told.
	if a := n.Learn(Reader{1, "d"}, &Lesson{Sparse: 50, Workload: w}); n.estimate(a, 7) != 40*us {
		t.Errorf("%+v", a)
	}
	if err := n.Merge(other); err != nil {
		t.Fatal(err)
	}
	if err := n.View(idOf(w), view); err != nil || samples != 400 {
		t.Errorf("%d samples, %v", samples, err)
	}
	failed := errors.New("no")
	if err := n.Change(idOf(w), func(*profiles.Profile) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("%v", err)
	}
	if err := n.Change(profiles.ID{Workload: "x", Device: "d"}, nil); !errors.Is(err, errdefs.ErrNotFound) {
		t.Errorf("%v", err)
	}
}

func TestManyUseItAtATime(t *testing.T) {
	n := newNode(t)
	var wait sync.WaitGroup
	for client := range uint64(4) {
		wait.Go(func() {
			for i := range 50 {
				w := workload(fmt.Sprint(i % 3))
				n.Learn(Reader{client, "d"}, &Lesson{Sparse: 50, Workload: w, Samples: launches(3, uint64(i+1), us)})
				n.Known(Reader{client, "d"})
				switch i % 10 {
				case 3:
					n.Leave(client)
				case 5:
					_ = n.Forget(idOf(w)) // there may be none
				case 7:
					if _, err := n.List(); err != nil {
						t.Error(err)
					}
				}
			}
			n.Leave(client)
		})
	}
	for range 5 {
		if err := n.Save(); err != nil {
			t.Error(err)
		}
	}
	wait.Wait()
	if err := n.Save(); err != nil || len(n.open) != 0 || len(n.readers) != 0 {
		t.Errorf("%v, %d profiles and %d readers are left", err, len(n.open), len(n.readers))
	}
}
