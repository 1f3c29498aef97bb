package daemon

import (
	"errors"
	"math"
	"testing"

	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
	"github.com/heddle-project/heddle/runtime/clients"
	"github.com/heddle-project/heddle/runtime/errdefs"
	"github.com/heddle-project/heddle/runtime/library"
	"github.com/heddle-project/heddle/runtime/sched"
)

func TestSensitivitiesAreRead(t *testing.T) {
	got, err := sensitivityOf([]*heddlev1.ChannelSensitivity{
		{Channel: "dram", Slowdown: []float64{0.98, 1.1, 1.2, 1.4}},
		{Channel: "FP64", Slowdown: []float64{1, 1, 1, 2}},
	})
	var want sched.Sensitivity
	want[sched.DRAM], want[sched.FP64] = [4]float64{1, 1.1, 1.2, 1.4}, [4]float64{1, 1, 1, 2}
	if err != nil || got != want {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	for name, bad := range map[string]*heddlev1.ChannelSensitivity{
		"no such channel":   {Channel: "l1", Slowdown: []float64{1, 1, 1, 1}},
		"too few":           {Channel: "l2", Slowdown: []float64{1, 1, 1}},
		"not a number":      {Channel: "l2", Slowdown: []float64{1, 1, 1, math.NaN()}},
		"a negative number": {Channel: "l2", Slowdown: []float64{1, 1, -1, 1}},
		"an absurd number":  {Channel: "l2", Slowdown: []float64{1, 1, 1, math.Inf(1)}},
	} {
		if _, err := sensitivityOf([]*heddlev1.ChannelSensitivity{bad}); !errors.Is(err, errdefs.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatWasAskedForIsMeasured(t *testing.T) {
	l := &learner{sparse: 100, asked: map[uint64]uint32{}, heard: map[uint64]int{7: introduction}}
	alone, watched, low := lessonOn(true, false), lessonOn(false, true), lessonOn(false, false)
	for i, want := range [][3]uint32{{0, 10, 100}, {4, 4, 4}, {0, 10, 100}} {
		switch i {
		case 1:
			l.ask(7, 4)
		case 2:
			l.ask(7, 0)
		}
		if got := [3]uint32{l.every(7, 0, alone), l.every(7, 0, watched), l.every(7, 0, low)}; got != want {
			t.Errorf("step %d: %v, want %v", i, got, want)
		}
	}
}

// Measuring costs a launch microseconds, which many launches a second would feel.
func TestFewOfManyLaunchesAreMeasured(t *testing.T) {
	l := &learner{sparse: 100, asked: map[uint64]uint32{7: 3}, heard: map[uint64]int{8: introduction}}
	watched, low := lessonOn(false, true), lessonOn(false, false)
	for rate, want := range map[uint64][2]uint32{
		5000: {10, 100}, 50_000: {50, 100}, 2_000_000: {2000, 2000}, math.MaxUint64: {measureSparsest, measureSparsest},
	} {
		if got := [2]uint32{l.every(8, rate, watched), l.every(8, rate, low)}; got != want {
			t.Errorf("%d launches a second: one in %v, want %v", rate, got, want)
		}
		if got := l.every(7, rate, watched); got != 3 {
			t.Errorf("%d launches a second: one in %d, where one in 3 was asked for", rate, got)
		}
	}
}

func lessonOn(alone, watched bool) *clients.LessonDevice {
	return &clients.LessonDevice{Alone: alone, Watched: watched}
}

// What is known under its name need not be true of a client that has just come.
func TestANewClientIsMeasuredMoreUntilItToldEnough(t *testing.T) {
	l := &learner{sparse: 100, asked: map[uint64]uint32{}, heard: map[uint64]int{}}
	alone, low := lessonOn(true, false), lessonOn(false, false)
	for _, tt := range []struct {
		heard int
		want  [2]uint32
	}{
		{0, [2]uint32{10, 10}}, {introduction - 1, [2]uint32{10, 10}}, {introduction, [2]uint32{0, 100}},
	} {
		l.heard[7] = tt.heard
		if got := [2]uint32{l.every(7, 5000, alone), l.every(7, 5000, low)}; got != tt.want {
			t.Errorf("after %d launches one in %v, want %v", tt.heard, got, tt.want)
		}
	}
	l.library = library.New(library.Options{})
	l.Leave(7)
	if _, ok := l.heard[7]; ok {
		t.Error("a client that left is not forgotten")
	}
}
