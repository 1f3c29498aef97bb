package softgpu

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/google/go-cmp/cmp"

	"github.com/heddle-project/heddle/tests/softgpu/models/catalog"
)

// A test's node; the test is skipped where the software GPU is not built.
func newNode(t *testing.T, opts Options) *Node {
	t.Helper()
	n, err := New(t.Context(), t.TempDir(), opts)
	if errors.Is(err, ErrNotBuilt) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// seen is what go-nvml says of one device.
type seen struct {
	Name, UUID, Bus    string
	Major, Minor       int
	Total, Used        uint64
	MIG                [2]int
	Profiles           []profile
	Fans               int
	Processes          int
	Placements, MaxMIG int
	DriverModel, Image string // names of the errors
}

type profile struct {
	Name                               string
	ID, Slices, Instances, SMs, Memory int
	Placements                         []nvml.GpuInstancePlacement
}

const (
	childVariable = "SOFTGPU_TEST_NVML"     // the library to open
	taskVariable  = "SOFTGPU_TEST_NVML_MIG" // what to do with it; without: look at every device
)

// TestMain lets the test binary be the client of NVML: the tests run it as a process of its own, because
// go-nvml keeps what it finds in a library for the life of the process.
func TestMain(m *testing.M) {
	library := os.Getenv(childVariable)
	if library == "" {
		os.Exit(m.Run())
	}
	var answer any
	var err error
	if task := os.Getenv(taskVariable); task != "" {
		answer, err = partition(library, task)
	} else {
		answer, err = look(library)
	}
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(answer)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func look(library string) ([]seen, error) {
	lib := nvml.New(nvml.WithLibraryPath(library))
	if ret := lib.Init(); ret != nvml.SUCCESS {
		return nil, fmt.Errorf("init: %w", ret)
	}
	count, ret := lib.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return nil, fmt.Errorf("count: %w", ret)
	}
	devices := make([]seen, count)
	for i := range devices {
		d, ret := lib.DeviceGetHandleByIndex(i)
		if ret != nvml.SUCCESS {
			return nil, fmt.Errorf("device %d: %w", i, ret)
		}
		if err := devices[i].fill(d); err != nil {
			return nil, fmt.Errorf("device %d: %w", i, err)
		}
	}
	if ret := lib.Shutdown(); ret != nvml.SUCCESS {
		return nil, fmt.Errorf("shutdown: %w", ret)
	}
	return devices, nil
}

func (s *seen) fill(d nvml.Device) error {
	var errs []error
	check := func(what string, ret nvml.Return) {
		if ret != nvml.SUCCESS {
			errs = append(errs, fmt.Errorf("%s: %w", what, ret))
		}
	}
	var ret nvml.Return
	s.Name, ret = d.GetName()
	check("name", ret)
	s.UUID, ret = d.GetUUID()
	check("uuid", ret)
	pci, ret := d.GetPciInfo()
	check("pci", ret)
	s.Bus = chars(pci.BusId[:])
	s.Major, s.Minor, ret = d.GetCudaComputeCapability()
	check("capability", ret)
	memory, ret := d.GetMemoryInfo_v2()
	check("memory", ret)
	s.Total, s.Used = memory.Total, memory.Used
	s.MIG[0], s.MIG[1], ret = d.GetMigMode()
	check("mig mode", ret)
	s.Fans, ret = d.GetNumFans()
	check("fans", ret)
	processes, ret := d.GetComputeRunningProcesses()
	check("processes", ret)
	s.Processes = len(processes)
	s.MaxMIG, ret = d.GetMaxMigDeviceCount()
	check("max mig devices", ret)
	for i := 0; ; i++ {
		info, ret := d.GetGpuInstanceProfileInfoV(i).V3()
		if ret == nvml.ERROR_INVALID_ARGUMENT {
			break
		}
		if ret == nvml.ERROR_NOT_SUPPORTED {
			continue
		}
		check("profile", ret)
		legacy, ret := d.GetGpuInstanceProfileInfo(i)
		check("profile, first version", ret)
		places, ret := d.GetGpuInstancePossiblePlacements(&legacy)
		check("placements", ret)
		s.Profiles = append(s.Profiles, profile{
			Name: chars(info.Name[:]), ID: int(info.Id), Slices: int(info.SliceCount), Instances: int(info.InstanceCount),
			SMs: int(info.MultiprocessorCount), Memory: int(info.MemorySizeMB), Placements: places,
		})
	}
	// What the library lacks is an answer too, not the end of the process.
	_, _, ret = d.GetDriverModel()
	s.DriverModel = ret.Error()
	_, ret = d.GetInforomImageVersion()
	s.Image = ret.Error()
	return errors.Join(errs...)
}

// chars is text of a C library's signed characters.
func chars(c []int8) string {
	b := make([]byte, len(c))
	for i, v := range c {
		b[i] = byte(v)
	}
	return text(b)
}

// TestGoNVML asks for every model through go-nvml and compares the answers with the model's data.
func TestGoNVML(t *testing.T) {
	all, err := catalog.All()
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, m := range all {
		keys = append(keys, m.Key)
	}
	n := newNode(t, Options{GPUs: keys})
	data, err := askNVML(t, n.Build(), n.Env())
	if err != nil {
		t.Fatal(err)
	}
	var got []seen
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	gpus := n.GPUs()
	want := make([]seen, len(all))
	for i, m := range all {
		want[i] = seen{
			Name: m.Name, UUID: gpus[i].UUID, Bus: gpus[i].BusID,
			Major: m.ComputeCapability[0], Minor: m.ComputeCapability[1],
			Total:       uint64(m.MemoryMiB) << 20,
			Profiles:    profilesOf(m),
			DriverModel: "Not Supported", Image: "Not Supported",
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("devices as go-nvml sees them (-want +got):\n%s", diff)
	}
	if calls := n.StubCalls(); calls["nvmlDeviceGetInforomImageVersion"] == 0 {
		t.Errorf("the call of a stub was not counted: %v", calls)
	}
}

// profilesOf returns a model's profiles in the order in which NVML numbers them.
func profilesOf(m catalog.Model) []profile {
	var list []profile
	for number := range nvml.GPU_INSTANCE_PROFILE_COUNT {
		for _, p := range m.MIG.Profiles {
			if p.Enum != number {
				continue
			}
			entry := profile{
				Name: "MIG " + p.Name, ID: p.ID, Slices: p.Slices, Instances: p.Instances, SMs: p.SMs, Memory: p.MemoryMiB,
			}
			for _, start := range p.Starts {
				entry.Placements = append(entry.Placements, nvml.GpuInstancePlacement{Start: uint32(start), Size: uint32(p.Size)})
			}
			list = append(list, entry)
		}
	}
	return list
}

func TestGoNVMLWithoutANode(t *testing.T) {
	build, err := FindBuild()
	if errors.Is(err, ErrNotBuilt) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = askNVML(t, build, []string{"SOFTGPU_STATE=/nonexistent/state"})
	if err == nil || !strings.Contains(err.Error(), "Driver Not Loaded") {
		t.Fatalf("a clean refusal was expected, got: %v", err)
	}
}

// askNVML runs the test binary as a client of the software NVML and returns what it printed.
func askNVML(t *testing.T, build Build, env []string) ([]byte, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), env...)
	// A race detector in the child waits a second before it lets the process end.
	cmd.Env = append(cmd.Env, childVariable+"="+filepath.Join(build.Libraries, "libnvidia-ml.so.1"), "GORACE=atexit_sleep_ms=0")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, stderr.String())
	}
	return out, nil
}
