// Package softgpu is the Go handle of the software GPU: it makes simulated nodes for tests, gives child
// processes the environment to find them, reads what happened there, and injects faults. The layout of the
// state file (zstate.go) is generated from the C header.
package softgpu

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
	"unsafe"

	"golang.org/x/sys/unix"
)

// Options say what a new node is like. The zero value is one H100 in real time with the costs of a real
// driver.
type Options struct {
	GPUs  []string // model keys, e.g. "H100", "2xA100-80"
	Null  bool     // the null profile: a launch and a synchronisation cost nothing
	Speed float64  // simulated seconds per real second; 0 is 1
}

// Node is one simulated node: a mapped state file. Its readings may be taken at any time, also while
// programs run; what they say about a running program is a moment old.
type Node struct {
	path  string
	build Build
	opts  Options
	file  *os.File
	mem   []byte
	state *State
}

// New makes a node whose state file lies in dir, with the libraries of this checkout's build.
func New(ctx context.Context, dir string, opts Options) (*Node, error) {
	build, err := FindBuild()
	if err != nil {
		return nil, err
	}
	n := &Node{path: filepath.Join(dir, "softgpu.state"), build: build, opts: opts}
	// Whoever opens the driver first makes the file; only C code can make the lock in it.
	if err := n.tool(ctx, "show"); err != nil {
		return nil, fmt.Errorf("make node %s: %w", n.path, err)
	}
	if err := n.open(); err != nil {
		return nil, err
	}
	return n, nil
}

// Open maps the state file of a node that exists.
func Open(path string) (*Node, error) {
	n := &Node{path: path}
	if err := n.open(); err != nil {
		return nil, err
	}
	return n, nil
}

func (n *Node) open() error {
	f, err := os.OpenFile(n.path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("open node: %w", err)
	}
	info, err := f.Stat()
	if err == nil && info.Size() != SizeofState {
		err = fmt.Errorf("%d bytes, want %d", info.Size(), SizeofState)
	}
	var mem []byte
	if err == nil {
		mem, err = unix.Mmap(int(f.Fd()), 0, SizeofState, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("map node %s: %w", n.path, err), f.Close())
	}
	n.file, n.mem = f, mem
	n.state = (*State)(unsafe.Pointer(unsafe.SliceData(mem)))
	if h := &n.state.Header; h.Magic != Magic || h.Version != Version || h.Ready != 1 {
		return errors.Join(fmt.Errorf("open node %s: not a complete state file of version %d", n.path, Version), n.Close())
	}
	return nil
}

// Close unmaps the node. Its file stays: it belongs to the folder that New was given.
func (n *Node) Close() error {
	if n.mem == nil {
		return nil
	}
	err := errors.Join(unix.Munmap(n.mem), n.file.Close())
	n.mem, n.state = nil, nil
	return err
}

// Path is the state file.
func (n *Node) Path() string { return n.path }

// Build is the software GPU's build output that New found.
func (n *Node) Build() Build { return n.build }

// Env returns what a child process needs in its environment to find this node and the software driver; a
// later LD_LIBRARY_PATH of the caller's replaces ours.
func (n *Node) Env() []string {
	return append(n.stateEnv(), "LD_LIBRARY_PATH="+n.build.Libraries)
}

func (n *Node) stateEnv() []string {
	env := []string{"SOFTGPU_STATE=" + n.path}
	if len(n.opts.GPUs) > 0 {
		env = append(env, "SOFTGPU_GPUS="+strings.Join(n.opts.GPUs, ","))
	}
	if n.opts.Null {
		env = append(env, "SOFTGPU_PROFILE=null")
	}
	if n.opts.Speed > 0 {
		env = append(env, "SOFTGPU_SPEED="+strconv.FormatFloat(n.opts.Speed, 'g', -1, 64))
	}
	return env
}

// Settle moves the device model to now and lets it forget the dead, as any program that enters does.
func (n *Node) Settle(ctx context.Context) error {
	if err := n.tool(ctx, "show"); err != nil {
		return fmt.Errorf("settle node %s: %w", n.path, err)
	}
	return nil
}

func (n *Node) tool(ctx context.Context, args ...string) error {
	_, err := n.ask(ctx, args...)
	return err
}

// ask runs the tool on this node and returns what it printed.
func (n *Node) ask(ctx context.Context, args ...string) (string, error) {
	return n.build.run(ctx, n.stateEnv(), args...)
}

// run runs the tool and returns what it printed.
func (b Build) run(ctx context.Context, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, b.Tool, args...)
	cmd.Env = append(os.Environ(), env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", b.Tool, strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}

// Build is where the software GPU's parts lie.
type Build struct {
	Root      string // of the checkout
	Libraries string // folder of libcuda.so.1 and libnvidia-ml.so.1
	Tool      string // the softgpu command
}

// ErrNotBuilt means that `make softgpu` has not run.
var ErrNotBuilt = errors.New("the software GPU is not built, run make softgpu")

// FindBuild looks for the build output of the checkout that the working directory lies in. HEDDLE_BUILD
// names another folder than build/.
func FindBuild() (Build, error) {
	root, err := findRoot()
	if err != nil {
		return Build{}, err
	}
	out := os.Getenv("HEDDLE_BUILD")
	if out == "" {
		out = filepath.Join(root, "build")
	}
	b := Build{
		Root:      root,
		Libraries: filepath.Join(out, "softgpu"),
		Tool:      filepath.Join(out, "softgpu", "bin", "softgpu"),
	}
	for _, path := range []string{filepath.Join(b.Libraries, "libcuda.so.1"), b.Tool} {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return Build{}, fmt.Errorf("find %s: %w", path, ErrNotBuilt)
		} else if err != nil {
			return Build{}, fmt.Errorf("find the software GPU: %w", err)
		}
	}
	return b, nil
}

func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the checkout: %w", err)
	}
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(filepath.Join(d, "go.mod")); err == nil {
			return d, nil
		}
		if d == filepath.Dir(d) {
			return "", fmt.Errorf("find the checkout above %s: %w", dir, fs.ErrNotExist)
		}
	}
}
