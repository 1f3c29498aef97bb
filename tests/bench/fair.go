package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"time"

	"github.com/heddle-project/heddle/tests/bench/kernels"
)

// fairness is the bench of training jobs that share a device inside their class, and its options.
type fairness struct {
	duration    time.Duration
	warmUp      time.Duration
	repetitions int
}

func (b *fairness) flags(f *flag.FlagSet) {
	f.DurationVar(&b.duration, "duration", 10*time.Second, "measured time of each run")
	f.DurationVar(&b.warmUp, "warm-up", 3*time.Second, "played before it and not measured")
	f.IntVar(&b.repetitions, "repetitions", 5, "of each run; medians are reported")
}

func (b *fairness) check() error {
	if b.duration <= 0 || b.warmUp <= 0 || b.repetitions < 1 {
		return errors.New("a number out of range")
	}
	return nil
}

// job is a training job and its weight.
type job struct {
	table  kernels.Table
	weight int
}

// fairCell is some jobs that share a device.
type fairCell struct {
	name  string
	jobs  []job
	limit float64 // how far the share of one may be from what its weight is worth, as a part of that
}

func (*fairness) cells(set *kernels.Set) []fairCell {
	long, other := set.Trainings[0], set.Trainings[1]
	return []fairCell{
		{"alike", []job{{long, 100}, {long, 100}}, 0.02},
		{"different", []job{{long, 100}, {other, 100}}, 0.02},
		{"weights_1_2_4", []job{{long, 100}, {long, 200}, {long, 400}}, 0.03},
	}
}

// bench measures every cell under the policies that share by weight. A share is the work that a job did,
// by what its table says that its launches take, over that of all.
func (b *fairness) bench(ctx context.Context, r *rig, f *figures) error {
	set, err := kernels.Load()
	if err != nil {
		return err
	}
	r.device = []string{"SOFTGPU_GPUS=" + colocateGPU}
	r.realTime = true
	fmt.Printf("kernels of %s, on %s, in turns\n", set.Source, colocateGPU)
	for _, policy := range []string{"heddle", "fair"} {
		for _, cell := range b.cells(set) {
			var off, busy []float64
			for range b.repetitions {
				done, err := b.run(ctx, r, policy, &cell)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", cell.name, policy, err)
				}
				worst, sum := deviation(cell.jobs, done)
				off, busy = append(off, worst), append(busy, sum/b.duration.Seconds())
				fmt.Printf("%s, %s: %.2f s of work in %v, the worst share is off by %.1f %%\n", cell.name, policy, done, b.duration, 100*worst)
			}
			key := fmt.Sprintf("%s_%s_off", cell.name, policy)
			f.add(key, "", off)
			f.add(fmt.Sprintf("%s_%s_device", cell.name, policy), "", busy)
			f.limit(key, cell.limit, "worst share against its weight, as a part of it")
		}
	}
	return nil
}

// deviation is how far the worst of the jobs is from its share, as a part of that, and the sum of what
// they did.
func deviation(jobs []job, done []float64) (worst, sum float64) {
	weights := 0
	for i, j := range jobs {
		sum += done[i]
		weights += j.weight
	}
	for i, j := range jobs {
		share := float64(j.weight) / float64(weights)
		worst = max(worst, math.Abs(done[i]/sum/share-1))
	}
	return worst, sum
}

// run plays the jobs and returns the seconds of work that each did in the measured time.
func (b *fairness) run(ctx context.Context, r *rig, policy string, cell *fairCell) ([]float64, error) {
	first := len(r.procs)
	defer r.drop(first)
	d, err := r.startDaemon(ctx, fmt.Sprintf("heddled-%s-%d", policy, time.Now().UnixNano()), fmt.Sprintf("[scheduling]\npolicy = %q\n", policy))
	if err != nil {
		return nil, err
	}
	var players []player
	for i, j := range cell.jobs {
		name := fmt.Sprintf("job-%d", i)
		proc, err := r.start(name, append(d.of(r, "low"), "HEDDLE_NAME="+name, "HEDDLE_WEIGHT="+strconv.Itoa(j.weight)), nil,
			filepath.Join(r.build, "bin", "heddle-play"), "--json", "--ready-fd", "1", "--start-fd", "0", "--mode", "train",
			"--table", j.table.Path, "--duration", seconds(b.duration+time.Second), "--warmup", seconds(b.warmUp))
		if err != nil {
			return nil, err
		}
		players = append(players, player{proc, true})
		if line, err := proc.line(); err != nil || line != "ready" {
			return nil, fmt.Errorf("%s: said %q: %w", name, line, err)
		}
	}
	start, err := together(players)
	if err != nil {
		return nil, err
	}
	done := make([]float64, len(players))
	for _, look := range []struct {
		after time.Duration
		sign  float64
	}{{b.warmUp, -1}, {b.warmUp + b.duration, 1}} {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Until(start.Add(look.after))):
		}
		clients, err := d.conn.Clients(ctx, nil)
		if err != nil {
			return nil, fmt.Errorf("ask heddled: %w", err)
		}
		for i, j := range cell.jobs {
			for _, client := range clients {
				if client.GetName() == fmt.Sprintf("job-%d", i) {
					done[i] += look.sign * work(&j.table.Workload, client.GetLaunches()).Seconds()
				}
			}
		}
	}
	for _, p := range players { // their own results are checked by them
		if _, err := p.line(); err != nil {
			return nil, err
		}
	}
	return done, nil
}
