package profiles

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// job plays a workload of many kernels, some of which others disturb, and measures it as it is asked to.
type job struct {
	r        *rand.Rand
	p        *Profile
	launches int
	samples  int

	kernels  int
	times    float64 // all take so many times what they took at first
	alone    bool
	together bool
	part     float64 // of its launches that are disturbed
}

const jobSparse = 10

func (j *job) alonetime(kernel int) time.Duration {
	return time.Duration(j.times*float64(20+7*kernel)) * us
}

// play goes on for some launches, and counts those that were measured while all were.
func (j *job) play(launches int) (dense int) {
	for range launches {
		kernel := j.launches % j.kernels
		j.launches++
		every := int(j.p.MeasureEvery(jobSparse))
		if j.r.IntN(every) != 0 {
			continue
		}
		if every == 1 {
			dense++
		}
		j.samples++
		s := took(1+uint64(kernel), steadyTime(j.r, j.alonetime(kernel), 0.03))
		if !j.alone {
			s.DeviceTime, s.Shared, s.Together = disturbedTime(j.r, j.alonetime(kernel), j.part), true, j.together
		}
		j.p.Observe(s)
	}
	return dense
}

// wrong is the part of the kernels whose prediction is off by more than a tenth.
func (j *job) wrong() float64 {
	n := 0
	for kernel := range j.kernels {
		k := j.p.Kernel(1 + uint64(kernel))
		if k == nil || math.Abs(float64(k.Predict())/float64(j.alonetime(kernel))-1) > 0.1 {
			n++
		}
	}
	return float64(n) / float64(j.kernels)
}

// A third more or less in each kernel, as with another batch size, is followed within 25 passes: less
// than a second of most workloads.
func TestEstimatesFollowAWorkloadThatChanges(t *testing.T) {
	for _, factor := range []float64{0.5, 0.77, 1.3, 2} {
		for name, j := range map[string]job{
			"alone":                                 {alone: true},
			"beside others, known alone":            {part: 0.1},
			"beside others, never alone":            {part: 0.1},
			"beside others that can run beside it":  {part: 0.1, together: true},
			"much disturbed, known alone":           {part: 0.2},
			"alone, after it was learnt beside one": {alone: true},
		} {
			if factor > 1 && j.together {
				continue // others may be the reason
			}
			t.Run(fmt.Sprintf("%g times, %s", factor, name), func(t *testing.T) {
				j.r, j.p, j.kernels, j.times = newRand(t), New(ID{"w", "d"}), 66, 1
				alone := j.alone
				j.alone = name != "beside others, never alone" && name != "alone, after it was learnt beside one"
				j.play(100 * j.kernels)
				j.alone = alone
				j.play(20 * j.kernels)
				before := j.samples
				j.times = factor
				dense := j.play(25 * j.kernels)
				if wrong := j.wrong(); wrong > max(0.02, j.part) {
					t.Errorf("%.0f %% of the kernels are predicted wrong; %d samples since", 100*wrong, j.samples-before)
				}
				if dense == 0 {
					t.Error("measuring did not begin again")
				}
				j.play(10 * j.kernels)
				if j.p.MeasureEvery(jobSparse) == 1 {
					t.Error("each launch is measured still")
				}
			})
		}
	}
}

// What others do to a workload is no change of it.
func TestAWorkloadThatIsDisturbedDoesNotDrift(t *testing.T) {
	for name, j := range map[string]job{
		"two in five launches":          {part: 0.4},
		"each, by those beside it":      {part: 1, together: true},
		"none, its times only scatter":  {alone: true},
		"none, and others are about it": {part: 0},
	} {
		t.Run(name, func(t *testing.T) {
			j.r, j.p, j.kernels, j.times = newRand(t), New(ID{"w", "d"}), 66, 1
			alone := j.alone
			j.alone = true
			j.play(100 * j.kernels)
			j.alone = alone
			j.play(5000 * j.kernels)
			if j.p.drift.alarms != 0 {
				t.Errorf("%d alarms", j.p.drift.alarms)
			}
			if wrong := j.wrong(); wrong > 0 {
				t.Errorf("%.0f %% of the kernels are predicted wrong", 100*wrong)
			}
		})
	}
}
