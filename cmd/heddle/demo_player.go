package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// playReport is what heddle-play prints at the end.
type playReport struct {
	Device   string  `json:"device"`
	Requests int     `json:"requests"`
	P50Ms    float64 `json:"p50_ms"`
	P99Ms    float64 `json:"p99_ms"`
	ItS      float64 `json:"it_s"`
}

// playStatus is a line that heddle-play prints while it goes on.
type playStatus struct {
	Begun  uint64  `json:"begun"`
	Done   uint64  `json:"done"`
	LastMs float64 `json:"last_ms"`
}

// player is a heddle-play and our ends of the pipes to it.
type player struct {
	*child
	role   demoRole
	ready  *os.File
	start  *os.File
	status *os.File
	last   atomic.Pointer[playStatus]
}

// How often a player says how far it is.
const playStatusInterval = 100 * time.Millisecond

// startPlayer starts a heddle-play that waits for the word to begin.
func startPlayer(dir, name string, role demoRole, env, argv []string) (*player, error) {
	p := &player{role: role}
	var theirs []*os.File
	pipe := func(ours **os.File, weRead bool) error {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		if weRead {
			*ours, theirs = r, append(theirs, w)
		} else {
			*ours, theirs = w, append(theirs, r)
		}
		return nil
	}
	if err := errors.Join(pipe(&p.ready, true), pipe(&p.start, false), pipe(&p.status, true)); err != nil {
		p.closePipes()
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	argv = append(argv, "--ready-fd", "3", "--start-fd", "4", "--status-fd", "5",
		"--status", fmt.Sprint(playStatusInterval.Milliseconds()))
	var err error
	if p.child, err = startChild(dir, name, env, argv, theirs...); err != nil {
		p.closePipes()
		return nil, err
	}
	go p.follow()
	return p, nil
}

// follow keeps the newest status; it ends when the player does.
func (p *player) follow() {
	lines := bufio.NewScanner(p.status)
	for lines.Scan() {
		var s playStatus
		if json.Unmarshal(lines.Bytes(), &s) == nil {
			p.last.Store(&s)
		}
	}
}

const (
	demoReadyLimit = 20 * time.Second
	// From the word to the start: time for both to read it and go to sleep.
	demoStartAhead = 100 * time.Millisecond
)

// startTogether waits until every player has loaded its kernels and gives all of them one moment
// to start at.
func startTogether(ctx context.Context, players []*player) error {
	for _, p := range players {
		if err := p.awaitReady(ctx); err != nil {
			return err
		}
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return fmt.Errorf("read the clock: %w", err)
	}
	at := now.Nano() + demoStartAhead.Nanoseconds()
	for _, p := range players {
		if _, err := fmt.Fprintln(p.start, at); err != nil {
			if errors.Is(err, syscall.EPIPE) {
				return p.ended(ctx)
			}
			return fmt.Errorf("start %s: %w", p.name, err)
		}
	}
	return nil
}

func (p *player) awaitReady(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = p.ready.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := p.ready.SetReadDeadline(time.Now().Add(demoReadyLimit)); err != nil {
		return fmt.Errorf("wait for %s: %w", p.name, err)
	}
	_, err := bufio.NewReader(p.ready).ReadString('\n')
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%s: not ready within %s", p.name, demoReadyLimit)
	}
	return p.ended(ctx)
}

// ended says why a player is ending, whose end of a pipe was closed.
func (p *player) ended(ctx context.Context) error {
	select {
	case <-p.done:
		return p.failure()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// How much longer than planned a run may take: requests that wait, an iteration that is held.
const demoPatience = 30 * time.Second

// report waits for the end of the player, at most demoPatience longer than it was told to play.
func (p *player) report(ctx context.Context, length time.Duration) (playReport, error) {
	var r playReport
	limited, cancel := context.WithTimeout(ctx, length+demoPatience)
	defer cancel()
	if err := p.wait(limited); err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			return r, fmt.Errorf("%s: still at it %s after its time", p.name, demoPatience)
		}
		return r, err
	}
	if err := json.Unmarshal(p.out.Bytes(), &r); err != nil {
		return r, fmt.Errorf("%s: read its report: %w", p.name, err)
	}
	return r, nil
}

func (p *player) close() {
	p.stop(0)
	p.closePipes()
}

func (p *player) closePipes() {
	for _, file := range []*os.File{p.ready, p.start, p.status} {
		if file != nil {
			_ = file.Close() // pipes: nothing to lose
		}
	}
}
