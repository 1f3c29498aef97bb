package foreign

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heddle-project/heddle/tests/softgpu"
	"github.com/heddle-project/heddle/tests/softgpu/models/catalog"
)

// report is what testdata/cuda_client.py prints.
type report struct {
	DriverVersion int      `json:"driver_version"`
	Devices       int      `json:"devices"`
	Name          string   `json:"name"`
	Capability    [2]int   `json:"capability"`
	SMs           int      `json:"sms"`
	TotalBytes    uint64   `json:"total_bytes"`
	FreeBytes     uint64   `json:"free_bytes"`
	DeviceBytes   uint64   `json:"device_bytes"`
	RoundTrip     bool     `json:"round_trip"`
	WrongElements int      `json:"wrong_elements"`
	ElapsedMs     float64  `json:"elapsed_ms"`
	HeldBytes     uint64   `json:"held_bytes"`
	GraphLaunches float64  `json:"graph_launches"`
	Missing       []string `json:"missing"`   // entries that the driver does not have
	Libraries     []string `json:"libraries"` // mapped files named libcuda
}

// clientCommand is testdata/cuda_client.py, to be run in an environment with a driver.
func clientCommand(t *testing.T, build softgpu.Build, env []string, args ...string) *exec.Cmd {
	t.Helper()
	return script(t, "cuda_client.py", build, env, args...)
}

// script runs a script of testdata with the path of the kernels as its first argument.
func script(t *testing.T, name string, build softgpu.Build, env []string, args ...string) *exec.Cmd {
	t.Helper()
	bin := python(t, build)
	kernel := filepath.Join(build.Root, "tests", "softgpu", "kernels", "basic.ptx")
	args = append([]string{filepath.Join("testdata", name), kernel}, args...)
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "python"), args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	return cmd
}

func TestCUDABindings(t *testing.T) {
	n := newNode(t, softgpu.Options{GPUs: []string{"H100", "A30"}})
	got := runClient(t, n, clientCommand(t, n.Build(), n.Env()))
	if !slices.Equal(got.Libraries, []string{filepath.Join(n.Build().Libraries, "libcuda.so.1")}) {
		t.Errorf("the client had %q mapped", got.Libraries)
	}
}

func TestCUDABindingsThroughTheInterposer(t *testing.T) {
	n := newNode(t, softgpu.Options{GPUs: []string{"H100", "A30"}})
	interposer := filepath.Join(n.Build().Root, "build", "lib", "heddle", "libcuda.so.1")
	if _, err := os.Stat(interposer); errors.Is(err, fs.ErrNotExist) {
		t.Skip("the interposer is not built, run make interpose")
	}
	env := append(n.Env(),
		"LD_LIBRARY_PATH="+filepath.Dir(interposer)+":"+n.Build().Libraries,
		"LD_PRELOAD="+interposer,
		"HEDDLE_SOCKET="+filepath.Join(t.TempDir(), "nobody.sock"))
	got := runClient(t, n, clientCommand(t, n.Build(), env))
	want := []string{interposer, filepath.Join(n.Build().Libraries, "libcuda.so.1")}
	slices.Sort(want)
	if diff := cmp.Diff(want, got.Libraries); diff != "" {
		t.Errorf("libraries that the client had mapped (-want +got):\n%s", diff)
	}
}

// runClient lets the client run to its end and checks all that it saw.
func runClient(t *testing.T, n *softgpu.Node, cmd *exec.Cmd) report {
	t.Helper()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("client: %v\nstubs called: %v", err, n.StubCalls())
	}
	var got report
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	checkReport(t, &got)

	calls := n.Calls()
	if calls.Launches == 0 || calls.Graphs != 3 || calls.Opaque != 0 {
		t.Errorf("%d launches, %d of graphs, %d opaque", calls.Launches, calls.Graphs, calls.Opaque)
	}
	if len(n.Processes()) != 0 {
		t.Errorf("processes left behind: %v", n.Processes())
	}
	return got
}

func checkReport(t *testing.T, got *report) {
	t.Helper()
	m, err := catalog.Lookup("H100")
	if err != nil {
		t.Fatal(err)
	}
	program := uint64(m.MemoryMiB-m.ReservedMiB) << 20 // what programs can have
	if got.Name != m.Name || got.Capability != m.ComputeCapability || got.SMs != m.SMs || got.Devices != 2 {
		t.Errorf("the client saw %+v", got)
	}
	if got.TotalBytes != program || got.DeviceBytes != program || got.FreeBytes > program {
		t.Errorf("memory %d, %d, free %d, want %d", got.TotalBytes, got.DeviceBytes, got.FreeBytes, program)
	}
	if !got.RoundTrip {
		t.Error("bytes changed on their way to the device and back")
	}
	if got.WrongElements != 0 {
		t.Errorf("the kernel computed %d wrong elements", got.WrongElements)
	}
	if got.ElapsedMs <= 0 {
		t.Errorf("the kernel took %f ms", got.ElapsedMs)
	}
	if got.GraphLaunches != 3 {
		t.Errorf("after three launches of a graph every element is %g", got.GraphLaunches)
	}
	// Two that came with a driver newer than the one we pose as.
	if diff := cmp.Diff([]string{"cuFabricCpyBatchAsync", "cuTensorMapSetAllocationClass"}, got.Missing); diff != "" {
		t.Errorf("entries that the client did not find (-want +got):\n%s", diff)
	}
	if got.DriverVersion < 13000 {
		t.Errorf("driver version %d", got.DriverVersion)
	}
	for _, library := range got.Libraries {
		if !strings.HasPrefix(filepath.Base(library), "libcuda.so") {
			t.Errorf("unexpected library %s", library)
		}
	}
}
