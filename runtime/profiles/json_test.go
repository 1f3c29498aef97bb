package profiles

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heddle-project/heddle/runtime/errdefs"
	"github.com/heddle-project/heddle/runtime/sched"
)

// rounded compares fractions, infinite ones too, but for rounding: documents have deviations, profiles squares, and figures are short.
var rounded = cmp.Comparer(func(a, b float64) bool {
	return a == b || math.Abs(a-b) <= 1e-7*(max(math.Abs(a), math.Abs(b))+1)
})

func TestWhatIsExportedIsImported(t *testing.T) {
	r := newRand(t)
	for range 6 {
		p := someProfile(r)
		p.Sensitivity[sched.L2] = [4]float64{1, 1.25, 1.5, 2}
		for key, k := range p.Kernels() {
			k.Module = math.MaxUint64 - key // of the kind that JSON's numbers lose
			k.disturbed = 0                 // is not kept
			if r.IntN(2) == 0 {
				k.Figures.Set(Figure(r.IntN(figureCount)), r.Float64())
			}
		}
		p.reassess() // Import does
		document, err := p.Export()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Import(document)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(everything(p), everything(again), fields, rounded); diff != "" {
			t.Fatal(diff)
		}
		if a, b := p.Demand(h100), again.Demand(h100); !cmp.Equal(a, b, rounded) {
			t.Errorf("demand %+v, was %+v", b, a)
		}
	}
}

const smallest = `{"format": "heddle-profile", "version": 1, "workload": "w", "device": "d", "kernels": [%]}`

func TestDocumentsOfOthersAreRead(t *testing.T) {
	document := strings.Replace(smallest, "%", `{
	  "key": "0x10", "name": "saxpy", "grid": [4, 1, 1], "block": [32, 1, 1], "samples": 12, "alone": true,
	  "recent_launches": 3, "time": {"weight": 12, "mean": 50000, "deviation": 1000, "min_ns": 49000, "buckets": [[50000, 12]]}
	}`, 1)
	p, err := Import([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	k := p.Kernel(16)
	if k == nil || k.Mean() != 50*us || !k.Settled() || !near(k.Time.Deviation(), 1000) || k.P90() == 0 || p.MeasureEvery(7) != 7 {
		t.Errorf("%+v", k)
	}
}

func TestDocumentsThatMakeNoSenseAreRefused(t *testing.T) {
	kernel := func(fields string) string {
		return strings.Replace(smallest, "%", `{"key": "0x1", "grid": [1,1,1], "block": [1,1,1], `+fields+`}`, 1)
	}
	time := func(fields string) string { return kernel(`"time": {"buckets": [], "min_ns": 1, ` + fields + `}`) }
	tests := []struct {
		name, document, want string
		kind                 error
	}{
		{"nothing", "", "unexpected end", errdefs.ErrInvalid},
		{"no JSON", "{\n\n  nonsense", "line 3", errdefs.ErrInvalid},
		{"another format", `{"format": "other"}`, `the format is "other"`, errdefs.ErrInvalid},
		{"a newer version", `{"format": "heddle-profile", "version": 2, "new": 1}`, "version 2", errdefs.ErrUnsupported},
		{"a member that does not exist", kernel(`"nickname": "x"`), `unknown field "nickname"`, errdefs.ErrInvalid},
		{"a number that is none", kernel("\n" + `"samples": "many"`), "line 2", errdefs.ErrInvalid},
		{"something behind it", strings.Replace(smallest, "%", "", 1) + "{}", "after top-level value", errdefs.ErrInvalid},
		{"no workload", `{"format": "heddle-profile", "version": 1}`, "workload of 0", errdefs.ErrInvalid},
		{"a key twice", strings.Replace(smallest, "%", `{"key": "1"}, {"key": "0x1"}`, 1), "kernel 1: key 0x1 again", errdefs.ErrInvalid},
		{"no key", strings.Replace(smallest, "%", `{"name": "x"}`, 1), "kernel 0: key 0x0", errdefs.ErrInvalid},
		{"a key that is none", strings.Replace(smallest, "%", `{"key": "saxpy"}`, 1), `"saxpy" is no key`, errdefs.ErrInvalid},
		{"an unknown figure", kernel(`"figures": {"speed": 0.5}`), `"speed"`, errdefs.ErrInvalid},
		{"a figure of percent", kernel(`"figures": {"dram": 50}`), `"dram" is 50`, errdefs.ErrInvalid},
		{"a negative mean", time(`"weight": 1, "mean": -1, "deviation": 0`), "kernel 0: time: weight 1, mean -1", errdefs.ErrInvalid},
		{"a negative deviation", time(`"weight": 5, "mean": 1, "deviation": -1`), "deviation -1", errdefs.ErrInvalid},
		{"a deviation without bounds", time(`"weight": 5, "mean": 1, "deviation": 1e200`), "make no sense", errdefs.ErrInvalid},
		{"more weight than is remembered", time(`"weight": 5000, "mean": 1, "deviation": 0`), "weight 5000", errdefs.ErrInvalid},
		{"a count that overflows", kernel(`"time": {"weight": 1, "mean": 1, "buckets": [[1, 1], [1, 9223372036854775807]]}`), "bucket 1", errdefs.ErrInvalid},
		{"a count that is negative", kernel(`"time": {"weight": 1, "mean": 1, "buckets": [[1, -1]]}`), "bucket 1", errdefs.ErrInvalid},
		{"a least time of ages", kernel(`"time": {"weight": 1, "mean": 1, "min_ns": 1000000000001, "buckets": []}`), "at least", errdefs.ErrInvalid},
		{"a gap without samples", kernel(`"gap": {"weight": 0, "mean": 1}`), "gap: weight 0", errdefs.ErrInvalid},
		{"a logarithm that is none", kernel(`"log_time": {"weight": 1, "mean": 100}`), "log_time", errdefs.ErrInvalid},
		{"a pair without a kernel", strings.Replace(smallest, `"kernels": [%]`, `"kernels": [], "pair_gaps": [{"previous": "1"}]`, 1), "pair 0", errdefs.ErrInvalid},
		{"an unknown channel", strings.Replace(smallest, `"kernels": [%]`, `"kernels": [], "sensitivity": {"sm": [1,1,1,1]}`, 1), `no channel "sm"`, errdefs.ErrInvalid},
		{"a sensitivity of ages", strings.Replace(smallest, `"kernels": [%]`, `"kernels": [], "sensitivity": {"l2": [1,1,1,1e9]}`, 1), "l2", errdefs.ErrInvalid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := Import([]byte(tt.document))
			if !errors.Is(err, tt.kind) || p != nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, %v, want %q", p, err, tt.want)
			}
		})
	}
}

