package sched_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddle-project/heddle/runtime/sched"
)

func testPolicy() sched.Priority {
	var p sched.Priority
	for i := range p.Classes {
		p.Classes[i] = sched.Parameters{Window: time.Duration(i+1) * time.Millisecond, Quiet: 100 * time.Microsecond}
	}
	return p
}

// summary writes a plan in short: "device/client gate yields".
func summary(verdicts []sched.Verdict) []string {
	var lines []string
	for _, v := range verdicts {
		line := fmt.Sprintf("%s/%d", v.Device, v.Client)
		for _, bit := range []struct {
			gate sched.Gate
			name string
		}{{sched.GateYield, " yield"}, {sched.GateWindow, " window"}, {sched.GatePublish, " publish"}} {
			if v.Gate&bit.gate != 0 {
				line += bit.name
			}
		}
		if v.Mediated {
			line += " mediated"
		}
		if len(v.Yields) != 0 {
			line += fmt.Sprint(" to ", v.Yields)
		}
		lines = append(lines, line)
	}
	return lines
}

func TestPriorityPlan(t *testing.T) {
	tests := []struct {
		name    string
		clients []sched.Client
		want    []string
	}{
		{"nobody is there", nil, nil},
		{
			"one client alone has a gate of zero",
			[]sched.Client{{ID: 1, Device: "a", Class: 5}},
			[]string{"a/1"},
		},
		{
			"equals leave each other alone",
			[]sched.Client{{ID: 1, Device: "a", Class: 5}, {ID: 2, Device: "a", Class: 5, Weight: 9}},
			[]string{"a/1", "a/2"},
		},
		{
			"the lower class yields, the higher publishes",
			[]sched.Client{{ID: 1, Device: "a", Class: 7}, {ID: 2, Device: "a", Class: 2}},
			[]string{"a/2 publish", "a/1 yield window to [2]"},
		},
		{
			"the middle one does both",
			[]sched.Client{{ID: 1, Device: "a", Class: 0}, {ID: 2, Device: "a", Class: 5}, {ID: 3, Device: "a", Class: 9}},
			[]string{"a/1 publish", "a/2 yield window publish to [1]", "a/3 yield window to [1 2]"},
		},
		{
			"the most urgent come first, then the older",
			[]sched.Client{
				{ID: 9, Device: "a", Class: 2}, {ID: 8, Device: "a", Class: 0}, {ID: 4, Device: "a", Class: 2},
				{ID: 1, Device: "a", Class: 7}, {ID: 2, Device: "a", Class: 7},
			},
			[]string{
				"a/8 publish", "a/4 yield window publish to [8]", "a/9 yield window publish to [8]",
				"a/1 yield window to [8 4 9]", "a/2 yield window to [8 4 9]",
			},
		},
		{
			"clients on different devices never meet",
			[]sched.Client{{ID: 1, Device: "b", Class: 0}, {ID: 2, Device: "a", Class: 9}},
			[]string{"a/2", "b/1"},
		},
		{
			"one client may be above on one device and below on another",
			[]sched.Client{
				{ID: 1, Device: "a", Class: 5}, {ID: 1, Device: "b", Class: 5},
				{ID: 2, Device: "a", Class: 2}, {ID: 3, Device: "b", Class: 7},
			},
			[]string{"a/2 publish", "a/1 yield window to [2]", "b/1 publish", "b/3 yield window to [1]"},
		},
		{
			"a client under two slots of a device counts once",
			[]sched.Client{{ID: 1, Device: "a", Class: 5}, {ID: 1, Device: "a", Class: 5}, {ID: 1, Device: "a", Class: 7}},
			[]string{"a/1"},
		},
		{
			"a strict client is mediated and sees nobody",
			[]sched.Client{{ID: 1, Device: "a", Class: 2}, {ID: 2, Device: "a", Class: 7, Strict: true}},
			[]string{"a/1 publish", "a/2 window mediated to [1]"},
		},
		{
			"a strict client that yields to nobody needs no mediation",
			[]sched.Client{{ID: 1, Device: "a", Class: 2, Strict: true}, {ID: 2, Device: "a", Class: 7}},
			[]string{"a/1 publish", "a/2 yield window to [1]"},
		},
		{
			"classes out of bounds count as the nearest",
			[]sched.Client{{ID: 1, Device: "a", Class: -3}, {ID: 2, Device: "a", Class: 0}, {ID: 3, Device: "a", Class: 99}, {ID: 4, Device: "a", Class: 9}},
			[]string{"a/1 publish", "a/2 publish", "a/3 yield window to [1 2]", "a/4 yield window to [1 2]"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := slices.Clone(tt.clients)
			got := testPolicy().Plan(sched.View{Clients: tt.clients})
			if diff := cmp.Diff(tt.want, summary(got)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, tt.clients); diff != "" {
				t.Errorf("the view changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestPlanHandsOutTheParametersOfTheClass(t *testing.T) {
	p := testPolicy()
	got := p.Plan(sched.View{Clients: []sched.Client{{ID: 1, Device: "a", Class: 3, Weight: 50}}})
	want := []sched.Verdict{{Client: 1, Device: "a", Class: 3, Weight: 50, Parameters: p.Classes[3], Yields: []sched.ClientID{}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}

func TestMoreHigherClientsThanOneCanWatchNeedMediation(t *testing.T) {
	tests := []struct {
		name     string
		a, b     int // higher clients on two devices
		mediated bool
	}{
		{"as many as the table has places", sched.PeersMax, 0, false},
		{"one more", sched.PeersMax + 1, 0, true},
		{"as many over two devices", sched.PeersMax - 100, 100, false},
		{"one more over two devices", sched.PeersMax - 100, 101, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			const low = sched.ClientID(1 << 20)
			view := sched.View{Clients: []sched.Client{{ID: low, Device: "a", Class: 9}, {ID: low, Device: "b", Class: 9}}}
			for i := range tt.a {
				view.Clients = append(view.Clients, sched.Client{ID: sched.ClientID(i), Device: "a", Class: 2})
			}
			for i := range tt.b {
				view.Clients = append(view.Clients, sched.Client{ID: sched.ClientID(5000 + i), Device: "b", Class: 2})
			}
			for _, v := range testPolicy().Plan(view) {
				want := v.Client == low && tt.mediated && len(v.Yields) != 0
				if v.Mediated != want {
					t.Errorf("client %d on %s: mediated %v, want %v", v.Client, v.Device, v.Mediated, want)
				}
				if v.Mediated && v.Gate&sched.GateYield != 0 {
					t.Errorf("client %d on %s is told to watch what it cannot", v.Client, v.Device)
				}
			}
		})
	}
}

func TestNonePlansNothing(t *testing.T) {
	view := sched.View{Clients: []sched.Client{{ID: 2, Device: "a", Class: 9, Weight: 3}, {ID: 1, Device: "a", Class: 0, Strict: true}}}
	want := []sched.Verdict{{Client: 1, Device: "a"}, {Client: 2, Device: "a", Class: 9, Weight: 3}}
	if diff := cmp.Diff(want, sched.None{}.Plan(view)); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}

func someView(r *rand.Rand) sched.View {
	var view sched.View
	for id := range sched.ClientID(r.IntN(20)) {
		class := r.IntN(sched.Classes)
		for _, device := range []sched.DeviceID{"a", "b", "c"} {
			if r.IntN(2) == 0 {
				view.Clients = append(view.Clients, sched.Client{ID: id, Device: device, Class: class, Strict: r.IntN(8) == 0})
			}
		}
	}
	r.Shuffle(len(view.Clients), func(i, j int) {
		view.Clients[i], view.Clients[j] = view.Clients[j], view.Clients[i]
	})
	return view
}

type place struct {
	client sched.ClientID
	device sched.DeviceID
}

func TestPlanProperties(t *testing.T) {
	r := newRand(t)
	p := testPolicy()
	for range 2000 {
		view := someView(r)
		plan := p.Plan(view)
		verdicts := map[place]sched.Verdict{}
		for _, v := range plan {
			verdicts[place{v.Client, v.Device}] = v
		}
		if len(verdicts) != len(view.Clients) {
			t.Fatalf("%d verdicts for %d clients: %+v", len(verdicts), len(view.Clients), view)
		}
		yieldedTo := map[place]bool{}
		for at, v := range verdicts {
			for _, h := range v.Yields {
				holder, ok := verdicts[place{h, v.Device}]
				if !ok {
					t.Fatalf("%v yields to %d, who is not there: %+v", at, h, view)
				}
				// Yielding goes to strictly lower class numbers, so that no circle can wait for itself.
				if holder.Class >= v.Class {
					t.Fatalf("%v of class %d yields to %d of class %d: %+v", at, v.Class, h, holder.Class, view)
				}
				yieldedTo[place{h, v.Device}] = true
			}
		}
		for at, v := range verdicts {
			if got := v.Gate&sched.GatePublish != 0; got != yieldedTo[at] {
				t.Fatalf("%v publishes %v, yielded to %v: %+v", at, got, yieldedTo[at], view)
			}
			if got, want := v.Gate&sched.GateWindow != 0, len(v.Yields) != 0; got != want {
				t.Fatalf("%v has a window %v, yields %v: %+v", at, got, want, view)
			}
			if v.Mediated && v.Gate&sched.GateYield != 0 || !v.Mediated && (v.Gate&sched.GateYield != 0) != (len(v.Yields) != 0) {
				t.Fatalf("%v: %+v does not say clearly who watches: %+v", at, v, view)
			}
		}
		if len(view.Clients) != 0 {
			checkLowering(t, r, p, view, verdicts)
		}
		r.Shuffle(len(view.Clients), func(i, j int) {
			view.Clients[i], view.Clients[j] = view.Clients[j], view.Clients[i]
		})
		if diff := cmp.Diff(plan, p.Plan(view)); diff != "" {
			t.Fatalf("the order of the view matters (-first +second):\n%s", diff)
		}
	}
}

// checkLowering lowers one client's class: nobody but it may yield to more clients than before, and
// nobody stops yielding to anybody but it.
func checkLowering(t *testing.T, r *rand.Rand, p sched.Policy, view sched.View, before map[place]sched.Verdict) {
	t.Helper()
	lowered := view.Clients[r.IntN(len(view.Clients))].ID
	other := sched.View{Clients: slices.Clone(view.Clients)}
	for i := range other.Clients {
		if other.Clients[i].ID == lowered {
			other.Clients[i].Class = sched.Classes - 1
		}
	}
	for _, after := range p.Plan(other) {
		was := before[place{after.Client, after.Device}]
		if after.Client == lowered {
			for _, h := range was.Yields {
				if !slices.Contains(after.Yields, h) {
					t.Fatalf("%d was lowered and no longer yields to %d: %+v", lowered, h, view)
				}
			}
			continue
		}
		want := slices.DeleteFunc(slices.Clone(was.Yields), func(id sched.ClientID) bool { return id == lowered })
		got := slices.DeleteFunc(slices.Clone(after.Yields), func(id sched.ClientID) bool { return id == lowered })
		if !slices.Equal(want, got) || slices.Contains(after.Yields, lowered) && !slices.Contains(was.Yields, lowered) {
			t.Fatalf("lowering %d changed whom %d yields to from %v to %v: %+v", lowered, after.Client, was.Yields, after.Yields, view)
		}
	}
}
