package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/heddle-project/heddle/runtime/api"
	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
)

// probe is a workload under measurement.
type probe struct {
	app     *app
	options *probeOptions
	args    []string

	interposer, hog, program string
	node                     node
	device                   string
	policy, policyOrigin     string
	conn                     *api.Conn

	client uint64 // of the workload
	pid    uint32
	done   chan struct{} // closed when the workload ends
}

const (
	hogProgram = "heddle-hog"
	// attachLimit is how long a program may take until it uses the device.
	attachLimit = 60 * time.Second
	// hogLimit is how long a hog may take until its work is there.
	hogLimit = 30 * time.Second
	// probePoll is how often heddled is asked.
	probePoll = 200 * time.Millisecond
	// probePatience is how many times the measuring time may pass until enough was measured.
	probePatience = 5
	// childPatience is how long a process may take to end after a signal.
	childPatience = 3 * time.Second
	// probeEvery is how many launches of the program there are to one that is measured: enough to be
	// sure in a second or two, and not so many that they slow it down.
	probeEvery = 4
	// coveredEnough is the part of the device time that must be of known kernels.
	coveredEnough = 0.75
)

func findHog(interposer string) (string, error) {
	path := filepath.Join(filepath.Dir(interposer), hogProgram)
	if err := executable(path); err != nil {
		return "", fmt.Errorf("%s is not beside the interposer: %w", hogProgram, err)
	}
	return path, nil
}

// start runs a program under the interposer on the probed device.
func (p *probe) start(name, program string, args []string) (*exec.Cmd, error) {
	o := runOptions{name: name, devices: []string{p.device}}
	env, err := o.environment(p.app.environ, p.interposer, p.node, p.app.socketSet)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, args...)
	cmd.Env = env
	// Ctrl-C is ours: a child that got it too would end before we know why.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return cmd, nil
}

// measure runs the workload and all hogs.
func (p *probe) measure(ctx context.Context) ([]probeRow, error) {
	cmd, err := p.start(p.options.name, p.program, p.args[1:])
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = p.app.stderr, p.app.stderr
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.program, err)
	}
	p.pid = uint32(cmd.Process.Pid) // a pid
	p.done = make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ends is its own affair
		close(p.done)
	}()
	defer p.end(cmd)
	if err := p.learn(ctx); err != nil {
		return nil, err
	}
	var rows []probeRow
	for _, c := range probeChannels() {
		if !p.options.wants(c.name) {
			continue
		}
		row, err := p.channel(ctx, c.name)
		if err != nil {
			return nil, err
		}
		row.Kept = c.kept && row.Skipped == ""
		rows = append(rows, row)
	}
	return rows, p.app.explain(p.keep(ctx, rows), p.app.timeout)
}

// end ends the workload: politely, then not.
func (p *probe) end(cmd *exec.Cmd) {
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) // it may have ended by itself
	select {
	case <-p.done:
	case <-time.After(childPatience):
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-p.done
	}
}

// say tells a person how far it is.
func (p *probe) say(format string, args ...any) {
	fmt.Fprintf(p.app.stderr, "heddle probe: "+format+"\n", args...)
}

// learn waits until the workload is attached and its kernels are known.
func (p *probe) learn(ctx context.Context) error {
	p.say("waiting for the program's work on the device")
	began := time.Now()
	for time.Since(began) < attachLimit+p.options.learn {
		device, err := p.look(ctx)
		switch {
		case err != nil:
			return err
		case device == nil && time.Since(began) > attachLimit:
			return fmt.Errorf("the program does not use the device after %s; heddle doctor says whether programs attach", attachLimit)
		case device != nil && !device.GetLearning() && device.GetCoveredShare() >= coveredEnough:
			if err := p.sideBySide(ctx); err != nil {
				return err
			}
			return p.app.explain(p.conn.SetMeasure(ctx, p.client, probeEvery), p.app.timeout)
		}
		if err := p.pause(ctx, probePoll); err != nil {
			return err
		}
	}
	return fmt.Errorf("the program's kernels are not known after %s: each of its launches may be another kernel; give it more time with --learn", p.options.learn)
}

// sideBySide makes sure that there is something to measure.
func (p *probe) sideBySide(ctx context.Context) error {
	devices, err := p.conn.Devices(ctx)
	if err != nil {
		return p.app.explain(err, p.app.timeout)
	}
	for _, d := range devices {
		if d.GetUuid() == p.device && !d.GetMps() {
			return errors.New("kernels of two processes do not run side by side on this device: start MPS first (nvidia-cuda-mps-control -d)")
		}
	}
	return nil
}

