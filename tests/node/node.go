// Package node runs one simulated node for tests: a software GPU, a private
// heddled, and scripted clients under the interposer, all real processes over
// one temporary folder. Nothing of it outlives the test.
package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/heddle-project/heddle/runtime/api"
	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
)

// Bound is how long a test waits for something that should take milliseconds;
// generous, because the judging machine is shared.
const Bound = 20 * time.Second

// Options describe a node. The zero value is one H100 in real time.
type Options struct {
	GPUs    string // as SOFTGPU_GPUS
	Profile string // as SOFTGPU_PROFILE
	Config  string // TOML appended to the configuration that New writes
	Driver  string // folder of the driver, build/softgpu if empty
	MPS     bool   // kernels of all clients run side by side
}

// Node is one simulated node. Its methods fail the test that made it.
type Node struct {
	t      testing.TB
	opts   Options
	dir    string
	build  string
	daemon *exec.Cmd
	exited chan error
	api    *api.Conn
}

// New prepares a node without starting its daemon. It skips the test, with the
// reason, if the parts were not built.
func New(t testing.TB, opts Options) *Node {
	t.Helper()
	build := filepath.Join(root(t), "build")
	if opts.Driver == "" {
		opts.Driver = filepath.Join(build, "softgpu")
	}
	// Unix socket paths are short: t.TempDir() carries the test's name.
	dir, err := os.MkdirTemp("", "node")
	if err != nil {
		t.Fatal(err)
	}
	n := &Node{t: t, opts: opts, dir: dir, build: build}
	t.Cleanup(func() {
		n.StopDaemon()
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove the node's folder: %v", err)
		}
	})
	for _, part := range []string{n.heddled(), n.Interposer(), n.client(), filepath.Join(opts.Driver, "libcuda.so.1")} {
		if _, err := os.Stat(part); err != nil {
			t.Skipf("not built: %v; run make build test-client", err)
		}
	}
	config := fmt.Sprintf("version = 1\napi_socket = %q\nattach_dir = %q\nstate_dir = %q\n%s",
		n.APISocket(), n.attachDir(), filepath.Join(dir, "state"), opts.Config)
	if err := os.WriteFile(n.configPath(), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if opts.MPS {
		// What tells a driver that a server of MPS runs.
		if err := errors.Join(os.Mkdir(n.mpsDir(), 0o700), os.WriteFile(filepath.Join(n.mpsDir(), "control"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	n.api = api.NewConn(n.APISocket())
	return n
}

// root is the top of the repository.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the test's folder")
		}
		dir = filepath.Dir(dir)
	}
}

func (n *Node) heddled() string    { return filepath.Join(n.build, "bin", "heddled") }
func (n *Node) client() string     { return filepath.Join(n.build, "test", "heddle-test-client") }
func (n *Node) attachDir() string  { return filepath.Join(n.dir, "attach") }
func (n *Node) mpsDir() string     { return filepath.Join(n.dir, "mps") }
func (n *Node) configPath() string { return filepath.Join(n.dir, "heddled.toml") }
func (n *Node) logPath() string    { return filepath.Join(n.dir, "heddled.log") }

// Interposer is the path of the interposer under test.
func (n *Node) Interposer() string { return filepath.Join(n.build, "lib", "heddle", "libcuda.so.1") }

// APISocket is where the daemon's control API is.
func (n *Node) APISocket() string { return filepath.Join(n.dir, "api.sock") }

// Dir is the node's folder; it goes with the test.
func (n *Node) Dir() string { return n.dir }

// DeviceEnv selects the software GPU for any program.
func (n *Node) DeviceEnv() []string {
	env := []string{"SOFTGPU_STATE=" + filepath.Join(n.dir, "gpu")}
	if n.opts.GPUs != "" {
		env = append(env, "SOFTGPU_GPUS="+n.opts.GPUs)
	}
	if n.opts.Profile != "" {
		env = append(env, "SOFTGPU_PROFILE="+n.opts.Profile)
	}
	if n.opts.MPS {
		env = append(env, "CUDA_MPS_PIPE_DIRECTORY="+n.mpsDir())
	}
	return env
}

// DaemonCommand is heddled over this node's configuration, not started.
func (n *Node) DaemonCommand(args ...string) *exec.Cmd {
	cmd := exec.Command(n.heddled(), append([]string{"--config", n.configPath()}, args...)...)
	cmd.Env = append(os.Environ(), n.DeviceEnv()...)
	cmd.Env = append(cmd.Env, "LD_LIBRARY_PATH="+n.opts.Driver)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// StartDaemon starts heddled and waits until its API answers.
func (n *Node) StartDaemon() {
	n.t.Helper()
	log, err := os.OpenFile(n.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		n.t.Fatal(err)
	}
	defer log.Close()
	n.daemon = n.DaemonCommand()
	n.daemon.Stdout, n.daemon.Stderr = log, log
	if err := n.daemon.Start(); err != nil {
		n.t.Fatalf("start heddled: %v", err)
	}
	n.exited = make(chan error, 1)
	go func(cmd *exec.Cmd, exited chan<- error) { exited <- cmd.Wait() }(n.daemon, n.exited)
	n.Eventually("heddled answers", func() bool {
		select {
		case err := <-n.exited:
			n.exited <- err
			n.t.Fatalf("heddled ended at once: %v\n%s", err, n.Log())
		default:
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := n.api.Status(ctx)
		return err == nil
	})
}

// Log is what the daemons of this node printed so far.
func (n *Node) Log() string {
	text, err := os.ReadFile(n.logPath())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		n.t.Fatal(err)
	}
	return string(text)
}

// DaemonPID is the daemon's process, 0 if none runs.
func (n *Node) DaemonPID() int {
	if n.daemon == nil {
		return 0
	}
	return n.daemon.Process.Pid
}

// SignalDaemon sends a signal and does not wait.
func (n *Node) SignalDaemon(sig syscall.Signal) {
	n.t.Helper()
	if err := n.daemon.Process.Signal(sig); err != nil {
		n.t.Fatalf("signal heddled: %v", err)
	}
}

// FreezeDaemon stops the daemon until it gets SIGCONT, at a moment when it has
// no lock of the software GPU, whose telemetry it reads: a real one has none
// that clients wait for.
func (n *Node) FreezeDaemon() {
	n.t.Helper()
	stop := exec.Command(filepath.Join(n.build, "softgpu", "bin", "softgpu"), "stop", strconv.Itoa(n.DaemonPID()))
	stop.Env = append(os.Environ(), n.DeviceEnv()...)
	if out, err := stop.CombinedOutput(); err != nil {
		n.t.Fatalf("freeze heddled: %v: %s", err, out)
	}
}

// KillDaemon ends the daemon without warning.
func (n *Node) KillDaemon() {
	n.t.Helper()
	n.SignalDaemon(syscall.SIGKILL)
	<-n.exited
	n.daemon = nil
}

// StopDaemon ends the daemon with SIGTERM; none running is fine.
func (n *Node) StopDaemon() {
	n.t.Helper()
	if n.daemon == nil {
		return
	}
	// A frozen daemon must be able to hear it; the two may race with its end.
	_ = n.daemon.Process.Signal(syscall.SIGCONT)
	_ = n.daemon.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-n.exited:
		if err != nil && !n.t.Failed() {
			n.t.Errorf("heddled ended with %v\n%s", err, n.Log())
		}
	case <-time.After(Bound):
		_ = n.daemon.Process.Kill()
		<-n.exited
		n.t.Errorf("heddled did not end within %v of SIGTERM\n%s", Bound, n.Log())
	}
	n.daemon = nil
}

// Clients are the attached clients, in the order of their ids.
func (n *Node) Clients() []*heddlev1.Client {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Bound)
	defer cancel()
	clients, err := n.api.Clients(ctx, &heddlev1.ListClientsRequest{})
	if err != nil {
		n.t.Fatalf("list clients: %v\n%s", err, n.Log())
	}
	return clients
}

