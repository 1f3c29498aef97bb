package softgpu

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// client is a running testdata/client.py.
type client struct {
	pid   int
	codes []string // what its calls answered
	cmd   *exec.Cmd
	stdin io.Closer
}

func startClient(t *testing.T, n *Node, bytes, launches int) *client {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skipf("no python3: %v", err)
	}
	cmd := exec.CommandContext(t.Context(), python, filepath.Join("testdata", "client.py"), strconv.Itoa(bytes), strconv.Itoa(launches))
	cmd.Env = append(os.Environ(), n.Env()...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &client{pid: cmd.Process.Pid, cmd: cmd, stdin: stdin}
	t.Cleanup(c.kill)
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("client: %v", err)
	}
	c.codes = strings.Fields(line)
	return c
}

// stop lets the client end by itself.
func (c *client) stop(t *testing.T) {
	t.Helper()
	if err := c.stdin.Close(); err != nil {
		t.Error(err)
	}
	if err := c.cmd.Wait(); err != nil {
		t.Errorf("client: %v", err)
	}
	c.cmd = nil
}

func (c *client) kill() {
	if c.cmd == nil {
		return
	}
	_ = c.cmd.Process.Kill() // it may be gone already
	_ = c.cmd.Wait()         // says that it was killed
	c.cmd = nil
}

func TestNodeShowsAClient(t *testing.T) {
	const bytes, launches = 8 << 20, 5
	n := newNode(t, Options{GPUs: []string{"2xH100"}})
	c := startClient(t, n, bytes, launches)
	if bad := failures(c.codes); len(bad) > 0 {
		t.Fatalf("the client's calls answered %v", c.codes)
	}

	list := n.Processes()
	if len(list) != 1 || list[0].PID != c.pid {
		t.Fatalf("processes %+v, want pid %d", list, c.pid)
	}
	p := list[0]
	if p.UsedBytes[0] < bytes || p.UsedBytes[1] != 0 || p.Contexts[0] != 1 || p.Contexts[1] != 0 {
		t.Errorf("the process has %v bytes, %v contexts", p.UsedBytes, p.Contexts)
	}
	if p.Calls.Launches != launches || p.Calls.Opaque != launches || p.Calls.Allocs != 1 || p.Calls.Syncs != 1 {
		t.Errorf("the process made %+v", p.Calls)
	}
	if used := n.GPUs()[0].UsedBytes; used != p.UsedBytes[0] {
		t.Errorf("%d bytes in use on the device, %d by its only process", used, p.UsedBytes[0])
	}

	c.stop(t)
	if list := n.Processes(); len(list) != 0 {
		t.Errorf("after the end: %+v", list)
	}
	if err := n.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if used := n.GPUs()[0].UsedBytes; used != 0 {
		t.Errorf("after the end %d bytes are in use", used)
	}
	if calls := n.Calls(); calls.Launches != launches {
		t.Errorf("%d launches remembered, want %d", calls.Launches, launches)
	}
}