// look finds the workload on the device; nil = it is not there yet.
func (p *probe) look(ctx context.Context) (*heddlev1.ClientDevice, error) {
	call, cancel := context.WithTimeout(ctx, p.app.timeout)
	defer cancel()
	list, err := p.conn.Clients(call, nil)
	if err != nil {
		return nil, p.app.explain(err, p.app.timeout)
	}
	for _, c := range list {
		if c.GetPid() != p.pid {
			continue
		}
		p.client = c.GetId()
		for _, d := range c.GetDevices() {
			if d.GetUuid() == p.device {
				return d, nil
			}
		}
	}
	return nil, nil //nolint:nilnil // not there yet: that is no error
}

// pause waits, but not longer than the workload lives.
func (p *probe) pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-p.done:
		return errors.New("the program ended before all was measured: it must go on by itself")
	case <-time.After(d):
		return nil
	}
}

// channel runs the hogs of one channel, one after the other.
func (p *probe) channel(ctx context.Context, name string) (probeRow, error) {
	row := probeRow{Channel: name}
	for level := 1; level <= probeLevels; level++ {
		slowdown, skipped, err := p.beside(ctx, name, level)
		switch {
		case err != nil:
			return row, err
		case skipped != "":
			row.Slowdown, row.Skipped = nil, skipped
			return row, nil
		}
		row.Slowdown = append(row.Slowdown, slowdown)
		p.say("%s %d%%: %.2fx", name, level*100/probeLevels, slowdown)
	}
	return row, nil
}

// beside measures the workload beside one hog.
func (p *probe) beside(ctx context.Context, channel string, level int) (slowdown float64, skipped string, err error) {
	cmd, err := p.start(hogProgram, p.hog, []string{channel, fmt.Sprint(level)})
	if err != nil {
		return 0, "", err
	}
	input, err := cmd.StdinPipe()
	if err != nil {
		return 0, "", err
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return 0, "", err
	}
	cmd.Stderr = p.app.stderr
	if err := cmd.Start(); err != nil {
		return 0, "", fmt.Errorf("start %s: %w", p.hog, err)
	}
	defer func() {
		_ = input.Close() // it ends by itself then
		late := time.AfterFunc(childPatience, func() { _ = cmd.Process.Kill() })
		defer late.Stop()
		_ = cmd.Wait() // what it said counts
	}()
	word, rest, err := p.hear(ctx, output)
	switch {
	case err != nil:
		return 0, "", err
	case word == "skip":
		return 0, rest, nil
	case word != "ready":
		return 0, "", fmt.Errorf("%s %s: %s", hogProgram, channel, rest)
	}
	slowdown, err = p.slowdown(ctx)
	return slowdown, "", err
}

// hear waits for the first line of a hog.
func (p *probe) hear(ctx context.Context, output io.Reader) (word, rest string, err error) {
	line := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(output).ReadString('\n') // ends with the hog
		line <- strings.TrimSpace(text)
	}()
	select {
	case text := <-line:
		word, rest, _ = strings.Cut(text, " ")
		if word == "" {
			word, rest = "error", "ended without a word"
		}
		return word, rest, nil
	case <-time.After(hogLimit):
		return "", "", fmt.Errorf("%s has no work on the device after %s", hogProgram, hogLimit)
	case <-ctx.Done():
		return "", "", ctx.Err()
	case <-p.done:
		return "", "", p.pause(ctx, 0)
	}
}

// slowdown compares what the workload's launches take with its profile, for the measuring time and
// until at least one was measured.
func (p *probe) slowdown(ctx context.Context) (float64, error) {
	before, err := p.look(ctx)
	if err != nil || before == nil {
		return 0, errors.Join(err, gone(before))
	}
	for range probePatience {
		if err := p.pause(ctx, time.Duration(p.options.seconds*float64(time.Second))); err != nil {
			return 0, err
		}
		after, err := p.look(ctx)
		if err != nil || after == nil {
			return 0, errors.Join(err, gone(after))
		}
		expected := after.GetExpected().AsDuration() - before.GetExpected().AsDuration()
		if expected > 0 {
			return float64(after.GetMeasured().AsDuration()-before.GetMeasured().AsDuration()) / float64(expected), nil
		}
	}
	return 0, fmt.Errorf("no launch of the program was measured in %.1f s: give it more time with --seconds", p.options.seconds*probePatience)
}

func gone(d *heddlev1.ClientDevice) error {
	if d != nil {
		return nil
	}
	return fmt.Errorf("the program left the device: %w", os.ErrProcessDone)
}
