package telemetry

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
)

var epoch = time.Unix(1000, 0)

// observe gives r one round with these readings, at seconds after epoch.
func observe(r *Rater, seconds float64, readings ...Reading) {
	r.Begin()
	for i := range readings {
		r.Observe(epoch.Add(time.Duration(seconds*float64(time.Second))), &readings[i])
	}
	r.End()
}

func reading(launches uint64, d DeviceReading) Reading {
	r := Reading{Client: 1, Launches: launches}
	r.Devices[3] = d
	return r
}

func TestRatesAreOfTheLastInterval(t *testing.T) {
	published := func(busy, held time.Duration) DeviceReading {
		return DeviceReading{Bound: true, Published: true, BusyTime: busy, HeldTime: held, Share: 0.9}
	}
	unpublished := func(share float64) DeviceReading { return DeviceReading{Bound: true, Share: share} }
	tests := []struct {
		name          string
		first, second Reading
		after         float64
		perSecond     float64
		busy, held    float64
	}{
		{"half of two seconds", reading(100, published(0, 0)), reading(300, published(time.Second, 500*time.Millisecond)), 2, 100, 0.5, 0.25},
		{"more than all is all", reading(0, published(0, 0)), reading(1, published(time.Minute, time.Minute)), 1, 1, 1, 1},
		{"counters that go back are no rate", reading(900, published(time.Hour, time.Hour)), reading(5, published(0, 0)), 1, 0, 0, 0},
		{"without a publisher the other source counts", reading(0, unpublished(0.2)), reading(0, unpublished(0.3)), 1, 0, 0.3, 0},
		{"without any source the share is unknown", reading(0, unpublished(-1)), reading(0, unpublished(-1)), 1, 0, -1, 0},
		{"a device that was just opened has no interval", reading(0, DeviceReading{}), reading(0, published(time.Hour, time.Hour)), 1, 0, 0, 0},
		{"no time has passed", reading(0, published(0, 0)), reading(50, published(1, 1)), 0, 0, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := NewRater()
			observe(r, 0, tt.first)
			observe(r, tt.after, tt.second)
			got, ok := r.Of(1)
			d := got.Devices[3]
			if !ok || got.LaunchesPerSecond != tt.perSecond || d.BusyShare != tt.busy || d.HeldShare != tt.held {
				t.Errorf("%v launches/s, busy %v, held %v; want %v, %v, %v",
					got.LaunchesPerSecond, d.BusyShare, d.HeldShare, tt.perSecond, tt.busy, tt.held)
			}
			if got.Launches != tt.second.Launches {
				t.Errorf("%d launches, want %d", got.Launches, tt.second.Launches)
			}
		})
	}
}

func TestClientsThatLeftAreForgotten(t *testing.T) {
	r := NewRater()
	observe(r, 0, Reading{Client: 1}, Reading{Client: 2})
	observe(r, 1, Reading{Client: 2})
	if _, ok := r.Of(1); ok {
		t.Error("client 1 is still known")
	}
	if _, ok := r.Of(2); !ok {
		t.Error("client 2 was forgotten")
	}
}

func TestObservingAKnownClientAllocatesNothing(t *testing.T) {
	r := NewRater()
	one := reading(1, DeviceReading{Bound: true, Published: true})
	observe(r, 0, one)
	now := epoch
	if n := testing.AllocsPerRun(100, func() {
		now = now.Add(time.Second)
		r.Begin()
		r.Observe(now, &one)
		r.End()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestMetricsShowWhatIsKnownAndNothingElse(t *testing.T) {
	c := Client{ID: 7, Tenant: "a", Name: "we\"ird", Priority: 2}
	c.Rates.Launches = 12
	c.Rates.Devices[0] = DeviceRates{DeviceReading: DeviceReading{Bound: true, Published: true, BusyTime: 2 * time.Second, MemoryBytes: 64}}
	c.Rates.Devices[1] = DeviceRates{DeviceReading: DeviceReading{Bound: true, HeldTime: time.Second, Overruns: 3}}
	c.UUIDs[0], c.UUIDs[1] = "GPU-0", "GPU-1"
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(NewCollector(
		func() []Client { return []Client{c} },
		func() Totals { return Totals{Attached: 5, Refused: 2, Evicted: 1} },
	)); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
			t.Fatal(err)
		}
	}
	labels := `client="7",`
	rest := `name="we\"ird",priority="2",tenant="a"}`
	for _, want := range []string{
		"heddle_clients 1\n", "heddle_attaches_total 5\n", "heddle_refusals_total 2\n", "heddle_evictions_total 1\n",
		"heddle_client_launches_total{" + labels + rest + " 12\n",
		"heddle_client_busy_seconds_total{" + labels + `device="GPU-0",` + rest + " 2\n",
		"heddle_client_memory_bytes{" + labels + `device="GPU-0",` + rest + " 64\n",
		"heddle_client_held_seconds_total{" + labels + `device="GPU-1",` + rest + " 1\n",
		"heddle_client_overruns_total{" + labels + `device="GPU-1",` + rest + " 3\n",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %s in\n%s", want, text.String())
		}
	}
	if strings.Contains(text.String(), `heddle_client_busy_seconds_total{client="7",device="GPU-1"`) {
		t.Error("a busy time that nobody publishes is shown")
	}
}
