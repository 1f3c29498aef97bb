package clock

import (
	"context"
	"errors"
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/heddle-project/heddle/runtime/abi"
)

func TestScaleIsExact(t *testing.T) {
	tests := []struct {
		name  string
		p     Params
		ticks uint64
		want  uint64
	}{
		{"at the base", Params{Shift: 32, Mult: 1 << 32, BaseTicks: 500, BaseNs: 9}, 500, 9},
		{"one tick a nanosecond", Params{Shift: 32, Mult: 1 << 32, BaseTicks: 500, BaseNs: 9}, 1500, 1009},
		{"two ticks a nanosecond", Params{Shift: 32, Mult: 1 << 31}, 1000, 500},
		{"40 ns a tick", Params{Shift: 32, Mult: 40 << 32}, 25_000_000, 1e9},
		{"a year at 4 GHz", Params{Shift: 32, Mult: 1 << 30}, 4e9 * 31_536_000, 31_536_000e9},
		{"no fraction", Params{Shift: 0, Mult: 3}, 7, 21},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.p.scale(tt.ticks); got != tt.want {
				t.Errorf("scale(%d) = %d, want %d", tt.ticks, got, tt.want)
			}
		})
	}
}

func FuzzScale(f *testing.F) {
	f.Add(uint64(0), uint64(1)<<32, uint64(0), uint64(0))
	f.Add(uint64(math.MaxUint64), uint64(math.MaxUint64), uint64(1), uint64(5))
	f.Fuzz(func(t *testing.T, ticks, mult, baseTicks, baseNs uint64) {
		p := Params{Shift: shift, Mult: mult, BaseTicks: baseTicks, BaseNs: baseNs}
		want := new(big.Int).SetUint64(ticks - baseTicks)
		want.Mul(want, new(big.Int).SetUint64(mult)).Rsh(want, shift).Add(want, new(big.Int).SetUint64(baseNs))
		want.And(want, new(big.Int).SetUint64(math.MaxUint64))
		if got := p.scale(ticks); got != want.Uint64() {
			t.Errorf("scale(%d) of %+v = %d, want %d", ticks, p, got, want)
		}
	})
}

func TestFromSpeedMeetsItsTwoPoints(t *testing.T) {
	tests := []struct {
		name      string
		ticks, ns uint64
	}{
		{"a processor of 3 GHz, 20 ms", 60_000_000, 20_000_000},
		{"a counter of 24 MHz, told", 24_000_000, 1_000_000_000},
		{"a counter of 1 MHz", 1_000_000, 1_000_000_000},
		{"a counter of 1 GHz, a minute", 60_000_000_000, 60_000_000_000},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			base := sample{ticks: 1 << 50, ns: 12345}
			p := fromSpeed(base, tt.ticks, tt.ns).Params()
			if p.Source != abi.ClockCounter || p.scale(base.ticks) != base.ns {
				t.Errorf("does not show its base: %+v", p)
			}
			got := p.scale(base.ticks+tt.ticks) - base.ns
			if off := int64(got - tt.ns); off < -100 || off > 100 {
				t.Errorf("%d ticks are %d ns, want %d", tt.ticks, got, tt.ns)
			}
		})
	}
	t.Run("a counter that hardly counts is no clock", func(t *testing.T) {
		if c := fromSpeed(sample{}, 1, math.MaxUint64); c != (Clock{}) {
			t.Errorf("got %+v", c)
		}
	})
}

func TestNowGoesOnAndKeepsNearTheOldClock(t *testing.T) {
	c, err := Calibrate(t.Context(), 5*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("this machine's clock: %+v", c.Params())
	for _, c := range []Clock{c, {}} {
		last := c.Now()
		for range 10_000 {
			now := c.Now()
			if now < last {
				t.Fatalf("%+v went back from %d to %d", c, last, now)
			}
			last = now
		}
		// Far wider than any error of measuring: a wrong scale is off by factors.
		before, mid, after := monotonic(), c.Now(), monotonic()
		const slack = uint64(time.Second)
		if mid+slack < before || mid > after+slack {
			t.Errorf("%+v shows %d between %d and %d of CLOCK_MONOTONIC", c, mid, before, after)
		}
	}
}

func TestCalibrateGivesUpWithItsContext(t *testing.T) {
	if !invariant() || frequency() != 0 {
		t.Skip("nothing to measure on this machine")
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stopping")
	cancel(stop)
	if _, err := Calibrate(ctx, time.Hour); !errors.Is(err, stop) {
		t.Errorf("Calibrate = %v, want the context's cause", err)
	}
}

func TestNowAllocatesNothing(t *testing.T) {
	c, err := Calibrate(t.Context(), time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	var m Clock
	if n := testing.AllocsPerRun(100, func() { c.Now(); m.Now() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