func FuzzImport(f *testing.F) {
	f.Add([]byte(strings.Replace(smallest, "%", "", 1)))
	f.Add([]byte(strings.Replace(smallest, "%", `{"key":"1","time":{"weight":5,"mean":100,"deviation":3,"buckets":[[100,5]]},"gap":{"weight":1,"mean":2}}`, 1)))
	p := New(ID{"w", "d"})
	describe(p, 1, 10)
	for range 4 {
		s := took(1, 100*us)
		s.Previous, s.Gap, s.HasGap = 1, 50*us, true
		p.Observe(s)
	}
	document, err := p.Export()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(document)
	f.Fuzz(func(t *testing.T, document []byte) {
		p, err := Import(document)
		if (err == nil) != (p != nil) {
			t.Fatal("error and value, or neither")
		}
		if err != nil {
			return
		}
		// What is imported can be kept, and exported again.
		again := clone(t, p)
		if !bytes.Equal(p.Encode(), again.Encode()) {
			t.Fatal("kept, it is something else")
		}
		document, err = p.Export()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Import(document); err != nil {
			t.Fatalf("what was exported is refused: %v\n%s", err, document)
		}
	})
}

func TestSummariesSayWhatIsKnown(t *testing.T) {
	p := New(ID{"w", "d"})
	p.Label = "resnet"
	describe(p, 1, 264)
	p.Kernel(1).Figures.Set(DRAM, 0.8)
	for range 20 {
		p.Observe(took(1, 90*us))
		p.Observe(Sample{Kernel: 1, HasGap: true, Gap: 300 * us})
	}
	p.Observe(took(2, 600*us))
	want := Summary{
		ID: p.ID, Label: "resnet", Kernels: 2, Known: 1, Samples: 21, Measuring: true, Covered: 0.75, Longest: 600 * us,
	}
	if diff := cmp.Diff(want, p.Summary(), rounded); diff != "" {
		t.Error(diff)
	}
	wantKernels := []KernelSummary{
		{
			Key: 1, Name: "k", Grid: [3]uint32{264, 1, 1}, Block: [3]uint32{128, 1, 1}, Share: 0.75, Samples: 20, Settled: true,
			Alone: true, Mean: 90 * us, Min: 90 * us, P90: p.Kernel(1).P90(), Predicted: 90 * us, Gap: 300 * us,
			SMNeed: 264, Waves: 2, Class: ClassMemory, DRAM: p.Kernel(1).DRAM(h100),
		},
		{
			Key: 2, Share: 0.25, Samples: 1, Alone: true, Mean: 600 * us, Min: 600 * us, P90: p.Kernel(2).P90(),
			Predicted: 600 * us, DRAM: 0.5, Guessed: true,
		},
	}
	if diff := cmp.Diff(wantKernels, p.Summaries(h100), rounded); diff != "" {
		t.Error(diff)
	}
	if s := New(ID{}).Summary(); s.Kernels != 0 || s.Covered != 0 || !s.Measuring {
		t.Errorf("of nothing: %+v", s)
	}
}
