package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heddle-project/heddle/runtime/sim"
)

// colocateGPU is the GPU that all share.
const colocateGPU = "H100"

// play is one run.
type play struct {
	cell     *colocated
	service  bool
	gaps     []float64 // between its requests
	trainers int
	policy   string // "" = without Heddle
}

// share makes the rig's device one on which programs run side by side, and prefers them all.
func (c *colocation) share(r *rig) error {
	mps := filepath.Join(r.dir, "mps")
	if err := os.Mkdir(mps, 0o700); err != nil {
		return err
	}
	// This file tells the driver that a server of MPS runs.
	if err := os.WriteFile(filepath.Join(mps, "control"), nil, 0o600); err != nil {
		return err
	}
	r.device = []string{"SOFTGPU_GPUS=" + colocateGPU, "CUDA_MPS_PIPE_DIRECTORY=" + mps}
	r.realTime = true
	return nil
}

// trainingName is what a training job is called in heddled's list.
const trainingName = "training"

// player is a heddle-play that waits for the time to begin.
type player struct {
	*proc
	training bool
}

// report is what a player prints at its end.
type report struct {
	P50Ms    float64 `json:"p50_ms"`
	P99Ms    float64 `json:"p99_ms"`
	PerS     float64 `json:"it_s"`
	DeviceMs float64 `json:"device_time_ms"` // of one iteration
}

// real plays a run in processes on the software GPU.
func (c *colocation) real(ctx context.Context, r *rig, p *play) (measured, error) {
	first := len(r.procs)
	defer r.drop(first)
	environment := func(string) []string { return r.bare() }
	var d *daemon
	if p.policy != "" {
		name := fmt.Sprintf("heddled-%s-%d", p.policy, time.Now().UnixNano())
		var err error
		if d, err = r.startDaemon(ctx, name, fmt.Sprintf("[scheduling]\npolicy = %q\n", p.policy)); err != nil {
			return measured{}, err
		}
		environment = func(class string) []string { return d.of(r, class) }
	}
	players, err := c.start(r, p, environment)
	if err != nil {
		return measured{}, err
	}
	at, err := together(players)
	if err != nil {
		return measured{}, err
	}
	var m measured
	if d != nil {
		if m.share, err = c.progress(ctx, d, p, at); err != nil {
			return measured{}, err
		}
	}
	for _, player := range players {
		line, err := player.line()
		if err != nil {
			return measured{}, err
		}
		var report report
		if err := json.Unmarshal([]byte(line), &report); err != nil {
			return measured{}, fmt.Errorf("%s: said %q: %w", player.name, line, err)
		}
		switch {
		case player.training && d == nil:
			m.share += report.PerS * report.DeviceMs / 1e3
		case !player.training:
			m.p50, m.p99 = report.P50Ms, report.P99Ms
		}
	}
	return m, nil
}

func (c *colocation) start(r *rig, p *play, environment func(class string) []string) ([]player, error) {
	common := []string{
		filepath.Join(r.build, "bin", "heddle-play"), "--json", "--ready-fd", "1", "--start-fd", "0",
		"--duration", seconds(c.duration), "--warmup", seconds(c.warmUp), "--speed", strconv.FormatFloat(1/c.stretch, 'g', -1, 64),
	}
	var players []player
	add := func(training bool, class string, args ...string) error {
		name := "service"
		if training {
			name = trainingName
		}
		proc, err := r.start(name, append(environment(class), "HEDDLE_NAME="+name), nil, append(slices.Clone(common), args...)...)
		if err != nil {
			return err
		}
		players = append(players, player{proc, training})
		if line, err := proc.line(); err != nil || line != "ready" {
			return fmt.Errorf("%s: said %q: %w", name, line, err)
		}
		return nil
	}
	if p.service {
		arrivals := filepath.Join(r.dir, "arrivals.json")
		text, err := json.Marshal(p.gaps)
		if err == nil {
			err = os.WriteFile(arrivals, text, 0o600)
		}
		if err != nil {
			return nil, err
		}
		if err := add(false, "high", "--mode", "infer", "--table", p.cell.service.Path, "--arrivals", arrivals); err != nil {
			return nil, err
		}
	}
	for range p.trainers {
		if err := add(true, "low", "--mode", "train", "--table", p.cell.training.Path); err != nil {
			return nil, err
		}
	}
	return players, nil
}

// startAhead is from the word to the start: time for all to read it and go to sleep.
const startAhead = 100 * time.Millisecond

// together lets all begin at one moment, and returns it.
func together(players []player) (time.Time, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return time.Time{}, fmt.Errorf("read the clock: %w", err)
	}
	start := time.Now().Add(startAhead)
	at := strconv.FormatInt(now.Nano()+startAhead.Nanoseconds(), 10)
	for _, player := range players {
		if _, err := io.WriteString(player.in, at+"\n"); err != nil {
			return time.Time{}, player.failure()
		}
	}
	return start, nil
}

// progress is the work that the training jobs do in the measured time, over that time, by what heddled
// counts. A job itself reports whole iterations: few, of which the last goes on when the service is
// over.
func (c *colocation) progress(ctx context.Context, d *daemon, p *play, start time.Time) (float64, error) {
	var done [2]time.Duration
	var when [2]time.Time
	for i, after := range []time.Duration{c.warmUp, c.warmUp + c.duration} {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(time.Until(start.Add(after))):
		}
		clients, err := d.conn.Clients(ctx, nil)
		if err != nil {
			return 0, fmt.Errorf("ask heddled: %w", err)
		}
		when[i] = time.Now()
		for _, client := range clients {
			if client.GetName() == trainingName {
				done[i] += work(&p.cell.training.Workload, client.GetLaunches())
			}
		}
	}
	return c.stretch * (done[1] - done[0]).Seconds() / when[1].Sub(when[0]).Seconds(), nil
}

// work is the time of that many launches of a workload, alone on the device.
func work(w *sim.Workload, launches uint64) time.Duration {
	n := uint64(len(w.Kernels))
	total := time.Duration(launches/n) * w.Time() // bounded by the time of the run
	for i := range launches % n {
		total += w.Kernels[i].Time
	}
	return total
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }
