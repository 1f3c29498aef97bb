package profiles

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func took(kernel uint64, t time.Duration) Sample {
	return Sample{Kernel: kernel, DeviceTime: t, Measured: true}
}

func beside(kernel uint64, t time.Duration) Sample {
	s := took(kernel, t)
	s.Shared = true
	return s
}

// steadyTime draws a time around a middle with a relative deviation.
func steadyTime(r *rand.Rand, middle time.Duration, spread float64) time.Duration {
	return time.Duration(float64(middle) * math.Exp(spread*r.NormFloat64()))
}

func TestAKernelIsKnownWhenItsMeanIs(t *testing.T) {
	tests := []struct {
		name  string
		times []time.Duration // over and over
		want  int             // samples until it is settled
	}{
		{"always the same", []time.Duration{100 * us}, 3},
		{"within a tenth", []time.Duration{95 * us, 105 * us}, 3},
		{"once half as long again", []time.Duration{100 * us, 100 * us, 150 * us, 100 * us}, 10},
		{"all over the place", []time.Duration{10 * us, 100 * us, 1000 * us}, 10},
		{"too short to be measured", []time.Duration{0}, 10},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := New(ID{"w", "d"})
			for i := range tt.want {
				if k := p.Kernel(1); k != nil && k.Settled() {
					t.Fatalf("settled after %d samples, want %d", i, tt.want)
				}
				if o := p.Observe(took(1, tt.times[i%len(tt.times)])); o.Expected != 0 {
					t.Fatalf("sample %d: expected %v before anything is known", i, o.Expected)
				}
			}
			if !p.Kernel(1).Settled() {
				t.Errorf("not settled after %d samples: %+v", tt.want, p.Kernel(1).Time)
			}
		})
	}
}

func TestMeasuringEndsWhenTheKernelsAreKnown(t *testing.T) {
	r := newRand(t)
	p := New(ID{"w", "d"})
	const kernels, sparse = 40, 100
	samples := 0
	for p.MeasureEvery(sparse) == 1 {
		if samples++; samples > 2000 {
			t.Fatal("no end after 2000 samples")
		}
		p.Observe(took(1+uint64(samples%kernels), steadyTime(r, 50*us, 0.1)))
	}
	if samples < 3*kernels || p.MeasureEvery(sparse) != sparse || p.MeasureEvery(0) != 0 {
		t.Errorf("after %d samples one in %d", samples, p.MeasureEvery(sparse))
	}
	for range 2000 {
		if p.Observe(took(1+uint64(r.IntN(kernels)), steadyTime(r, 50*us, 0.1))); p.MeasureEvery(sparse) == 1 {
			t.Fatal("measuring again, though nothing changed")
		}
	}
	// Another phase of the program: half of its launches are of kernels never seen.
	for i := range uint64(20) {
		p.Observe(took(1000+i, 50*us))
		p.Observe(took(1+i, 50*us))
	}
	if p.MeasureEvery(sparse) != 1 {
		t.Error("unknown kernels, and measuring does not begin again")
	}
}

func TestAKernelThatChangesIsLearntAnew(t *testing.T) {
	r := newRand(t)
	for _, factor := range []float64{0.25, 0.5, 0.7, 1.5, 2, 10} {
		for _, spread := range []float64{0, 0.02, 0.1} {
			t.Run(fmt.Sprintf("%g times, spread %g", factor, spread), func(t *testing.T) {
				p := New(ID{"w", "d"})
				for range 200 {
					p.Observe(took(1, steadyTime(r, 100*us, spread)))
				}
				if p.MeasureEvery(50) != 50 || p.Kernel(1).Changes != 0 {
					t.Fatalf("before the change: %+v", p.Kernel(1).Time)
				}
				after := time.Duration(factor * float64(100*us))
				n := 1
				for !p.Observe(took(1, steadyTime(r, after, spread))).Changed {
					if n++; n > 25 {
						t.Fatalf("not noticed in %d samples", n)
					}
				}
				if p.MeasureEvery(50) != 1 {
					t.Error("measuring does not begin again")
				}
				for range 20 {
					p.Observe(took(1, steadyTime(r, after, spread)))
				}
				if got := float64(p.Kernel(1).Mean()) / float64(after); math.Abs(got-1) > 0.15 {
					t.Errorf("mean is %g of what it takes now", got)
				}
			})
		}
	}
}

func TestSteadyKernelsRarelyChange(t *testing.T) {
	r := newRand(t)
	changes, samples := 0, 0
	for _, spread := range []float64{0, 0.03, 0.1, 0.3, 0.7} {
		for k := range uint64(20) {
			p := New(ID{"w", "d"})
			for range 2000 {
				samples++
				if p.Observe(took(k+1, steadyTime(r, 80*us, spread))).Changed {
					changes++
				}
			}
		}
	}
	if changes > samples/10_000 {
		t.Errorf("%d changes in %d samples of kernels that did not change", changes, samples)
	}
}

