package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/heddle-project/heddle/runtime/api"
)

// rig is a software GPU in a folder of its own, and every process on it.
type rig struct {
	build string
	dir   string

	device   []string // environment that says what the software GPU is like
	realTime bool     // processes get real-time priority where that is allowed

	mu    sync.Mutex
	procs []*proc
}

func newRig(build string) (*rig, error) {
	build, err := filepath.Abs(build)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("/tmp", "heddle-bench-*") // short: sockets lie in it
	if err != nil {
		return nil, err
	}
	return &rig{build: build, dir: dir, device: []string{
		"SOFTGPU_PROFILE=null",
		"SOFTGPU_GPUS=8xH200", // with room for hundreds of contexts
	}}, nil
}

func (r *rig) close() error {
	r.drop(0)
	return os.RemoveAll(r.dir)
}

// killAll ends every process at once; whoever reads from them is told by the end of the pipe.
func (r *rig) killAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.procs {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // if it is gone, all the better
	}
}

// drop forgets the processes from that one on, after they were killed.
func (r *rig) drop(first int) {
	for _, p := range r.procs[first:] {
		p.kill()
	}
	r.mu.Lock()
	r.procs = r.procs[:first]
	r.mu.Unlock()
}

// proc is a process of the rig.
type proc struct {
	name  string
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
	log   string
	gone  bool
}

// start starts a process; files become its descriptors from 3 on.
func (r *rig) start(name string, env []string, files []*os.File, argv ...string) (*proc, error) {
	p := &proc{name: name, cmd: exec.Command(argv[0], argv[1:]...)}
	p.log = filepath.Join(r.dir, fmt.Sprintf("%s-%d.log", name, len(r.procs)))
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has its own
	p.cmd.Env, p.cmd.Dir, p.cmd.Stderr, p.cmd.ExtraFiles = env, r.dir, log, files
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	p.lines = bufio.NewScanner(stdout)
	start := p.cmd.Start
	if r.realTime {
		start = func() error { return prefer(p.cmd.Start) }
	}
	if err := start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	r.mu.Lock()
	r.procs = append(r.procs, p)
	r.mu.Unlock()
	return p, nil
}

// line reads one line of the process's output.
func (p *proc) line() (string, error) {
	if p.lines.Scan() {
		return p.lines.Text(), nil
	}
	return "", p.failure()
}

// ask writes one line and reads one.
func (p *proc) ask(line string) (string, error) {
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		return "", p.failure()
	}
	return p.line()
}

// said is what the process wrote to its log so far, for a message.
func (p *proc) said() string {
	text, err := os.ReadFile(p.log)
	if err != nil || len(text) == 0 {
		return ""
	}
	return ": " + strings.TrimSpace(string(text))
}

// failure waits for a process that is ending and says why.
func (p *proc) failure() error {
	err := p.cmd.Wait()
	p.gone = true
	return fmt.Errorf("%s ended: %w%s", p.name, err, p.said())
}

func (p *proc) kill() {
	if p.gone {
		return
	}
	p.gone = true
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // if it is gone, all the better
	_ = p.in.Close()
	_ = p.cmd.Wait() // it was killed; that is its answer
}

// bare is the environment of a client of the software GPU.
func (r *rig) bare() []string {
	env := []string{
		"LD_LIBRARY_PATH=" + filepath.Join(r.build, "softgpu"),
		"SOFTGPU_STATE=" + filepath.Join(r.dir, "softgpu.state"),
	}
	env = append(env, r.device...)
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, "HEDDLE") && !strings.HasPrefix(name, "SOFTGPU_") && !strings.HasPrefix(name, "LD_") && !strings.HasPrefix(name, "CUDA_") {
			env = append(env, entry)
		}
	}
	return env
}

// interposed is the environment of a client with the interposer in front.
func (r *rig) interposed(more ...string) []string {
	interposer := filepath.Join(r.build, "lib", "heddle", "libcuda.so.1")
	softgpu := filepath.Join(r.build, "softgpu")
	env := slices.DeleteFunc(r.bare(), func(entry string) bool { return strings.HasPrefix(entry, "LD_LIBRARY_PATH=") })
	return append(env, append([]string{
		"LD_LIBRARY_PATH=" + filepath.Dir(interposer) + ":" + softgpu,
		"LD_PRELOAD=" + interposer,
		"HEDDLE_REAL_LIBCUDA=" + filepath.Join(softgpu, "libcuda.so.1"),
		"HEDDLE_SOCKET=" + filepath.Join(r.dir, "nobody.sock"),
	}, more...)...)
}

func (r *rig) client(name string, env []string, files []*os.File, args ...string) (*proc, error) {
	return r.start(name, env, files, append([]string{filepath.Join(r.build, "bench", "bin", "bench-client")}, args...)...)
}

// daemon is a heddled of the rig; each has sockets and state of its own.
type daemon struct {
	*proc
	attach string
	conn   *api.Conn
}

const daemonConfig = `version = 1
api_socket = %q
attach_dir = %q
state_dir = %q
nvml_library = %q
%s
[[rule]]
user = %q
max_priority = "realtime"
`

// startDaemon starts a heddled and waits until it answers. extra is more of
// its configuration.
func (r *rig) startDaemon(ctx context.Context, name, extra string) (*daemon, error) {
	dir := filepath.Join(r.dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	socket, attach := filepath.Join(dir, "api.sock"), filepath.Join(dir, "attach")
	config := filepath.Join(dir, "heddled.toml")
	text := fmt.Sprintf(daemonConfig, socket, attach, filepath.Join(dir, "state"),
		filepath.Join(r.build, "softgpu", "libnvidia-ml.so.1"), extra, strconv.Itoa(os.Getuid()))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	p, err := r.start(name, r.bare(), nil, filepath.Join(r.build, "bin", "heddled"), "--config", config)
	if err != nil {
		return nil, err
	}
	d := &daemon{proc: p, attach: filepath.Join(attach, "attach.sock"), conn: api.NewConn(socket)}
	return d, await(ctx, "heddled answers", func() error {
		_, err := d.conn.Status(ctx)
		return err
	})
}

// of is the environment of a client of this daemon.
func (d *daemon) of(r *rig, class string) []string {
	return r.interposed("HEDDLE_SOCKET="+d.attach, "HEDDLE_PRIORITY="+class)
}

// awaitClients waits until that many clients have a device.
func (d *daemon) awaitClients(ctx context.Context, n int) error {
	return await(ctx, fmt.Sprintf("%d clients", n), func() error {
		clients, err := d.conn.Clients(ctx, nil)
		if err != nil {
			return fmt.Errorf("%w%s", err, d.said())
		}
		have := 0
		for _, c := range clients {
			if len(c.GetDevices()) > 0 {
				have++
			}
		}
		if have != n {
			return fmt.Errorf("%d of %d", have, n)
		}
		return nil
	})
}

// await tries until it works, for ten seconds.
func await(ctx context.Context, what string, try func() error) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until %s: %w", what, err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
