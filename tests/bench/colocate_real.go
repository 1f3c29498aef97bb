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
	if p.policy != "" {
		name := fmt.Sprintf("heddled-%s-%d", p.policy, time.Now().UnixNano())
		d, err := r.startDaemon(ctx, name, fmt.Sprintf("[scheduling]\npolicy = %q\n", p.policy))
		if err != nil {
			return measured{}, err
		}
		environment = func(class string) []string { return d.of(r, class) }
	}
	players, err := c.start(r, p, environment)
	if err != nil {
		return measured{}, err
	}
	if err := together(players); err != nil {
		return measured{}, err
	}
	var m measured
	for _, player := range players {
		line, err := player.line()
		if err != nil {
			return measured{}, err
		}
		var report report
		if err := json.Unmarshal([]byte(line), &report); err != nil {
			return measured{}, fmt.Errorf("%s: said %q: %w", player.name, line, err)
		}
		if player.training {
			m.share += report.PerS * report.DeviceMs / 1e3
		} else {
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
			name = "training"
		}
		proc, err := r.start(name, environment(class), nil, append(slices.Clone(common), args...)...)
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

// together lets all begin at one moment.
func together(players []player) error {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return fmt.Errorf("read the clock: %w", err)
	}
	at := strconv.FormatInt(now.Nano()+startAhead.Nanoseconds(), 10)
	for _, player := range players {
		if _, err := io.WriteString(player.in, at+"\n"); err != nil {
			return player.failure()
		}
	}
	return nil
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }
