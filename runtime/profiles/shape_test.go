package profiles

import (
	"math"
	"testing"
	"time"
)

const us = time.Microsecond

var h100 = Device{SMs: 132, ThreadsPerSM: 2048, BlocksPerSM: 32, RegistersPerSM: 65536, SharedPerSM: 228 << 10}

func TestShapesNeedSMs(t *testing.T) {
	most := [3]uint32{math.MaxUint32, math.MaxUint32, math.MaxUint32}
	tests := []struct {
		name        string
		shape       Shape
		device      Device
		need, waves uint32
	}{
		{"told by the driver", Shape{Grid: [3]uint32{1000, 1, 1}, BlocksPerSM: 8}, h100, 125, 1},
		{"one block more than fits", Shape{Grid: [3]uint32{1057, 1, 1}, BlocksPerSM: 8}, h100, 133, 2},
		{"one block", Shape{Grid: [3]uint32{1, 1, 1}, BlocksPerSM: 8}, h100, 1, 1},
		{"bound by threads", Shape{Grid: [3]uint32{100, 1, 1}, Block: [3]uint32{1024, 1, 1}}, h100, 50, 1},
		{"bound by registers", Shape{Grid: [3]uint32{100, 1, 1}, Block: [3]uint32{256, 1, 1}, Registers: 128}, h100, 50, 1},
		{"bound by shared memory", Shape{Grid: [3]uint32{64, 1, 1}, Block: [3]uint32{64, 1, 1}, DynamicShared: 100 << 10, StaticShared: 10 << 10}, h100, 32, 1},
		{"bound by the number of blocks", Shape{Grid: [3]uint32{64, 1, 1}, Block: [3]uint32{32, 1, 1}}, h100, 2, 1},
		{"nothing is known of the device", Shape{Grid: [3]uint32{64, 1, 1}, Block: [3]uint32{32, 1, 1}}, Device{}, 0, 0},
		{"a block that fits on no SM", Shape{Grid: [3]uint32{64, 1, 1}, Block: [3]uint32{4096, 1, 1}}, h100, 0, 0},
		{"no grid", Shape{Block: [3]uint32{32, 1, 1}, BlocksPerSM: 1}, h100, 0, 0},
		{"lies", Shape{Grid: most, Block: most, Registers: math.MaxUint32, DynamicShared: math.MaxUint32, BlocksPerSM: 1}, h100, math.MaxUint32, 32537632},
		{"lies without blocks per SM", Shape{Grid: most, Block: most, Registers: math.MaxUint32}, h100, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			need, waves := tt.shape.SMNeed(tt.device), tt.shape.Waves(tt.device)
			if need != tt.need || waves != tt.waves {
				t.Errorf("%d SMs in %d waves, want %d in %d", need, waves, tt.need, tt.waves)
			}
		})
	}
}

func TestClassesAreMeasuredElseGuessed(t *testing.T) {
	figures := func(dram, sm float64) Figures {
		var f Figures
		if dram >= 0 {
			f.Set(DRAM, dram)
		}
		if sm >= 0 {
			f.Set(SM, sm)
		}
		return f
	}
	elementwise := Shape{Grid: [3]uint32{4096, 1, 1}, Block: [3]uint32{128, 1, 1}, Registers: 24, BlocksPerSM: 16}
	with := func(change func(*Shape)) Shape {
		s := elementwise
		change(&s)
		return s
	}
	tests := []struct {
		name    string
		shape   Shape
		figures Figures
		device  Device
		time    time.Duration
		want    Class
	}{
		{"measured: memory", Shape{}, figures(0.8, 0.3), h100, 0, ClassMemory},
		{"measured: compute", Shape{}, figures(0.3, 0.8), h100, 0, ClassCompute},
		{"measured: both, memory more", Shape{}, figures(0.9, 0.8), h100, 0, ClassMemory},
		{"measured: both, compute more", Shape{}, figures(0.7, 0.8), h100, 0, ClassCompute},
		{"measured: neither", elementwise, figures(0.3, 0.3), h100, time.Millisecond, ClassUnknown},
		{"measured: only memory, and much", Shape{}, figures(0.7, -1), h100, 0, ClassMemory},
		{"measured: only compute, and much", Shape{}, figures(-1, 0.7), h100, 0, ClassCompute},
		{"streams over the whole device", elementwise, Figures{}, h100, 50 * us, ClassMemory},
		{"over before anything fills", elementwise, Figures{}, h100, 5 * us, ClassUnknown},
		{"never measured", elementwise, Figures{}, h100, 0, ClassUnknown},
		{"does not fill the device", with(func(s *Shape) { s.Grid[0] = 100 }), Figures{}, h100, 50 * us, ClassUnknown},
		{"few threads on an SM", with(func(s *Shape) { s.BlocksPerSM = 2 }), Figures{}, h100, 50 * us, ClassUnknown},
		{"nothing is known of the device", elementwise, Figures{}, Device{}, 50 * us, ClassUnknown},
		{"the registers are not known", with(func(s *Shape) { s.Registers = 0 }), Figures{}, h100, 50 * us, ClassUnknown},
		{"tiles in shared memory", with(func(s *Shape) { s.DynamicShared = 48 << 10 }), Figures{}, h100, 50 * us, ClassCompute},
		{"tiles in registers", with(func(s *Shape) { s.Registers = 168 }), Figures{}, h100, 50 * us, ClassCompute},
		{"a little of both", with(func(s *Shape) { s.Registers = 64 }), Figures{}, h100, 50 * us, ClassUnknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := classify(&tt.shape, &tt.figures, tt.device, tt.time); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}

func TestFiguresAreMergedWhereTheyLack(t *testing.T) {
	var a, b Figures
	a.Set(DRAM, 0.5)
	b.Set(DRAM, 0.7)
	b.Set(L2Hit, 2) // out of bounds
	a.Merge(&b)
	for _, tt := range []struct {
		figure Figure
		want   float64
		ok     bool
	}{{DRAM, 0.5, true}, {L2Hit, 1, true}, {FMA, 0, false}} {
		if got, ok := a.Get(tt.figure); got != tt.want || ok != tt.ok {
			t.Errorf("%v is %g, %t, want %g, %t", tt.figure, got, ok, tt.want, tt.ok)
		}
	}
	if !a.Any() || new(Figures).Any() {
		t.Error("Any is wrong")
	}
}