// Attached is the client of that process, or nil.
func (n *Node) Attached(pid int) *heddlev1.Client {
	n.t.Helper()
	for _, c := range n.Clients() {
		if int(c.GetPid()) == pid && c.GetState() != heddlev1.ClientState_CLIENT_STATE_EVICTED {
			return c
		}
	}
	return nil
}

// Eventually waits for a condition, at most Bound.
func (n *Node) Eventually(what string, condition func() bool) {
	n.t.Helper()
	if !Wait(Bound, condition) {
		n.t.Fatalf("not within %v: %s\n%s", Bound, what, n.Log())
	}
}

// Wait asks again every few milliseconds until the condition holds or the
// bound is over, and says which.
func Wait(bound time.Duration, condition func() bool) bool {
	deadline := time.NewTimer(bound)
	defer deadline.Stop()
	tick := time.NewTicker(3 * time.Millisecond)
	defer tick.Stop()
	for {
		if condition() {
			return true
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			return condition()
		}
	}
}

// Leftovers names files in the node's folder that the daemon and the clients
// should have removed: anything but configuration, log, state and the GPU.
func (n *Node) Leftovers() []string {
	n.t.Helper()
	var left []string
	err := filepath.WalkDir(n.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name := strings.TrimPrefix(path, n.dir+"/")
		switch {
		case name == "heddled.toml", name == "heddled.log", name == "gpu", name == "mps/control", strings.HasPrefix(name, "state/"):
		default:
			left = append(left, name)
		}
		return nil
	})
	if err != nil {
		n.t.Fatal(err)
	}
	return left
}

// SetPriority changes a living client, as heddle set does.
func (n *Node) SetPriority(pid int, class uint32) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Bound)
	defer cancel()
	_, err := n.api.SetClient(ctx, &heddlev1.SetClientRequest{
		Target: &heddlev1.SetClientRequest_Pid{Pid: uint32(pid)}, Priority: &class,
	})
	if err != nil {
		n.t.Fatalf("set priority of %d: %v", pid, err)
	}
}

// StartAgain lets the daemon live for a while, kills it and starts another.
func (n *Node) StartAgain(after time.Duration) {
	n.t.Helper()
	<-time.After(after)
	n.KillDaemon()
	n.StartDaemon()
}
