// Package clock is the common clock of the segments: nanoseconds that mean the same in heddled and
// in every client, whatever they run in.
//
// Where the machine has a counter that runs at one speed on all cores and through sleep states,
// that is the clock: reading it costs a few nanoseconds and no namespace shifts it. heddled measures
// its speed once and tells every client in the verdict. Elsewhere the clock is CLOCK_MONOTONIC.
package clock

import (
	"context"
	"fmt"
	"math/bits"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heddle-project/heddle/runtime/abi"
)

// Params tell another process how to read the same clock:
//
//	ns = BaseNs + ((ticks - BaseTicks) * Mult >> Shift)
//
// with a product of 128 bits. Without a counter all but Source are 0.
type Params struct {
	Source    uint32 // abi.ClockMonotonic or abi.ClockCounter
	Shift     uint32
	Mult      uint64
	BaseTicks uint64
	BaseNs    uint64
}

// Clock reads the common clock. The zero value reads CLOCK_MONOTONIC.
type Clock struct{ params Params }

// shift leaves 32 bits behind the point: a speed of 1 GHz and more is then off by less than one
// part in 10^9, and a counter of 1 MHz still fits in Mult.
const shift = 32

// Params returns what a client needs to read this clock.
func (c Clock) Params() Params { return c.params }

// Now returns the time in nanoseconds.
func (c Clock) Now() uint64 {
	if c.params.Source == abi.ClockCounter {
		return c.params.scale(ticks())
	}
	return monotonic()
}

func (p Params) scale(ticks uint64) uint64 {
	high, low := bits.Mul64(ticks-p.BaseTicks, p.Mult)
	return p.BaseNs + (high<<(64-p.Shift) | low>>p.Shift)
}

// Calibrate finds out which clock this machine has, and how fast its counter runs. Measuring takes
// the time span where the counter does not tell its own speed; 20 ms make it right to a few parts
// per million, and everybody uses the same number.
func Calibrate(ctx context.Context, span time.Duration) (Clock, error) {
	if !invariant() {
		return Clock{}, nil
	}
	first := takeSample()
	if hz := frequency(); hz != 0 {
		return fromSpeed(first, hz, uint64(time.Second)), nil
	}
	wait := time.NewTimer(span)
	defer wait.Stop()
	select {
	case <-ctx.Done():
		return Clock{}, fmt.Errorf("calibrate clock: %w", context.Cause(ctx))
	case <-wait.C:
	}
	last := takeSample()
	if last.ticks <= first.ticks || last.ns <= first.ns {
		return Clock{}, nil // a counter that does not count is no clock
	}
	return fromSpeed(last, last.ticks-first.ticks, last.ns-first.ns), nil
}

// fromSpeed makes the clock that shows base and runs at ticks per ns.
func fromSpeed(base sample, ticks, ns uint64) Clock {
	if ns>>(64-shift) >= ticks {
		return Clock{} // slower than the scale can say
	}
	mult, _ := bits.Div64(ns>>(64-shift), ns<<shift, ticks)
	return Clock{Params{
		Source: abi.ClockCounter, Shift: shift, Mult: mult, BaseTicks: base.ticks, BaseNs: base.ns,
	}}
}

// A sample is the same moment on both clocks.
type sample struct{ ticks, ns uint64 }

// takeSample reads the two as close together as a preemptible thread can: the closest of a few
// tries, counter read before and after.
func takeSample() sample {
	var best sample
	closest := ^uint64(0)
	for range 8 {
		before := ticks()
		ns := monotonic()
		after := ticks()
		if apart := after - before; apart < closest {
			closest = apart
			best = sample{ticks: before + apart/2, ns: ns}
		}
	}
	return best
}

func monotonic() uint64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic("clock: CLOCK_MONOTONIC: " + err.Error()) // every kernel that can run us has it
	}
	return uint64(ts.Nano())
}
