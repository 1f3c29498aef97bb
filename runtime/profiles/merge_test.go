package profiles

import (
	"errors"
	"testing"

	"github.com/heddle-project/heddle/runtime/errdefs"
)

func TestMergedProfilesKnowWhatBothKnew(t *testing.T) {
	r := newRand(t)
	for range 30 {
		a, b := someProfile(r), someProfile(r)
		aAgain, bAgain := clone(t, a), clone(t, b)
		if err := errors.Join(aAgain.Merge(b), bAgain.Merge(a)); err != nil {
			t.Fatal(err)
		}
		if aAgain.Len() != bAgain.Len() || aAgain.measuring != bAgain.measuring {
			t.Fatalf("merged one way %d kernels, the other way %d", aAgain.Len(), bAgain.Len())
		}
		for key, got := range aAgain.Kernels() {
			other := bAgain.Kernel(key)
			if other.Time.Weight != got.Time.Weight || !near(other.Time.Mean, got.Time.Mean) || other.P90() != got.P90() {
				t.Fatalf("kernel %d depends on who is merged into whom", key)
			}
			ka, kb := orNone(a.Kernel(key)), orNone(b.Kernel(key))
			if got.Samples != ka.Samples+kb.Samples || ka.Alone == kb.Alone && got.Time.Weight != ka.Time.Weight+kb.Time.Weight {
				t.Fatalf("kernel %d: %d samples, of %d and %d", key, got.Samples, ka.Samples, kb.Samples)
			}
		}
	}
}

func orNone(k *Kernel) *Kernel {
	if k == nil {
		return &Kernel{}
	}
	return k
}

func TestTimesLearntAloneWin(t *testing.T) {
	for _, aloneFirst := range []bool{true, false} {
		a, b := New(ID{"w", "d"}), New(ID{"w", "d"})
		for range 20 {
			a.Observe(took(1, 100*us))
		}
		for range 200 {
			b.Observe(beside(1, 300*us))
		}
		if !aloneFirst {
			a, b = b, a
		}
		if err := a.Merge(b); err != nil {
			t.Fatal(err)
		}
		if k := a.Kernel(1); k.Mean() != 100*us || !k.Alone || k.Samples != 220 || k.Min != uint64(100*us) {
			t.Errorf("alone first %t: mean %v, alone %t, %d samples", aloneFirst, k.Mean(), k.Alone, k.Samples)
		}
	}
}

func TestOnlyTheSameWorkloadOnTheSameDeviceIsMerged(t *testing.T) {
	for _, id := range []ID{{"other", "d"}, {"w", "other"}} {
		if err := New(ID{"w", "d"}).Merge(New(id)); !errors.Is(err, errdefs.ErrInvalid) {
			t.Errorf("merging %+v: %v", id, err)
		}
	}
}

func TestMergingKeepsWhatRanMost(t *testing.T) {
	a, b := New(ID{"w", "d"}), New(ID{"w", "d"})
	for i := range uint64(kernelsMax) {
		a.Observe(took(i+1, us))
		b.Observe(took(i+1_000_001, us))
		if i%4 == 0 {
			a.Observe(took(i+1, us))
			b.Observe(took(i+1_000_001, us))
		}
	}
	if err := a.Merge(b); err != nil {
		t.Fatal(err)
	}
	if a.Len() != kernelsMax {
		t.Fatalf("%d kernels", a.Len())
	}
	for i := uint64(0); i < kernelsMax; i += 4 {
		if a.Kernel(i+1) == nil || a.Kernel(i+1_000_001) == nil {
			t.Fatalf("kernel %d ran most and is gone", i)
		}
	}
	before := a.Kernel(1).Samples
	if err := a.Merge(a); err != nil || a.Len() != kernelsMax || a.Kernel(1).Samples != 2*before {
		t.Errorf("merged with itself: %v, %d kernels", err, a.Len())
	}
}

func TestNothingOverflowsInManyMerges(t *testing.T) {
	r := newRand(t)
	p := someProfile(r)
	for range 60 {
		if err := p.Merge(p); err != nil {
			t.Fatal(err)
		}
	}
	for key, k := range p.Kernels() {
		if k.Time.Weight > memory || k.uses >= usesMax || k.Time.Weight > 0 && !k.Time.sane(float64(timeMax)) {
			t.Errorf("kernel %d: %+v, %d uses", key, k.Time, k.uses)
		}
	}
	if p.uses >= usesMax {
		t.Errorf("%d uses", p.uses)
	}
}
