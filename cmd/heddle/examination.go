package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/heddle-project/heddle/runtime/api"
	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
)

// examination is what the checks of one doctor run share.
type examination struct {
	app *app

	socketUsable bool                     // the API socket is there, and this user may connect to it
	status       *heddlev1.StatusResponse // nil while heddled is not known to answer
	devices      []*heddlev1.Device
	driver       string // path of the driver library
	interposer   string // path of a usable interposer
	child        *probeChild
}

func (x *examination) close() {
	if x.child != nil {
		x.child.stop()
	}
}

// configValue is one value of the configuration in force, without the quotes of TOML.
func (x *examination) configValue(ctx context.Context, key string) (value, origin string, err error) {
	err = x.app.call(ctx, func(ctx context.Context, conn *api.Conn) error {
		got, err := conn.Config(ctx)
		for _, o := range got.GetOrigins() {
			if o.GetKey() == key {
				value, origin = strings.Trim(o.GetValue(), `"'`), o.GetOrigin()
			}
		}
		return err
	})
	return value, origin, err
}

const (
	probeProgram = "heddle-probe"
	// A first cuInit on a real node with many devices takes some seconds.
	probeLimit = 20 * time.Second
)

// probeChild is a program started as heddle run starts one. It lives until its stdin is closed.
type probeChild struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	name   string // by which heddled lists it
	probe  bool   // it is the probe, not just any program
	cancel context.CancelFunc
	report map[string]string // what the probe said
}

// findProbe finds the probe beside the interposer; without it any program that the loader starts
// will show at least what was mapped.
func findProbe(interposer string) (path string, probe bool, err error) {
	path = filepath.Join(filepath.Dir(interposer), probeProgram)
	if executable(path) == nil {
		return path, true, nil
	}
	for _, path := range []string{"/usr/bin/cat", "/bin/cat"} {
		if isDynamic(path) {
			return path, false, nil
		}
	}
	return "", false, fmt.Errorf("neither %s nor a dynamically linked cat found", path)
}

// startProbe starts the child and reads what it reports.
func (x *examination) startProbe(ctx context.Context) (*probeChild, error) {
	path, probe, err := findProbe(x.interposer)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	c := &probeChild{probe: probe, cancel: cancel, report: map[string]string{}}
	c.name = fmt.Sprintf("heddle-doctor-%d", os.Getpid())
	o := runOptions{name: c.name}
	var n node
	if x.status != nil {
		n = node{answered: true, attachSocket: x.status.GetAttachSocket()}
	}
	c.cmd = exec.CommandContext(ctx, path)
	if c.cmd.Env, err = o.environment(x.app.environ, x.interposer, n, x.app.socketSet); err != nil {
		cancel()
		return nil, err
	}
	stdout, err := c.cmd.StdoutPipe()
	if err == nil {
		c.stdin, err = c.cmd.StdinPipe()
	}
	if err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	if probe {
		c.read(stdout)
	} else if _, err := io.WriteString(c.stdin, "ready\n"); err == nil {
		// The echo shows that the loader is done and the program runs.
		c.read(stdout)
	}
	return c, nil
}

// read takes lines "key value" up to one that says ready.
func (c *probeChild) read(r io.Reader) {
	lines := bufio.NewScanner(io.LimitReader(r, 1<<16))
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), " ")
		c.report[key] = value
		if key == "ready" {
			return
		}
	}
}

func (c *probeChild) ready() bool {
	_, ok := c.report["ready"]
	return ok
}

// stop ends the child: politely, and after a moment for good.
func (c *probeChild) stop() {
	_ = c.stdin.Close()
	timer := time.AfterFunc(2*time.Second, c.cancel)
	defer timer.Stop()
	defer c.cancel()
	_ = c.cmd.Wait() // how it ended says nothing that its report did not
}
