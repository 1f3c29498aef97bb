package partition_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-project/heddle/partition"
	"github.com/heddle-project/heddle/runtime/errdefs"
)

// carry out the steps of a plan and check the board after each.
func carryOut(t *testing.T, b *partition.Board, now []partition.Present, plan *partition.Plan) partition.Layout {
	t.Helper()
	var l partition.Layout
	for _, p := range now {
		l = append(l, p.Instance)
	}
	for i, step := range plan.Steps {
		switch step.Op {
		case partition.Drain:
		case partition.Destroy:
			at := slices.Index(l, step.Instance)
			if at < 0 {
				t.Fatalf("step %d destroys what is not there: %+v", i, step)
			}
			l = slices.Delete(l, at, at+1)
		case partition.Create:
			l = append(l, step.Instance)
		}
		if err := b.Check(l); err != nil {
			t.Fatalf("after step %d of %+v: %v", i, plan.Steps, err)
		}
	}
	return l
}

func present(l partition.Layout) (now []partition.Present) {
	for i, in := range l {
		now = append(now, partition.Present{Instance: in, ID: i + 1})
	}
	return now
}

// Every layout of every board from every other, each step legal, nothing changed that need not be.
func TestEveryLayoutIsReachedFromEveryOther(t *testing.T) {
	for _, tt := range []struct {
		model string
		names []string
	}{
		{"A30", nil},
		{"H100", []string{"1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"}},
		{"RTX-PRO-6000", []string{"1g.24gb", "1g.24gb+me", "1g.24gb+me.all", "1g.24gb-me", "2g.48gb", "4g.96gb"}},
	} {
		b := board(t, tt.model, tt.names...)
		all := layouts(b.Profiles())
		for _, from := range all {
			now := present(from)
			for _, to := range all {
				plan, err := b.Diff(now, to)
				if err != nil {
					t.Fatalf("%s: from %s to %s: %v", tt.model, b.String(from), b.String(to), err)
				}
				if got := carryOut(t, b, now, plan); key(got) != key(to) {
					t.Fatalf("%s: from %s to %s: it is %s", tt.model, b.String(from), b.String(to), b.String(got))
				}
				common := 0
				for _, in := range from {
					if slices.Contains(to, in) {
						common++
					}
				}
				if cost := plan.Cost(); len(plan.Kept) != common || cost.Destroys != len(from)-common || cost.Creates != len(to)-common {
					t.Fatalf("%s: from %s to %s: kept %d of %d, %+v", tt.model, b.String(from), b.String(to), len(plan.Kept), common, cost)
				}
			}
		}
		t.Logf("%s: %d layouts, %d plans", tt.model, len(all), len(all)*len(all))
	}
}

func TestAPlanDisturbsNobodyItNeedNot(t *testing.T) {
	b := board(t, "H100", "1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb")
	id := func(name string) int {
		p, err := b.Named(name)
		if err != nil {
			t.Fatal(err)
		}
		return p.ID
	}
	one := func(name string, start int, change func(*partition.Present)) partition.Present {
		p := partition.Present{Instance: partition.Instance{Profile: id(name), Start: start}, ID: start + 7}
		if change != nil {
			change(&p)
		}
		return p
	}
	holder := func(name string) func(*partition.Present) { return func(p *partition.Present) { p.Holder = name } }
	movable := func(p *partition.Present) { p.Holder, p.Movable = "batch", true }
	foreign := func(p *partition.Present) { p.Foreign = true }
	tests := []struct {
		name string
		now  []partition.Present
		want []string // profiles
		cost partition.Cost
		err  string
		kind error
	}{
		{"an empty board", nil, []string{"3g.40gb", "4g.40gb"}, partition.Cost{Creates: 2}, "", nil},
		{
			"what is held stays where it is", []partition.Present{one("1g.10gb", 0, holder("a"))},
			[]string{"3g.40gb", "1g.10gb"}, partition.Cost{Creates: 1}, "", nil,
		},
		{
			"what is idle makes room", []partition.Present{one("1g.10gb", 5, nil), one("2g.20gb", 0, holder("a"))},
			[]string{"3g.40gb", "2g.20gb"}, partition.Cost{Destroys: 1, Creates: 1}, "", nil,
		},
		{
			"idle before movable", []partition.Present{one("3g.40gb", 0, movable), one("3g.40gb", 4, nil)},
			[]string{"3g.40gb", "2g.20gb"}, partition.Cost{Destroys: 1, Creates: 1}, "", nil,
		},
		{
			"a movable one is drained where nothing else helps", []partition.Present{one("1g.10gb", 0, movable)},
			[]string{"4g.40gb", "1g.10gb"}, partition.Cost{Drains: 1, Destroys: 1, Creates: 2}, "", nil,
		},
		{
			"nobody is thrown out", []partition.Present{one("1g.10gb", 0, holder("pod web"))},
			[]string{"4g.40gb", "1g.10gb"}, partition.Cost{}, "1g.10gb at 0 is held by pod web", errdefs.ErrExhausted,
		},
		{
			"foreign instances are planned around", []partition.Present{one("3g.40gb", 4, foreign)},
			[]string{"4g.40gb"}, partition.Cost{Creates: 1}, "", nil,
		},
		{
			"and never touched", []partition.Present{one("1g.10gb", 2, foreign)},
			[]string{"4g.40gb"}, partition.Cost{}, "no layout has 4g.40gb", errdefs.ErrExhausted,
		},
		{"nothing is a layout", []partition.Present{one("1g.10gb", 2, nil)}, nil, partition.Cost{Destroys: 1}, "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var wanted []int
			for _, name := range tt.want {
				wanted = append(wanted, id(name))
			}
			l, err := b.Arrange(tt.now, wanted, nil)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) || !errors.Is(err, tt.kind) {
					t.Fatalf("%s, %v; want %q", b.String(l), err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			plan, err := b.Diff(tt.now, l)
			if err != nil {
				t.Fatal(err)
			}
			if got := plan.Cost(); got != tt.cost {
				t.Errorf("to %s for %+v, want %+v", b.String(l), got, tt.cost)
			}
			carryOut(t, b, tt.now, plan)
		})
	}
}

func TestADiffSaysWhoIsInTheWay(t *testing.T) {
	b := board(t, "A30")
	p, err := b.Named("1g.6gb")
	if err != nil {
		t.Fatal(err)
	}
	now := []partition.Present{{Instance: partition.Instance{Profile: p.ID, Start: 0}, ID: 7, Holder: "pod web"}}
	if _, err := b.Diff(now, nil); !errors.Is(err, errdefs.ErrBusy) || !strings.Contains(err.Error(), "1g.6gb at 0 is held by pod web") {
		t.Errorf("%v", err)
	}
}

// Whatever is on a board and is wanted, a plan is legal, touches nothing foreign and nothing that is
// held, and asking again for what there is then changes nothing.
func FuzzArrange(f *testing.F) {
	f.Add([]byte{0, 0, 1, 1, 2, 4}, []byte{3, 4})
	f.Add([]byte{6, 0, 0x16, 1, 0x26, 2}, []byte{1})
	b := board(f, "H100")
	ids := make([]int, len(b.Profiles()))
	for i, p := range b.Profiles() {
		ids[i] = p.ID
	}
	f.Fuzz(func(t *testing.T, on, want []byte) {
		var now []partition.Present
		var l partition.Layout
		for i := 0; i+1 < len(on) && i < 16; i += 2 {
			in := partition.Instance{Profile: ids[int(on[i]&0xf)%len(ids)], Start: int(on[i+1] % 8)}
			if b.Check(append(slices.Clip(l), in)) != nil {
				continue
			}
			l = append(l, in)
			now = append(now, partition.Present{
				Instance: in, ID: 7 + i, Foreign: on[i]&0x10 != 0, Movable: on[i]&0x40 != 0,
				Holder: map[bool]string{true: "somebody"}[on[i]&0x20 != 0],
			})
		}
		var wanted []int
		for _, x := range want[:min(len(want), 8)] {
			wanted = append(wanted, ids[int(x)%len(ids)])
		}
		to, err := b.Arrange(now, wanted, nil)
		if err != nil {
			return
		}
		plan, err := b.Diff(now, to)
		if err != nil {
			t.Fatalf("arranged %s, which cannot be: %v", b.String(to), err)
		}
		after := carryOut(t, b, now, plan)
		for _, p := range now {
			if kept := slices.Contains(after, p.Instance); !kept && (p.Foreign || p.Holder != "" && !p.Movable) {
				t.Fatalf("%+v is gone", p)
			}
		}
		var then []partition.Present
		for _, in := range after {
			foreign := slices.ContainsFunc(now, func(p partition.Present) bool { return p.Foreign && p.Instance == in })
			then = append(then, partition.Present{Instance: in, Foreign: foreign})
		}
		again, err := b.Arrange(then, wanted, nil)
		if err != nil {
			t.Fatal(err)
		}
		if plan, err := b.Diff(then, again); err != nil || len(plan.Steps) != 0 {
			t.Fatalf("asked again: %+v, %v", plan, err)
		}
	})
}