func TestOneDisturbedLaunchIsNoChange(t *testing.T) {
	p := New(ID{"w", "d"})
	for i := range 1000 {
		length := 100 * us
		if i%50 == 49 {
			length = 20 * time.Millisecond // preempted
		}
		if p.Observe(took(1, length)).Changed {
			t.Fatalf("sample %d is taken for a change", i)
		}
	}
}

func TestLaunchesBesideOthersTeachOnlyWhatIsNotKnown(t *testing.T) {
	p := New(ID{"w", "d"})
	for range 20 {
		p.Observe(beside(1, 300*us))
	}
	k := p.Kernel(1)
	if k.Mean() != 300*us || k.Alone {
		t.Fatalf("a makeshift of %v, alone %t", k.Mean(), k.Alone)
	}
	if p.Observe(took(1, 100*us)); k.Mean() != 100*us || !k.Alone || k.Settled() {
		t.Errorf("after one launch alone: %v, alone %t, settled %t", k.Mean(), k.Alone, k.Settled())
	}
	for range 20 {
		p.Observe(took(1, 100*us))
	}
	for range 1000 {
		if o := p.Observe(beside(1, 300*us)); o.Expected != 100*us || o.Changed {
			t.Fatalf("disturbed: %+v", o)
		}
	}
	if k.Mean() != 100*us || k.Samples != 41 {
		t.Errorf("mean %v of %d samples", k.Mean(), k.Samples)
	}
}

func TestWhatTheNextLaunchTakesIsPredicted(t *testing.T) {
	p := New(ID{"w", "d"})
	for i := range 100 {
		p.Observe(took(1, 100*us+time.Duration(i%10)*us))
		p.Observe(took(2, 100*us+time.Duration(i%5)/4*900*us)) // one in five takes a millisecond
	}
	if got := p.Kernel(1).Predict(); got != p.Kernel(1).Mean() || got < 104*us || got > 105*us {
		t.Errorf("steady: %v", got)
	}
	if got := float64(p.Kernel(2).Predict()); math.Abs(got-1e6) > QuantileError*1e6 {
		t.Errorf("one in five takes a millisecond: %v", time.Duration(got))
	}
	if got := new(Kernel).Predict(); got != 0 {
		t.Errorf("never measured: %v", got)
	}
}

