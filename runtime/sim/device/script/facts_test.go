package script

import (
	"math"
	"strings"
	"testing"
)

const oneContext = "device H100\ncontext c\nstream s1 c\nstream s2 c\nstream high c priority=-5\n"

const twoContexts = "device H100\ncontext c1\ncontext c2\nstream s1 c1\nstream s2 c2\n"

// TestFacts holds the model to section 9 of docs/device-model.md, and to the rules that the facts rest on.
func TestFacts(t *testing.T) {
	tests := []struct {
		name, script string
		ends         map[string]float64
	}{
		{"two kernels of S blocks take the time of one", oneContext +
			"0 s1 a kernel grid=132 block=1024 time=100000\n0 s2 b kernel grid=132 block=1024 time=100000\n",
			map[string]float64{"a": 100_000, "b": 100_000}},
		{"two kernels of 2 S blocks take the sum", oneContext +
			"0 s1 a kernel grid=264 block=1024 time=100000\n0 s2 b kernel grid=264 block=1024 time=100000\n",
			map[string]float64{"a": 100_000, "b": 200_000}},
		{"two kernels of one block take the time of one", oneContext +
			"0 s1 a kernel grid=1 block=256 time=50000\n0 s2 b kernel grid=1 block=256 time=50000\n",
			map[string]float64{"a": 50_000, "b": 50_000}},
		{"a stream is in order", oneContext +
			"0 s1 a kernel time=50000\n0 s1 b kernel time=50000\n0 s1 c mark\n",
			map[string]float64{"a": 50_000, "b": 100_000, "c": 100_000}},
		{"a late-comer gets what is left", oneContext +
			"0 s1 a kernel grid=200 block=1024 time=100000\n0 s2 b kernel grid=128 block=1024 time=100000\n",
			map[string]float64{"a": 100_000, "b": 150_000}},
		{"a high-priority kernel waits for a wave, not for the kernel", oneContext +
			"0 s1 low kernel grid=2640 block=1024 time=100000\n15000 high hp kernel grid=264 block=1024 time=10000\n",
			map[string]float64{"hp": 30_000, "low": 110_000}},
		{"a kernel of equal priority waits for the end", oneContext +
			"0 s1 a kernel grid=2640 block=1024 time=100000\n15000 s2 b kernel grid=264 block=1024 time=10000\n",
			map[string]float64{"a": 100_000, "b": 110_000}},
		{"two kernels with m = 0.9 take 1.72 times as long", oneContext +
			"0 s1 a kernel grid=132 block=1024 time=100000 dram=0.9\n" +
			"0 s2 b kernel grid=132 block=1024 time=100000 dram=0.9\n",
			map[string]float64{"a": 172_000, "b": 172_000}},
		{"without MPS one block of another process waits for the quantum, then 100 us", twoContexts +
			"0 s1 train kernel grid=2640 block=1024 time=10000000\n500000 s2 one kernel grid=1 block=32 time=10000\n",
			map[string]float64{"one": 2_110_000, "train": 10_210_000}},
		{"a context without work yields at once", twoContexts +
			"0 s1 a kernel grid=1 time=50000\n10000 s2 b kernel grid=1 time=50000\n",
			map[string]float64{"a": 50_000, "b": 200_000}},
		{"contexts take turns", twoContexts +
			"0 s1 a kernel grid=264 block=1024 time=3000000\n0 s2 b kernel grid=264 block=1024 time=3000000\n",
			map[string]float64{"a": 5_200_000, "b": 6_300_000}},
		{"clients of MPS run together",
			"device H100\ncontext c1 mps=100\ncontext c2 mps=100\nstream s1 c1\nstream s2 c2\n" +
				"0 s1 a kernel grid=132 block=1024 time=100000\n0 s2 b kernel grid=132 block=1024 time=100000\n",
			map[string]float64{"a": 100_000, "b": 100_000}},
		{"a percentage caps the SMs of each client",
			"device H100\ncontext c1 mps=50\ncontext c2 mps=50\nstream s1 c1\nstream s2 c2\n" +
				"0 s1 a kernel grid=264 block=1024 time=100000\n0 s2 b kernel grid=264 block=1024 time=100000\n",
			map[string]float64{"a": 200_000, "b": 200_000}},
		{"copies queue per direction, beside kernels", oneContext +
			"0 s1 k kernel grid=264 block=1024 time=1000000\n0 s2 up copy queue=h2d bytes=55000000\n" +
			"0 high down copy queue=d2h bytes=55000000\n0 high up2 copy queue=h2d bytes=55000000\n",
			map[string]float64{"k": 1_000_000, "up": 1_000_000, "down": 1_000_000, "up2": 2_000_000}},
		{"waits reach across streams", oneContext +
			"0 s1 a kernel time=70000\n0 s2 w wait for=a\n0 s2 b kernel time=10000\n",
			map[string]float64{"w": 70_000, "b": 80_000}},
		{"the legacy stream keeps the order of the blocking ones",
			"device H100\ncontext c\nstream s1 c default=0\nstream s2 c default=0\nstream legacy c default=1\nstream free c\n" +
				"0 s1 a kernel time=50000\n0 legacy l kernel time=50000\n" +
				"0 s2 b kernel time=50000\n0 free f kernel time=50000\n",
			map[string]float64{"a": 50_000, "l": 100_000, "b": 150_000, "f": 50_000}},
		{"what becomes ready at one time arrives in the order of the streams", oneContext +
			"0 s2 x kernel grid=2640 block=1024 time=10000\n0 s1 w wait for=x\n" +
			"0 s2 b kernel grid=2640 block=1024 time=10000\n0 s1 a kernel grid=2640 block=1024 time=10000\n",
			map[string]float64{"a": 20_000, "b": 30_000}},
		{"a newcomer at the very end of a quantum is in time", twoContexts +
			"0 s1 a kernel grid=264 block=1024 time=3000000\n2000000 s2 b kernel time=10000\n",
			map[string]float64{"b": 2_110_000, "a": 3_210_000}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Parse(strings.NewReader(tt.script))
			if err != nil {
				t.Fatal(err)
			}
			results := s.Play()
			for i, it := range s.Items {
				want, asked := tt.ends[it.Label]
				if asked && (!results[i].Done || math.Abs(float64(results[i].End)-want) > 2) {
					t.Errorf("%s ends at %+v, want %.0f", it.Label, results[i], want)
				}
			}
		})
	}
}
