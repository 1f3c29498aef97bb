package partition_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heddle-project/heddle/partition"
	"github.com/heddle-project/heddle/runtime/errdefs"
	"github.com/heddle-project/heddle/runtime/gpu"
	"github.com/heddle-project/heddle/tests/softgpu/models/catalog"
)

// profiles are those of a model, as its driver lists them.
func profiles(t testing.TB, key string) []gpu.Profile {
	t.Helper()
	m, err := catalog.Lookup(key)
	if err != nil {
		t.Fatal(err)
	}
	var list []gpu.Profile
	for _, p := range m.MIG.Profiles {
		list = append(list, gpu.Profile{
			ID: p.ID, Name: p.Name, ComputeSlices: p.Slices, MemorySlices: p.Size, MemoryBytes: uint64(p.MemoryMiB) << 20,
			Multiprocessors: p.SMs, InstancesMax: p.Instances, Starts: p.Starts,
			Engines: gpu.Engines{Copy: p.Copy, Decode: p.Decoders, Encode: p.Encoders, JPEG: p.JPEG, OFA: p.OFA},
		})
	}
	return list
}

// board is that of a model, with all of its profiles or those named.
func board(t testing.TB, key string, names ...string) *partition.Board {
	t.Helper()
	list := profiles(t, key)
	if len(names) > 0 {
		list = slices.DeleteFunc(list, func(p gpu.Profile) bool { return !slices.Contains(names, p.Name) })
	}
	b, err := partition.NewBoard(list)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// models are all that can be cut.
var models = []string{"A30", "A100-40", "A100-80", "H100", "H200", "B200", "RTX-PRO-6000"}

// layouts are all legal ones, by the rules as the vendor's guide has them and not by the package's own:
// every set of placements that do not overlap, with no more compute slices and engines than the board.
func layouts(list []gpu.Profile) []partition.Layout {
	type place struct {
		profile *gpu.Profile
		start   int
	}
	var places []place
	most := gpu.Engines{}
	compute := 0
	for i := range list {
		p := &list[i]
		for _, start := range p.Starts {
			places = append(places, place{p, start})
		}
		if p.ComputeSlices > compute {
			compute, most = p.ComputeSlices, p.Engines
		}
	}
	legal := func(set []place) bool {
		slots := map[int]bool{}
		sum, engines, count := 0, gpu.Engines{}, map[int]int{}
		for _, at := range set {
			for s := at.start; s < at.start+at.profile.MemorySlices; s++ {
				if slots[s] {
					return false
				}
				slots[s] = true
			}
			sum += at.profile.ComputeSlices
			engines = engines.Add(at.profile.Engines)
			if count[at.profile.ID]++; count[at.profile.ID] > at.profile.InstancesMax {
				return false
			}
		}
		return sum <= compute && engines.Within(most)
	}
	var found []partition.Layout
	var grow func(from int, set []place)
	grow = func(from int, set []place) {
		var l partition.Layout
		for _, at := range set {
			l = append(l, partition.Instance{Profile: at.profile.ID, Start: at.start})
		}
		found = append(found, l.Sorted())
		for i := from; i < len(places); i++ {
			if next := append(slices.Clone(set), places[i]); legal(next) {
				grow(i+1, next)
			}
		}
	}
	grow(0, nil)
	return found
}

func key(l partition.Layout) string { return fmt.Sprint(l.Sorted()) }

func TestLegalLayoutsAreThoseOfTheRules(t *testing.T) {
	for _, model := range models {
		list := profiles(t, model)
		b := board(t, model)
		legal := map[string]bool{}
		for _, l := range layouts(list) {
			legal[key(l)] = true
			if err := b.Check(l); err != nil {
				t.Fatalf("%s: %s: %v", model, b.String(l), err)
			}
		}
		// And none of those that are not: each legal layout with one instance more.
		refused := 0
		for _, l := range layouts(list) {
			for _, p := range list {
				for _, start := range p.Starts {
					more := append(slices.Clone(l), partition.Instance{Profile: p.ID, Start: start})
					if !legal[key(more)] {
						refused++
						if b.Check(more) == nil {
							t.Fatalf("%s: %s is no layout", model, b.String(more))
						}
					}
				}
			}
		}
		t.Logf("%s: %d layouts, %d refused", model, len(legal), refused)
	}
}

// The numbers of the vendor's guide for boards of seven compute slices.
func TestMaximalLayouts(t *testing.T) {
	b := board(t, "H100", "1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb")
	maximal, multisets := 0, map[string]bool{}
	for _, l := range layouts(b.Profiles()) {
		full := true
		for _, p := range b.Profiles() {
			if _, _, err := b.Best(l, p.ID, nil); err == nil {
				full = false
			}
		}
		if full {
			maximal++
			var names []string
			for _, in := range l {
				p, err := b.Profile(in.Profile)
				if err != nil {
					t.Fatal(err)
				}
				names = append(names, p.Name)
			}
			slices.Sort(names)
			multisets[strings.Join(names, " ")] = true
		}
	}
	if maximal != 19 || len(multisets) != 14 {
		t.Errorf("%d maximal layouts of %d kinds, there are 19 of 14", maximal, len(multisets))
	}
}

func TestTheFirstInstanceLeavesFewestFragmentsWhereItShould(t *testing.T) {
	b := board(t, "H100", "1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb")
	for name, want := range map[string]int{"1g.10gb": 6, "1g.20gb": 6, "2g.20gb": 4, "3g.40gb": 4, "4g.40gb": 0, "7g.80gb": 0} {
		p, err := b.Named(name)
		if err != nil {
			t.Fatal(err)
		}
		if start, grown, err := b.Best(nil, p.ID, nil); err != nil || start != want || grown != 0 {
			t.Errorf("%s at %d with %v fragments more, %v; want it at %d with none", name, start, grown, err, want)
		}
	}
	if f, err := b.Fragments(nil, nil); f != 0 || err != nil {
		t.Errorf("%v fragments of an empty board, %v", f, err)
	}
}

func TestWhatIsWrongIsSaid(t *testing.T) {
	b := board(t, "A100-40")
	at := func(name string, start int) partition.Instance {
		p, err := b.Named(name)
		if err != nil {
			t.Fatal(err)
		}
		return partition.Instance{Profile: p.ID, Start: start}
	}
	for _, tt := range []struct {
		layout partition.Layout
		want   string
		kind   error
	}{
		{partition.Layout{at("4g.20gb", 4)}, "4g.20gb cannot start at slice 4, only at 0", errdefs.ErrInvalid},
		{partition.Layout{at("4g.20gb", 0), at("2g.10gb", 2)}, "2g.10gb at slice 2 lies on 4g.20gb at slice 0", errdefs.ErrExhausted},
		{partition.Layout{at("1g.5gb+me", 0), at("1g.5gb+me", 1)}, "2 instances of 1g.5gb+me, the board allows 1", errdefs.ErrExhausted},
		{partition.Layout{{Profile: 77}}, "no profile 77; the board has 7g.40gb, 4g.20gb, 3g.20gb, 2g.10gb, 1g.10gb, 1g.5gb, 1g.5gb+me", errdefs.ErrNotFound},
	} {
		if err := b.Check(tt.layout); err == nil || !strings.Contains(err.Error(), tt.want) || !errors.Is(err, tt.kind) {
			t.Errorf("%s: %v, want %q", b.String(tt.layout), err, tt.want)
		}
	}
	if _, err := b.Named("1g.18gb"); !errors.Is(err, errdefs.ErrNotFound) || !strings.Contains(err.Error(), "1g.5gb") {
		t.Errorf("a profile of another board: %v", err)
	}
	if diff := cmp.Diff("nothing", b.String(nil)); diff != "" {
		t.Error(diff)
	}
}
