package sched_test

import (
	"testing"
	"time"

	"github.com/heddle-project/heddle/runtime/sched"
)

func TestController(t *testing.T) {
	const work = 100 * time.Millisecond
	// run shows a controller one decision after another, each with its slowdown.
	run := func(objective float64, slowdowns ...float64) float64 {
		var c sched.Controller
		measured, expected := time.Duration(0), time.Duration(0)
		for _, s := range slowdowns {
			measured += time.Duration(float64(work) * s)
			expected += work
			c.Observe(objective, measured, expected)
		}
		return c.Permission()
	}
	repeat := func(n int, s float64) []float64 {
		out := make([]float64, n)
		for i := range out {
			out[i] = s
		}
		return out
	}
	t.Run("nothing is allowed before anything was measured", func(t *testing.T) {
		if got := run(1.02); got != 0 {
			t.Errorf("got %v", got)
		}
	})
	t.Run("without an objective nothing is a breach", func(t *testing.T) {
		if got := run(0, repeat(40, 5)...); got != 1 {
			t.Errorf("got %v", got)
		}
	})
	t.Run("what it decided on is told", func(t *testing.T) {
		var c sched.Controller
		if got := c.Observe(1.02, 30*work, 20*work); got != 1.5 {
			t.Errorf("got %v", got)
		}
		if got := c.Observe(1.02, 30*work+1, 20*work+1); got != 0 {
			t.Errorf("on next to nothing it decided on %v", got)
		}
	})
	t.Run("a client that is not slowed down allows more and more", func(t *testing.T) {
		few, many := run(1.02, repeat(4, 1)...), run(1.02, repeat(40, 1)...)
		if !(0 < few && few < many && many == 1) {
			t.Errorf("after 4 decisions %v, after 40 %v", few, many)
		}
	})
	t.Run("a breach takes half", func(t *testing.T) {
		before, after := run(1.02, repeat(40, 1)...), run(1.02, append(repeat(40, 1), 1.05)...)
		if after != before/2 {
			t.Errorf("before %v, after %v", before, after)
		}
	})
	t.Run("less than the objective's own margin is no breach", func(t *testing.T) {
		if got := run(1.10, repeat(40, 1.04)...); got != 1 {
			t.Errorf("got %v", got)
		}
	})
	t.Run("a few kernels decide nothing", func(t *testing.T) {
		var c sched.Controller
		for i := range 10 {
			c.Observe(1.02, time.Duration(i)*9*time.Millisecond, time.Duration(i)*3*time.Millisecond)
		}
		if got := c.Permission(); got != 0 {
			t.Errorf("got %v", got)
		}
	})
	t.Run("counters that begin anew decide nothing", func(t *testing.T) {
		var c sched.Controller
		for i := range 41 {
			c.Observe(1.02, time.Duration(i)*work, time.Duration(i)*work)
		}
		c.Observe(1.02, time.Second, time.Millisecond)
		if got := c.Permission(); got != 1 {
			t.Errorf("got %v", got)
		}
	})
}

func TestPairs(t *testing.T) {
	p := sched.Pairs{Forgive: 10 * time.Minute}
	const minute = uint64(time.Minute)
	p.Strike(1*minute, 7, 2)
	if p.Struck(1*minute, 7, 2) {
		t.Error("one strike is out")
	}
	p.Strike(2*minute, 7, 2)
	if !p.Struck(2*minute, 7, 2) || !p.Struck(11*minute, 7, 2) {
		t.Error("two strikes are not out")
	}
	if p.Struck(2*minute, 7, 3) || p.Struck(2*minute, 8, 2) || p.Struck(2*minute, 2, 7) {
		t.Error("another pair is out")
	}
	if p.Struck(12*minute, 7, 2) {
		t.Error("not forgiven after ten minutes")
	}
	p.Strike(12*minute, 7, 2)
	if p.Struck(12*minute, 7, 2) {
		t.Error("what is forgiven counts again")
	}
}
