package foreign

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/heddle-project/heddle/tests/softgpu"
)

// gpustatReport is the part of `gpustat --json` that names what we know.
type gpustatReport struct {
	GPUs []struct {
		Name      string `json:"name"`
		UUID      string `json:"uuid"`
		UsedMiB   int    `json:"memory.used"`
		TotalMiB  int    `json:"memory.total"`
		Limit     int    `json:"enforced.power.limit"`
		Processes []struct {
			PID     int    `json:"pid"`
			Command string `json:"command"`
			UsedMiB int    `json:"gpu_memory_usage"`
		} `json:"processes"`
	} `json:"gpus"`
}

// holder is a CUDA client that keeps its memory until it is killed.
type holder struct {
	pid  int
	seen report
	kill func()
}

// hold starts a client of testdata/cuda_client.py, which was told to hold its memory, and returns when it does.
func hold(t *testing.T, cmd *exec.Cmd) *holder {
	t.Helper()
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
	dead := false
	h := &holder{pid: cmd.Process.Pid}
	h.kill = func() {
		if dead {
			return
		}
		dead = true
		_ = cmd.Process.Kill() // it may have ended by itself; Wait says nothing new either
		_ = cmd.Wait()
		_ = stdin.Close()
	}
	t.Cleanup(h.kill)
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil {
		t.Fatalf("client: %v", err)
	}
	if err := json.Unmarshal(line, &h.seen); err != nil {
		t.Fatal(err)
	}
	return h
}

// monitor runs a program of the virtual environment on the node.
func monitor(t *testing.T, n *softgpu.Node, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(python(t, n.Build()), name), args...)
	cmd.Env = append(os.Environ(), n.Env()...)
	cmd.Env = append(cmd.Env, "TERM=dumb", "COLUMNS=200", "LANG=C.UTF-8")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s\nstubs called: %v", name, err, out, n.StubCalls())
	}
	return out
}

func TestGpustat(t *testing.T) {
	n := newNode(t, softgpu.Options{GPUs: []string{"H100", "RTX-PRO-6000"}})
	gpus := n.GPUs()
	h := hold(t, clientCommand(t, n.Build(), n.Env(), "--hold"))

	got := gpustat(t, n)
	if len(got.GPUs) != len(gpus) {
		t.Fatalf("%d GPUs, want %d", len(got.GPUs), len(gpus))
	}
	for i, gpu := range gpus {
		if got.GPUs[i].Name != gpu.Name || got.GPUs[i].UUID != gpu.UUID ||
			got.GPUs[i].TotalMiB != int(gpu.MemoryBytes>>20) || got.GPUs[i].Limit == 0 {
			t.Errorf("GPU %d is %+v, want %+v", i, got.GPUs[i], gpu)
		}
	}
	held := int(h.seen.HeldBytes >> 20)
	if got.GPUs[0].UsedMiB < held {
		t.Errorf("%d MiB in use, the client alone holds %d", got.GPUs[0].UsedMiB, held)
	}
	if p := got.GPUs[0].Processes; len(p) != 1 || p[0].PID != h.pid || p[0].UsedMiB < held {
		t.Errorf("processes %+v, want pid %d with at least %d MiB", p, h.pid, held)
	}
	if p := got.GPUs[1].Processes; len(p) != 0 {
		t.Errorf("processes on the second GPU: %+v", p)
	}

	h.kill()
	got = gpustat(t, n)
	if p := got.GPUs[0].Processes; len(p) != 0 || got.GPUs[0].UsedMiB != 0 {
		t.Errorf("after the client's death: %d MiB, %+v", got.GPUs[0].UsedMiB, p)
	}
}

func gpustat(t *testing.T, n *softgpu.Node) gpustatReport {
	t.Helper()
	out := monitor(t, n, "gpustat", "--json")
	var got gpustatReport
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	return got
}

func TestNvitop(t *testing.T) {
	n := newNode(t, softgpu.Options{GPUs: []string{"H200"}})
	h := hold(t, clientCommand(t, n.Build(), n.Env(), "--hold"))

	screen := string(monitor(t, n, "nvitop", "--once", "--no-unicode"))
	for _, want := range []string{"H200", n.GPUs()[0].BusID, "140.4GiB", strconv.Itoa(h.pid), "cuda_client.py"} {
		if !strings.Contains(screen, want) {
			t.Errorf("%q is not on nvitop's screen:\n%s", want, screen)
		}
	}
	h.kill()
	screen = string(monitor(t, n, "nvitop", "--once", "--no-unicode"))
	if !strings.Contains(screen, "No running processes found") {
		t.Errorf("nvitop still shows a process:\n%s", screen)
	}
}
