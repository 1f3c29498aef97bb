package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// child is a process of the demo: in a process group of its own, so that a Ctrl-C reaches the demo
// alone and the demo ends its children in order; and dying with it, however that ends.
type child struct {
	name string
	cmd  *exec.Cmd
	log  *os.File
	out  bytes.Buffer
	done chan struct{} // closed when the process is gone and its output complete
	err  error         // of the wait; after done
}

// startChild starts a process whose stderr goes to NAME.log in dir. files become its descriptors
// from 3 on and are closed here in any case. It must be called on the thread that stays.
func startChild(dir, name string, env, argv []string, files ...*os.File) (*child, error) {
	defer func() {
		for _, file := range files {
			_ = file.Close() // the child has its own; a failed close of ours loses nothing
		}
	}()
	log, err := os.OpenFile(filepath.Join(dir, name+".log"), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	c := &child{name: name, cmd: exec.Command(argv[0], argv[1:]...), log: log, done: make(chan struct{})}
	c.cmd.Env = env
	c.cmd.Dir = dir
	c.cmd.Stdout = &c.out
	c.cmd.Stderr = log
	c.cmd.ExtraFiles = files
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := c.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", name, err), log.Close())
	}
	go func() {
		c.err = c.cmd.Wait()
		close(c.done)
	}()
	return c, nil
}

// failure words the end of a process that was not to end, or not like this.
func (c *child) failure() error {
	state := "ended"
	if c.cmd.ProcessState != nil {
		state = c.cmd.ProcessState.String()
	}
	if last := c.lastWords(); last != "" {
		return fmt.Errorf("%s: %s: %s", c.name, state, last)
	}
	return fmt.Errorf("%s: %s", c.name, state)
}

// lastWords is the last line that the process wrote to its log.
func (c *child) lastWords() string {
	text, err := os.ReadFile(c.log.Name())
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// wait waits for the process to end by itself, successfully.
func (c *child) wait(ctx context.Context) error {
	select {
	case <-c.done:
		if c.err != nil {
			return c.failure()
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stop ends the process and whatever it started, asking first if it is given time, and waits until
// it is gone.
func (c *child) stop(patience time.Duration) {
	if patience > 0 {
		c.signal(syscall.SIGTERM)
		select {
		case <-c.done:
		case <-time.After(patience):
		}
	}
	c.signal(syscall.SIGKILL)
	<-c.done
	_ = c.log.Close() // written by the child, not by us
}

// signal reaches the whole group. Its number cannot be another's: the leader is not reaped before
// done is closed, and a group lives as long as a member.
func (c *child) signal(sig syscall.Signal) {
	_ = syscall.Kill(-c.cmd.Process.Pid, sig) // no such group: that is what is wanted
}
