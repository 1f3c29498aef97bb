package shm

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heddle-project/heddle/runtime/abi"
	"github.com/heddle-project/heddle/runtime/errdefs"
)

// newTable is a verdict segment in ordinary Go memory, where the race detector sees it.
func newTable() *Verdict {
	return &Verdict{seg: view[abi.VerdictSegment](aligned(nil, abi.SizeofVerdictSegment))}
}

// lookup is the client's side, in the order of the contract: key, values, key.
func lookup(seg *abi.VerdictSegment, key uint64) (ProfileEntry, bool) {
	for i := range abi.ProfileProbes {
		shared := &seg.Profile[(int(key>>abi.ProfileShift)+i)%abi.ProfileEntries]
		switch atomic.LoadUint64(&shared.Key) {
		case 0:
			return ProfileEntry{}, false
		case key:
			e := ProfileEntry{
				Key:      key,
				Estimate: time.Duration(atomic.LoadUint64(&shared.EstimateNs)),
				Gap:      time.Duration(atomic.LoadUint64(&shared.GapNs)),
				CoRun:    atomic.LoadUint32(&shared.Flags)&abi.ProfileCorun != 0,
				Steady:   atomic.LoadUint32(&shared.Flags)&abi.ProfileSteady != 0,
				SMNeed:   atomic.LoadUint32(&shared.SMNeed),
			}
			return e, atomic.LoadUint64(&shared.Key) == key
		}
	}
	return ProfileEntry{}, false
}

// crowded gives keys whose first places are few, so that they get into each other's way.
func crowded(r *rand.Rand) uint64 {
	return (uint64(r.IntN(8))+abi.ProfileEntries-4)<<abi.ProfileShift | uint64(1+r.IntN(6))
}

func valuesOf(key uint64, version int) ProfileEntry {
	n := key&0xffffff + 100*uint64(version)
	return ProfileEntry{
		Key: key, Estimate: time.Duration(n + 1), Gap: time.Duration(n + 2), CoRun: n%2 == 0, Steady: n%3 == 0, SMNeed: uint32(n + 3),
	}
}

func TestProfileTableHoldsWhatAMapHolds(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	v := newTable()
	want := map[uint64]ProfileEntry{}
	dropped := 0
	for round := range 20_000 {
		key := crowded(r)
		switch what := r.IntN(100); {
		case what == 0:
			v.ClearProfile()
			clear(want)
		case what < 30:
			_, there := want[key]
			if got := v.RemoveProfile(key); got != there {
				t.Fatalf("round %d: RemoveProfile(%#x) = %v", round, key, got)
			}
			delete(want, key)
		default:
			e := valuesOf(key, round)
			n, err := v.PublishProfile([]ProfileEntry{e})
			if err != nil {
				t.Fatal(err)
			}
			if _, there := want[key]; there && n != 0 {
				t.Fatalf("round %d: no place for key %#x, which is there", round, key)
			}
			if n == 0 {
				want[key] = e
			}
			dropped += n
		}
		if v.ProfileCount() != len(want) {
			t.Fatalf("round %d: %d entries, want %d", round, v.ProfileCount(), len(want))
		}
		for k, e := range want {
			if got, ok := lookup(v.seg, k); !ok || got != e {
				t.Fatalf("round %d: key %#x = %+v, %v; want %+v", round, k, got, ok, e)
			}
		}
		if _, ok := lookup(v.seg, key); ok {
			if _, there := want[key]; !there {
				t.Fatalf("round %d: key %#x is found and was removed", round, key)
			}
		}
	}
	if dropped == 0 {
		t.Error("the table never had no place: the test misses that")
	}
}

func TestProfileTableHoldsAThousandHashes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	v := newTable()
	entries := make([]ProfileEntry, 1000)
	for i := range entries {
		entries[i] = valuesOf(r.Uint64()|1, 0)
	}
	if dropped, err := v.PublishProfile(entries); dropped != 0 || err != nil || v.ProfileCount() != 1000 {
		t.Errorf("dropped %d, %v, holds %d", dropped, err, v.ProfileCount())
	}
	for _, e := range entries {
		if got, ok := lookup(v.seg, e.Key); !ok || got != e {
			t.Errorf("key %#x = %+v, %v", e.Key, got, ok)
		}
	}
}

