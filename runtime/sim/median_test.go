package sim

import (
	"math"
	"testing"
)

func TestMedian(t *testing.T) {
	for _, tt := range []struct {
		of   []float64
		want float64
	}{{nil, 0}, {[]float64{7}, 7}, {[]float64{9, 1}, 5}, {[]float64{5, 1, 100}, 5}, {[]float64{4, 1, 100, 2}, 3}} {
		if got := median(tt.of, func(f float64) float64 { return f }); got != tt.want {
			t.Errorf("median of %v is %v, want %v", tt.of, got, tt.want)
		}
	}
}

func TestRatiosAreTakenWithinASeed(t *testing.T) {
	// The second seed has a burst of requests, alone as well: the ratios are 1.2, 1 and 1.1, whereas
	// the ratio of the medians is 22 to 20 by chance only. The third's oracle gets next to nothing.
	alone := []sample{{p99: 10}, {p99: 50}, {p99: 20}}
	runs := []sample{{p99: 12, share: 0.3, overruns: 2}, {p99: 50, share: 0.1}, {p99: 22, share: 0.4}}
	oracle := []float64{0.4, 0.1, oracleLeast / 2}
	r := row("some", runs, alone, oracle)
	if r.Policy != "some" || r.P99.Ms != 22 || math.Abs(r.P99.OfAlone-1.1) > 1e-9 || r.Share != 0.3 || r.Overruns != 0 {
		t.Errorf("%+v", r)
	}
	if math.Abs(r.OfOracle-0.75) > 1e-9 {
		t.Errorf("ratios to the oracle of 0.75, 1 and none have the median %v", r.OfOracle)
	}
	if r := row("alone", alone, nil, nil); r.P99.OfAlone != 0 || r.OfOracle != 0 {
		t.Errorf("compared with nothing: %+v", r)
	}
}
