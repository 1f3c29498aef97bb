package profiles

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// near reports whether two numbers agree but for rounding.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(math.Abs(a), math.Abs(b), 1e-300) }

// someTimes draws times as kernels take them: log-normal around a random middle.
func someTimes(r *rand.Rand, n int) []float64 {
	middle, spread := math.Exp(7+r.Float64()*9), r.Float64()
	times := make([]float64, n)
	for i := range times {
		times[i] = math.Floor(middle * math.Exp(spread*r.NormFloat64()))
	}
	return times
}

func momentsOf(times []float64) Moments {
	var m Moments
	for _, x := range times {
		m.Add(x)
	}
	return m
}

func TestMomentsAreThoseOfTheTextbook(t *testing.T) {
	r := newRand(t)
	for range 200 {
		times := someTimes(r, 2+r.IntN(500))
		sum, squares := 0.0, 0.0
		for _, x := range times {
			sum += x
		}
		mean := sum / float64(len(times))
		for _, x := range times {
			squares += (x - mean) * (x - mean)
		}
		m := momentsOf(times)
		variance := squares / float64(len(times)-1)
		if !near(m.Mean, mean) || math.Abs(m.Variance()-variance) > 1e-9*(variance+mean*mean) {
			t.Fatalf("mean %g and variance %g of %d times, want %g and %g", m.Mean, m.Variance(), len(times), mean, variance)
		}
	}
}

func TestMergedMomentsAreThoseOfAllSamples(t *testing.T) {
	r := newRand(t)
	for range 200 {
		times := someTimes(r, 1+r.IntN(800))
		cut := r.IntN(len(times) + 1)
		ab, ba := momentsOf(times[:cut]), momentsOf(times[cut:])
		a, b := ab, ba
		ab.Merge(b)
		ba.Merge(a)
		want := momentsOf(times)
		for _, m := range []Moments{ab, ba} {
			if m.Weight != want.Weight || !near(m.Mean, want.Mean) || math.Abs(m.Variance()-want.Variance()) > 1e-9*(want.Variance()+want.Mean*want.Mean) {
				t.Fatalf("merged at %d of %d: %+v, want %+v", cut, len(times), m, want)
			}
		}
	}
}

func TestMomentsForgetWhatWasLongAgo(t *testing.T) {
	var m Moments
	for range 100_000 {
		m.Add(1000)
	}
	if m.Weight > memory || m.Mean != 1000 || m.Variance() != 0 {
		t.Errorf("after 100000 equal samples: %+v", m)
	}
	for range 3 * memory {
		m.Add(2000)
	}
	if m.Mean < 1800 {
		t.Errorf("mean %g long after the change to 2000", m.Mean)
	}
	o := m
	m.Merge(o)
	if m.Weight > memory || !near(m.Mean, o.Mean) {
		t.Errorf("merged with itself: %+v, was %+v", m, o)
	}
}

func TestTheErrorOfAMeanIsUnknownWithoutTwoSamples(t *testing.T) {
	var m Moments
	for _, want := range []bool{true, true, false} {
		if got := math.IsInf(m.Error(), 1); got != want {
			t.Errorf("with %g samples the error is %g", m.Weight, m.Error())
		}
		m.Add(500)
	}
	m = Moments{Weight: 100, Mean: 1000, M2: 99 * 100 * 100}
	if got := m.Error(); !near(got, 0.01) {
		t.Errorf("deviation 10 %%, 100 samples: error %g, want 0.01", got)
	}
}

func TestEveryTimeFallsIntoTheBucketAroundIt(t *testing.T) {
	for b := range bucketsCount {
		if got := bucket(middle(b)); got != b {
			t.Errorf("the middle %d of bucket %d falls into %d", middle(b), b, got)
		}
	}
	tests := []struct {
		ns   uint64
		want int
	}{
		{0, 0}, {255, 0}, {256, 0}, {287, 0}, {288, 1}, {511, 7}, {512, 8},
		{1<<36 - 1, bucketsCount - 1}, {1 << 36, bucketsCount - 1}, {math.MaxUint64, bucketsCount - 1},
	}
	for _, tt := range tests {
		if got := bucket(tt.ns); got != tt.want {
			t.Errorf("%d ns falls into bucket %d, want %d", tt.ns, got, tt.want)
		}
	}
}

