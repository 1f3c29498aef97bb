package nvml

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/google/go-cmp/cmp"

	"github.com/heddle-project/heddle/runtime/errdefs"
	"github.com/heddle-project/heddle/runtime/gpu"
	"github.com/heddle-project/heddle/runtime/gpu/gputest"
)

// suiteVariable makes the test binary run the suite on a library, alone in its
// process: the library reads its environment once.
const suiteVariable = "HEDDLE_TEST_NVML"

func TestDriverOnLibraryOfTheEnvironment(t *testing.T) {
	path := os.Getenv(suiteVariable)
	if path == "" {
		t.Skipf("%s names no library", suiteVariable)
	}
	gputest.Suite(t, func(t *testing.T) gpu.Driver {
		t.Helper()
		d, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() })
		return d
	})
}

func TestMIGOnLibraryOfTheEnvironment(t *testing.T) {
	path := os.Getenv(suiteVariable)
	if path == "" {
		t.Skipf("%s names no library", suiteVariable)
	}
	d, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	devices, err := d.Devices(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	gputest.MIGSuite(t, d, devices[0].UUID)
}

func TestDriverOnTheSoftwareGPU(t *testing.T) {
	library := build(t, "softgpu", "libnvidia-ml.so.1")
	state := filepath.Join(t.TempDir(), "node")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^Test(Driver|MIG)OnLibraryOfTheEnvironment$", "-test.v") // this test itself
	cmd.Env = append(os.Environ(), suiteVariable+"="+library, "SOFTGPU_STATE="+state, "SOFTGPU_GPUS=H100,A100-80")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestDriverOnLibraryOfTheEnvironment") ||
		!strings.Contains(string(out), "--- PASS: TestMIGOnLibraryOfTheEnvironment") {
		t.Errorf("%v\n%s", err, out)
	}
}

// build finds a built file, or skips.
func build(t *testing.T, parts ...string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(append([]string{"..", "..", "build"}, parts...)...))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skipf("not built: %v", err)
	}
	return path
}

func TestOpenWithoutALibraryIsOneClearError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	_, err := Open(path)
	if !errors.Is(err, errdefs.ErrUnavailable) || !strings.Contains(err.Error(), path) ||
		strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
}

func TestCodesHaveKinds(t *testing.T) {
	for code, kind := range map[nvml.Return]error{
		nvml.ERROR_NOT_FOUND:     errdefs.ErrNotFound,
		nvml.ERROR_GPU_IS_LOST:   errdefs.ErrNotFound,
		nvml.ERROR_NO_PERMISSION: errdefs.ErrPermissionDenied,
		nvml.ERROR_NOT_SUPPORTED: errdefs.ErrUnsupported,
		nvml.ERROR_IN_USE:        errdefs.ErrBusy,
		nvml.ERROR_UNINITIALIZED: errdefs.ErrUnavailable,
	} {
		if err := error(&Error{Operation: "x", Code: code}); !errors.Is(err, kind) {
			t.Errorf("NVML %d is not %v", code, kind)
		}
	}
	if errors.Is(&Error{Code: nvml.ERROR_UNKNOWN}, errdefs.ErrNotFound) {
		t.Error("an unknown code has a kind")
	}
}

func TestSamplesOfAProcessAreAveraged(t *testing.T) {
	got := meanShares([]nvml.ProcessUtilizationSample{
		{Pid: 7, SmUtil: 50}, {Pid: 8, SmUtil: 900}, {Pid: 7, SmUtil: 100}, {},
	})
	want := []gpu.ProcessShare{{PID: 7, Share: 0.75}, {PID: 8, Share: 1}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestProfileOfAMIGDevice(t *testing.T) {
	for name, want := range map[string]string{
		"NVIDIA H100 80GB HBM3 MIG 1g.10gb":    "1g.10gb",
		"NVIDIA A100-SXM4-40GB MIG 1c.3g.20gb": "1c.3g.20gb",
		"NVIDIA H100 80GB HBM3":                "",
	} {
		if got := profileOf(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// growing stands for a device whose processes came between the two calls of go-nvml.
type growing struct{ room int }

func (g growing) GetProcessUtilization(uint64) ([]nvml.ProcessUtilizationSample, nvml.Return) {
	samples := make([]nvml.ProcessUtilizationSample, g.room)
	return samples[:g.room+1], nvml.ERROR_INSUFFICIENT_SIZE
}

func TestProcessesThatComeDuringTheCallAreNoPanic(t *testing.T) {
	samples, code := processUtilization(growing{61}, 0)
	if len(samples) != 0 || code != nvml.ERROR_INSUFFICIENT_SIZE {
		t.Errorf("got %d samples and %v", len(samples), code)
	}
}