func TestGapsArePredictedFromThePairThenFromTheKernel(t *testing.T) {
	p := New(ID{"w", "d"})
	gap := func(previous, kernel uint64, g time.Duration) {
		p.Observe(Sample{Kernel: kernel, Previous: previous, Gap: g, HasGap: true})
	}
	for i := range time.Duration(20) {
		gap(1, 9, 500*us)
		gap(2, 9, 520*us)
		gap(3, 9, (400+i*10)*us) // spread, but not so much that the kernel's own is
		gap(4, 8, 100*us)
		gap(5, 8, 900*us)
		gap(0, 7, 300*us)
	}
	for range 4 {
		gap(6, 9, 500*us)
	}
	single := p.Gap(0, 9)
	tests := []struct {
		name             string
		previous, kernel uint64
		want             time.Duration
	}{
		{"the pair is known", 1, 9, 500 * us},
		{"another pair is known", 2, 9, 520 * us},
		{"the pair was seen too rarely", 6, 9, single},
		{"the pair was never seen", 77, 9, single},
		{"only the pair is steady", 4, 8, 100 * us},
		{"nothing is steady", 6, 8, 0},
		{"nothing came before", 0, 7, 300 * us},
		{"a kernel never seen", 1, 1234, 0},
	}
	for _, tt := range tests {
		if got := p.Gap(tt.previous, tt.kernel); (got - tt.want).Abs() > 1 {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	if single < 400*us || single > 500*us {
		t.Errorf("the kernel's own gap is %v", single)
	}
}

func TestSamplesThatMakeNoSenseHarmNobody(t *testing.T) {
	p := New(ID{"w", "d"})
	for _, s := range []Sample{
		{}, {Measured: true, DeviceTime: 5}, {Kernel: 1}, {Kernel: 1, Measured: true, DeviceTime: -5},
		{Kernel: 1, Measured: true, DeviceTime: math.MaxInt64}, {Kernel: 1, HasGap: true, Gap: math.MinInt64},
		{Kernel: 1, HasGap: true, Gap: math.MaxInt64, Previous: math.MaxUint64},
	} {
		p.Observe(s)
	}
	p.Describe(Description{Name: "no key"})
	k := p.Kernel(1)
	if p.Len() != 1 || k.Time.Mean > float64(timeMax) || k.Time.Mean < 0 || math.IsNaN(k.Time.Mean) || !k.Time.sane(float64(timeMax)) {
		t.Errorf("%d kernels, times %+v", p.Len(), k.Time)
	}
}

func TestDescriptionsAreKeptBoundedAndReplaced(t *testing.T) {
	p := New(ID{"w", "d"})
	long := strings.Repeat("é", nameMax)
	p.Describe(Description{Key: 1, Name: "x" + long})
	if name := p.Kernel(1).Name; len(name) > nameMax || !utf8.ValidString(name) {
		t.Errorf("a name of %d bytes, valid %t", len(name), utf8.ValidString(name))
	}
	for range 5 {
		p.Observe(took(1, 100*us))
	}
	p.Describe(Description{Key: 1, Name: "saxpy", Shape: Shape{Registers: 32}})
	if k := p.Kernel(1); k.Name != "saxpy" || k.Shape.Registers != 32 || k.Samples != 5 {
		t.Errorf("described again: %+v", k)
	}
}

func TestAFloodOfKernelsDisplacesNoneThatRun(t *testing.T) {
	p := New(ID{"w", "d"})
	flood := uint64(1000)
	for range 20 * kernelsMax {
		flood++
		p.Observe(took(flood, us))
		p.Observe(took(flood%5+1, us))
		if p.Len() > kernelsMax {
			t.Fatalf("%d kernels", p.Len())
		}
	}
	for k := range uint64(5) {
		if p.Kernel(k+1) == nil || p.Kernel(k+1).Samples < 1000 {
			t.Errorf("kernel %d is forgotten", k+1)
		}
	}
	for i := range uint64(2 * pairsMax) {
		p.Observe(Sample{Kernel: 1, Previous: i + 1, HasGap: true, Gap: us})
	}
	if got := p.pairs.len(); got != pairsMax {
		t.Errorf("%d pairs", got)
	}
}

func TestTheListOfUsesIsWhole(t *testing.T) {
	r := newRand(t)
	l := newLRU(16, func(v *uint32) uint32 { return *v })
	for range 5000 {
		key := uint64(r.IntN(40))
		v, isNew := l.use(key)
		if isNew != (*v == 0) {
			t.Fatalf("key %d: new %t, value %d", key, isNew, *v)
		}
		*v++
		if l.newest.key != key {
			t.Fatalf("used %d, and %d is the newest", key, l.newest.key)
		}
		count := 0
		for n := l.oldest; n != nil; n = n.newer {
			if count++; n.newer != nil && n.newer.older != n || l.byKey[n.key] != n {
				t.Fatal("the list is torn")
			}
		}
		if count != l.len() || count > 16 {
			t.Fatalf("%d in the list, %d by key", count, l.len())
		}
	}
}

func TestObservingAllocatesNothing(t *testing.T) {
	r := newRand(t)
	p := New(ID{"w", "d"})
	samples := make([]Sample, 512)
	for i := range samples {
		samples[i] = took(uint64(i%37)+1, steadyTime(r, 50*us, 0.5))
		samples[i].Previous, samples[i].Gap, samples[i].HasGap = uint64(i%11), 100*us, i%3 == 0
		samples[i].Shared = i%5 == 0
		p.Observe(samples[i])
	}
	i := 0
	allocs := testing.AllocsPerRun(5000, func() {
		p.Observe(samples[i%len(samples)])
		i++
	})
	if allocs != 0 {
		t.Errorf("%g allocations for a sample", allocs)
	}
}

func BenchmarkObserve(b *testing.B) {
	r := newRand(b)
	p := New(ID{"w", "d"})
	samples := make([]Sample, 512)
	for i := range samples {
		samples[i] = took(uint64(i%200)+1, steadyTime(r, 50*us, 0.1))
	}
	i := 0
	for b.Loop() {
		p.Observe(samples[i%len(samples)])
		i++
	}
}

func TestTheSameSamplesGiveTheSameProfile(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	learn := func() string {
		r := rand.New(rand.NewPCG(seed, 0))
		p := someProfile(r)
		text := ""
		for key, k := range p.Kernels() {
			text += fmt.Sprintf("%d %+v %v\n", key, k.Time, p.Gap(1, key))
		}
		return text
	}
	if diff := cmp.Diff(learn(), learn()); diff != "" {
		t.Error(diff)
	}
}

// someProfile has learnt from random samples of a random program.
func someProfile(r *rand.Rand) *Profile {
	p := New(ID{"name:some", "H100"})
	p.Label = "some"
	kernels := 1 + r.IntN(60)
	for i := range kernels {
		if r.IntN(4) == 0 {
			continue // not described
		}
		d := Description{Key: uint64(i) + 1, Name: fmt.Sprintf("kernel_%d", i), Module: r.Uint64(), Graph: r.IntN(9) == 0}
		d.Shape = Shape{
			Grid: [3]uint32{1 + r.Uint32N(500), 1, 1}, Block: [3]uint32{32 * (1 + r.Uint32N(32)), 1, 1},
			DynamicShared: r.Uint32N(48 << 10), Registers: r.Uint32N(128), BlocksPerSM: r.Uint32N(17),
		}
		p.Describe(d)
	}
	for range r.IntN(3000) {
		key := uint64(r.IntN(kernels))
		s := took(key+1, steadyTime(r, time.Duration(key+1)*20*us, 0.2))
		s.Previous, s.Gap, s.HasGap = uint64(r.IntN(kernels)), steadyTime(r, 400*us, 0.1), r.IntN(3) == 0
		s.Shared = r.IntN(4) == 0
		p.Observe(s)
	}
	return p
}