// TestShowAgrees compares what `softgpu show --json` prints with what the handle reads.
func TestShowAgrees(t *testing.T) {
	n := newNode(t, Options{GPUs: []string{"H100", "A30"}, Speed: 0.5})
	c := startClient(t, n, 8<<20, 3)
	cmd := exec.CommandContext(t.Context(), n.Build().Tool, "show", "--json")
	cmd.Env = append(os.Environ(), n.Env()...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Profile string
		Speed   float64
		Devices []struct {
			Model   string
			Product string
			Used    uint64 `json:"used_bytes"`
			Kernels uint64
		}
		Processes []struct {
			PID   int
			Used  uint64 `json:"used_bytes"`
			Calls struct{ Launches, Allocs, Syncs uint64 }
		}
		Stubs map[string]uint64
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if got.Profile != "real-like" || got.Speed != 0.5 {
		t.Errorf("profile %s at speed %g", got.Profile, got.Speed)
	}
	gpus, processes := n.GPUs(), n.Processes()
	if len(got.Devices) != len(gpus) || len(got.Processes) != 1 || len(processes) != 1 {
		t.Fatalf("%d devices and %d processes are shown, the handle reads %d and %d",
			len(got.Devices), len(got.Processes), len(gpus), len(processes))
	}
	for i, gpu := range gpus {
		d := got.Devices[i]
		if d.Model != gpu.Model || d.Product != gpu.Name || d.Used != gpu.UsedBytes || d.Kernels != gpu.Kernels {
			t.Errorf("GPU %d is shown as %+v, the handle reads %+v", i, d, gpu)
		}
	}
	p, want := got.Processes[0], processes[0]
	if p.PID != c.pid || p.Used != want.UsedBytes[0] || p.Calls.Launches != want.Calls.Launches ||
		p.Calls.Allocs != want.Calls.Allocs || p.Calls.Syncs != want.Calls.Syncs {
		t.Errorf("the process is shown as %+v, the handle reads %+v", p, want)
	}
	if diff := cmp.Diff(n.StubCalls(), got.Stubs); diff != "" {
		t.Errorf("stubs (-handle +shown):\n%s", diff)
	}
}

func TestNodeForgetsAKilledClient(t *testing.T) {
	n := newNode(t, Options{})
	c := startClient(t, n, 1<<20, 1)
	c.kill()
	if list := n.Processes(); len(list) != 0 {
		t.Errorf("processes %+v", list)
	}
	if err := n.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if used := n.GPUs()[0].UsedBytes; used != 0 {
		t.Errorf("%d bytes are still in use", used)
	}
}

func TestInjectedFaults(t *testing.T) {
	const outOfMemory, launchFailed = "2", "719"
	tests := []struct {
		name  string
		fault Injection
		want  []string // codes that are no success, in order
	}{
		{"once", Injection{Entry: "cuMemAlloc_v2", Result: 2}, []string{outOfMemory}},
		{"after two launches", Injection{Entry: "cuLaunchKernel", Result: 719, After: 2}, []string{launchFailed}},
		{"always", Injection{Entry: "cuLaunchKernel", Result: 719, Always: true}, []string{launchFailed, launchFailed, launchFailed, launchFailed}},
		{"sticky", Injection{Entry: "cuLaunchKernel", Result: 719, After: 2, Sticky: true}, []string{launchFailed, launchFailed, launchFailed}},
		{"of another process", Injection{Entry: "*", Result: 2, PID: 1}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(t, Options{})
			armed, err := n.Inject(tt.fault)
			if err != nil {
				t.Fatal(err)
			}
			c := startClient(t, n, 1<<20, 4)
			got := failures(c.codes)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("failed calls of %v (-want +got):\n%s", c.codes, diff)
			}
			if (armed.Hits() > 0) != (len(tt.want) > 0) {
				t.Errorf("the fault struck %d times", armed.Hits())
			}
			armed.Disarm()
			if left := n.state.Header.FaultsArmed; left != 0 {
				t.Errorf("%d faults are counted as armed after the only one is gone", left)
			}
			c.stop(t)
			if again := startClient(t, n, 1<<20, 4); len(failures(again.codes)) > 0 {
				t.Errorf("after disarming: %v", again.codes)
			}
		})
	}
}

func failures(codes []string) []string {
	var bad []string
	for _, code := range codes {
		if code != "0" {
			bad = append(bad, code)
		}
	}
	return bad
}

func TestInjectRefuses(t *testing.T) {
	n := newNode(t, Options{})
	for _, entry := range []string{"", strings.Repeat("x", NameBytes)} {
		if _, err := n.Inject(Injection{Entry: entry}); err == nil {
			t.Errorf("a fault in %q was accepted", entry)
		}
	}
	for range MaxFaults {
		if _, err := n.Inject(Injection{Entry: "cuInit"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := n.Inject(Injection{Entry: "cuInit"}); err == nil {
		t.Error("one fault too many was accepted")
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	short := filepath.Join(dir, "short")
	if err := os.WriteFile(short, []byte("notes"), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, make([]byte, SizeofState), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "missing"), short, empty} {
		if n, err := Open(path); err == nil {
			t.Errorf("%s was opened: %v", path, n.Close())
		}
	}
}

func TestNewRefusesAnUnknownModel(t *testing.T) {
	if _, err := FindBuild(); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	n, err := New(t.Context(), dir, Options{GPUs: []string{"Voodoo2"}})
	if err == nil {
		t.Fatalf("a node with an unknown model: %v", n.Close())
	}
	if !strings.Contains(err.Error(), `no such GPUs: "Voodoo2"`) {
		t.Errorf("the error does not name the model: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