// exact is the smallest of sorted times that the part of them does not exceed.
func exact(sorted []float64, part float64) float64 {
	return sorted[max(0, int(math.Ceil(part*float64(len(sorted))))-1)]
}

func TestQuantilesAreWithinTheirBound(t *testing.T) {
	r := newRand(t)
	for range 300 {
		times := someTimes(r, 1+r.IntN(2000))
		var h Histogram
		for i := range times {
			times[i] = max(times[i], 1<<firstOctave)
			h.Add(uint64(times[i]))
		}
		slices.Sort(times)
		for _, part := range []float64{0, 0.1, 0.5, 0.9, 0.99, 1} {
			got, want := float64(h.Quantile(part)), exact(times, part)
			if math.Abs(got-want) > QuantileError*want {
				t.Fatalf("quantile %g of %d times is %g, want %g", part, len(times), got, want)
			}
		}
	}
}

func TestMergedHistogramsAreThoseOfAllSamples(t *testing.T) {
	r := newRand(t)
	for range 100 {
		var a, b, all Histogram
		for _, x := range someTimes(r, r.IntN(memory)) {
			if r.IntN(3) == 0 {
				a.Add(uint64(x))
			} else {
				b.Add(uint64(x))
			}
			all.Add(uint64(x))
		}
		ab, ba := a, b
		ab.Merge(&b)
		ba.Merge(&a)
		if ab != all || ba != all {
			t.Fatal("merging loses or invents counts")
		}
	}
}

func TestHistogramsForgetAndStayInBounds(t *testing.T) {
	r := newRand(t)
	var h Histogram
	for range 20 * memory {
		h.Add(r.Uint64() >> r.IntN(64))
	}
	for range 2 {
		sum := uint32(0)
		for _, c := range h.counts {
			sum += uint32(c)
		}
		if sum != h.total || h.total > memory {
			t.Fatalf("%d counted, %d in total, at most %d", sum, h.total, memory)
		}
		o := h
		h.Merge(&o)
	}
	for range 3 * memory {
		h.Add(100_000)
	}
	if got := float64(h.Quantile(0.5)); math.Abs(got-100_000) > QuantileError*100_000 {
		t.Errorf("median %g long after everything takes 100000", got)
	}
	if got := new(Histogram).Quantile(0.5); got != 0 {
		t.Errorf("an empty histogram has a median of %d", got)
	}
}

func TestGapsArePredictedOnlyWhereTheyAreSteady(t *testing.T) {
	tests := []struct {
		name string
		gaps []float64 // in microseconds, over and over
		n    int
		want time.Duration
	}{
		{"never seen", nil, 0, 0},
		{"seen four times", []float64{600}, 4, 0},
		{"always the same", []float64{600}, 5, 600 * time.Microsecond},
		{"steady within a tenth: two deviations below", []float64{540, 660}, 1000, 479970 * time.Nanosecond},
		{"sometimes half as long", []float64{1000, 500}, 1000, 0},
		{"long now and then", []float64{100, 100, 100, 100, 100, 100, 100, 100, 100, 1000}, 1000, 0},
		{"nothing between launches", []float64{0}, 1000, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var g Gap
			for i := range tt.n {
				g.Add(tt.gaps[i%len(tt.gaps)] * 1000)
			}
			if got := g.Predict(); (got - tt.want).Abs() > time.Microsecond {
				t.Errorf("predicted %v, want %v", got, tt.want)
			}
		})
	}
}

func TestFewGapsFallShortOfTheirPrediction(t *testing.T) {
	r := newRand(t)
	short, predicted := 0, 0
	for range 300 {
		var g Gap
		spread := r.Float64() * 0.25
		draw := func() float64 { return 1e6 * math.Exp(spread*r.NormFloat64()) }
		for range 50 {
			g.Add(draw())
		}
		p := float64(g.Predict())
		if p == 0 {
			continue
		}
		for range 100 {
			predicted++
			if draw() < p {
				short++
			}
		}
	}
	if predicted < 10_000 || short > predicted/20 {
		t.Errorf("%d of %d gaps are shorter than predicted", short, predicted)
	}
}