// TestProfileReaderNeverTakesOneKernelForAnother lets no key come back once it was removed: against
// that, in the moment of one look, the protocol does not help, and a client would not mind.
func TestProfileReaderNeverTakesOneKernelForAnother(t *testing.T) {
	const keys = 50_000
	keyOf := func(n uint64) uint64 { return (n%8+abi.ProfileEntries-4)<<abi.ProfileShift | (n + 1) }
	v := newTable()
	var latest atomic.Uint64
	var readers sync.WaitGroup
	for i := range uint64(2) {
		readers.Go(func() {
			r := rand.New(rand.NewPCG(i, 1))
			found := 0
			for now := uint64(0); now < keys-1; now = latest.Load() {
				key := keyOf(now - min(now, r.Uint64N(40)))
				e, ok := lookup(v.seg, key)
				if ok && e != valuesOf(key, 0) {
					t.Errorf("key %#x = %+v", key, e)
					return
				}
				if ok {
					found++
				}
			}
			t.Logf("found %d times", found)
		})
	}
	r := rand.New(rand.NewPCG(9, 9))
	var alive []uint64
	for n := range uint64(keys) {
		dropped, err := v.PublishProfile([]ProfileEntry{valuesOf(keyOf(n), 0)})
		if err != nil {
			t.Error(err)
		}
		if dropped == 0 {
			alive = append(alive, keyOf(n))
		}
		if len(alive) > 16 {
			i := r.IntN(len(alive))
			v.RemoveProfile(alive[i])
			alive = slices.Delete(alive, i, i+1)
		}
		latest.Store(n)
	}
	readers.Wait()
}

func TestPublishProfileRefusesNonsenseWhole(t *testing.T) {
	tests := []struct {
		name string
		bad  ProfileEntry
	}{
		{"no key", ProfileEntry{Estimate: 1}},
		{"a negative estimate", ProfileEntry{Key: 2, Estimate: -1}},
		{"a negative gap", ProfileEntry{Key: 2, Gap: -1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := newTable()
			if _, err := v.PublishProfile([]ProfileEntry{{Key: 1}, tt.bad}); !errors.Is(err, errdefs.ErrInvalid) {
				t.Errorf("error = %v", err)
			}
			if v.ProfileCount() != 0 {
				t.Errorf("%d entries were published all the same", v.ProfileCount())
			}
		})
	}
}

func TestProfileOfNothing(t *testing.T) {
	v := newTable()
	v.ClearProfile()
	if v.RemoveProfile(0) || v.RemoveProfile(7) || v.ProfileCount() != 0 {
		t.Error("an empty table had something in it")
	}
}

func TestReplaceProfileLeavesWhatItWasGiven(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	v := newTable()
	for round := range 500 {
		want := map[uint64]ProfileEntry{}
		var entries []ProfileEntry
		for range r.IntN(20) {
			if key := crowded(r); want[key].Key == 0 {
				want[key] = valuesOf(key, r.IntN(3))
				entries = append(entries, want[key])
			}
		}
		dropped, err := v.ReplaceProfile(entries)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, key := range everyCrowded() {
			e, ok := lookup(v.seg, key)
			if ok && e != want[key] {
				t.Fatalf("round %d: key %#x has %+v, want %+v", round, key, e, want[key])
			}
			if ok {
				found++
			}
		}
		if found+dropped != len(entries) || v.ProfileCount() != found {
			t.Fatalf("round %d: %d found and %d dropped of %d, the table counts %d", round, found, dropped, len(entries), v.ProfileCount())
		}
	}
	if _, err := v.ReplaceProfile([]ProfileEntry{{Key: 0}}); !errors.Is(err, errdefs.ErrInvalid) {
		t.Errorf("key 0: %v", err)
	}
}

// everyCrowded is all that crowded can give.
func everyCrowded() (keys []uint64) {
	for place := range uint64(8) {
		for n := range uint64(6) {
			keys = append(keys, (place+abi.ProfileEntries-4)<<abi.ProfileShift|(1+n))
		}
	}
	return keys
}
