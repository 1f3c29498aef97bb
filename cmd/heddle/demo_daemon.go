package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/heddle-project/heddle/runtime/api"
)

// demoDaemon is a heddled of the demo's own.
type demoDaemon struct {
	*child
	run    *demoRun
	socket string
}

// demoConfig puts everything of heddled into one folder and lets this demo's clients ask for any
// class: they are the demo's own.
const demoConfig = `version = 1
api_socket = %q
attach_dir = %q
state_dir = %q
nvml_library = %q

[[rule]]
user = %q
max_priority = "realtime"
`

const (
	demoDaemonLimit    = 10 * time.Second
	demoDaemonPatience = 3 * time.Second
	demoDaemonPoll     = 20 * time.Millisecond
)

func (d *demoRun) startDaemon(ctx context.Context) (*demoDaemon, error) {
	socket := filepath.Join(d.dir, "api.sock")
	nvml := ""
	if d.parts.softgpu != "" {
		nvml = filepath.Join(d.parts.softgpu, "libnvidia-ml.so.1")
	}
	config := filepath.Join(d.dir, "heddled.toml")
	text := fmt.Sprintf(demoConfig, socket, filepath.Join(d.dir, "attach"), filepath.Join(d.dir, "state"), nvml, strconv.Itoa(os.Getuid()))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("configure heddled: %w", err)
	}
	env := dropEnvPrefix(d.bare(demoRole{}), "HEDDLED_")
	c, err := startChild(d.dir, "heddled", env, []string{d.parts.daemon, "--config", config})
	if err != nil {
		return nil, err
	}
	daemon := &demoDaemon{child: c, run: d, socket: socket}
	if err := daemon.awaitService(ctx); err != nil {
		daemon.stop()
		return nil, err
	}
	return daemon, nil
}

// awaitService waits until the API answers.
func (d *demoDaemon) awaitService(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, demoDaemonLimit)
	defer cancel()
	conn := api.NewConn(d.socket)
	defer conn.Close()
	for {
		_, err := conn.Status(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-d.done:
			return d.failure()
		case <-ctx.Done():
			return fmt.Errorf("heddled: no answer within %s: %w", demoDaemonLimit, err)
		case <-time.After(demoDaemonPoll):
		}
	}
}

// environment is what heddle run would give a program, for this daemon.
func (d *demoDaemon) environment(role demoRole) []string {
	env := interpose(d.run.bare(role), d.run.parts.interposer)
	env = setEnv(env, "HEDDLE_SOCKET", filepath.Join(d.run.dir, "attach", "attach.sock"))
	if d.run.parts.softgpu != "" {
		env = setEnv(env, "HEDDLE_REAL_LIBCUDA", filepath.Join(d.run.parts.softgpu, driverSoname))
	}
	env = setEnv(env, "HEDDLE_PRIORITY", strconv.Itoa(role.priority))
	return setEnv(env, "HEDDLE_NAME", role.name)
}

func (d *demoDaemon) stop() { d.child.stop(demoDaemonPatience) }

// dropEnv removes a variable.
func dropEnv(env []string, name string) []string { return dropEnvPrefix(env, name+"=") }

// dropEnvPrefix removes every entry that begins like this.
func dropEnvPrefix(env []string, prefix string) []string {
	kept := make([]string, 0, len(env))
	for _, entry := range env {
		if !strings.HasPrefix(entry, prefix) {
			kept = append(kept, entry)
		}
	}
	return kept
}
