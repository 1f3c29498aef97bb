package softgpu

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// run has a process of its own do the task and returns what it heard.
func run(t *testing.T, n *Node, task string) ([]string, error) {
	t.Helper()
	data, err := askNVML(t, n.Build(), append(n.Env(), taskVariable+"="+task))
	if err != nil {
		return nil, err
	}
	var lines []string
	if err := json.Unmarshal(data, &lines); err != nil {
		return nil, fmt.Errorf("read the answer to %s: %w", task, err)
	}
	return lines, nil
}

// mustRun compares what the process heard with what it should.
func mustRun(t *testing.T, n *Node, task string, want ...string) {
	t.Helper()
	got, err := run(t, n, task)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", task, diff)
	}
}

func (n *Node) mustBeSound(t *testing.T) {
	t.Helper()
	if err := n.CheckMIG(t.Context()); err != nil {
		t.Error(err)
	}
}

func newMIGNode(t *testing.T, gpus ...string) *Node {
	t.Helper()
	n := newNode(t, Options{GPUs: gpus})
	for gpu := range gpus {
		if err := n.SetMIG(t.Context(), gpu, true); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func TestMIGThroughGoNVML(t *testing.T) {
	n := newMIGNode(t, "H100")
	mustRun(t, n, "tour",
		"create 5 at 4: Invalid Argument",
		"create 9 at 4: Invalid Argument",
		"create 9 at 4: Success",
		"create 0 at 0: Insufficient Resources",
		"room for 1g: Success 4",
		"instance: Success 1 9 {4 4}",
		"compute profile: Success MIG 1c.3g.40gb 16",
		"create compute: Success",
		"compute: Success 0 2 {0 3}",
		"uuid: Success MIG- 40",
		"mig device: Success",
		"is: Success true",
		"ids: Success 1 0",
		"attributes: Success 60 3 40448",
		"memory: Success 40448 0",
		"name: Success NVIDIA H100 80GB HBM3 MIG 3g.40gb",
		"the next: Not Found",
		"list: Success 1",
		"list computes: Success 1",
		"destroy: In use by another client",
		"destroy compute: Success",
		"destroy: Success",
		"destroy again: Invalid Argument",
		"by id: Not Found",
		"by uuid: Not Found",
	)
	n.mustBeSound(t)
}

// A library of before MIG lacks the names: a client can ask for one before it calls it.
func TestMIGIsMissingInAnOldLibrary(t *testing.T) {
	n := newNode(t, Options{GPUs: []string{"H100"}})
	build := n.Build()
	for _, libraries := range []string{build.Libraries, build.Libraries + "-premig"} {
		build.Libraries = libraries
		data, err := askNVML(t, build, append(n.Env(), taskVariable+"=symbol"))
		if err != nil {
			t.Fatal(err)
		}
		want := strings.HasSuffix(libraries, "-premig")
		if missing := strings.Contains(string(data), "missing"); missing != want {
			t.Errorf("%s: %s", libraries, data)
		}
	}
}

func TestMIGModeIsTwoAnswers(t *testing.T) {
	for _, test := range []struct {
		gpu  string
		busy bool
		want []string
	}{
		{"H100", false, []string{"resetless: Success 1", "enable: Success, activation Success", "mode: Success 1 1"}},
		{"B200", false, []string{"resetless: Success 1", "enable: Success, activation Success", "mode: Success 1 1"}},
		{"A100-80", false, []string{"resetless: Success 0", "enable: Success, activation GPU requires reset", "mode: Success 0 1"}},
		{"H100", true, []string{"resetless: Success 1", "enable: Success, activation In use by another client", "mode: Success 0 1"}},
		{"A30", true, []string{"resetless: Success 0", "enable: Success, activation In use by another client", "mode: Success 0 1"}},
	} {
		t.Run(fmt.Sprintf("%s, busy %t", test.gpu, test.busy), func(t *testing.T) {
			n := newNode(t, Options{GPUs: []string{test.gpu}})
			if test.busy {
				hold(t, n, "0")
			}
			mustRun(t, n, "mode", test.want...)
			n.mustBeSound(t)
		})
	}
}

func hold(t *testing.T, n *Node, target string) *Holder {
	t.Helper()
	h, err := n.HoldMIG(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Release(); err != nil {
			t.Error(err)
		}
	})
	return h
}

var cleanCycle = []string{
	"create 9 at 4: Success", "compute profile: Success 2 60", "create compute: Success", "destroy compute: Success", "destroy: Success",
}

func TestMIGFaults(t *testing.T) {
	n := newMIGNode(t, "H100", "H100")
	for _, test := range []struct {
		name   string
		faults []Injection
		want   map[int]string // line of the cycle: what it says then
		left   int            // GPU instances that stay
	}{
		{name: "none"},
		{
			name:   "no room for the compute instance",
			faults: []Injection{{Entry: "nvmlGpuInstanceCreateComputeInstance", Result: 23}},
			want:   map[int]string{2: "create compute: Insufficient Resources", 3: ""},
		},
		{
			name:   "the GPU instance is in use",
			faults: []Injection{{Entry: "nvmlGpuInstanceDestroy", Result: 19, Times: 5}},
			want:   map[int]string{4: "destroy: In use by another client"},
			left:   1,
		},
		{
			name:   "it is done and says that it is not",
			faults: []Injection{{Entry: "nvmlGpuInstanceDestroy", Result: 999, Late: true}},
			want:   map[int]string{4: "destroy: Unknown Error"},
		},
		{
			name:   "of the other GPU",
			faults: []Injection{{Entry: "nvml*", Result: 15, OnGPU: 2, Always: true}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, in := range test.faults {
				armed, err := n.Inject(in)
				if err != nil {
					t.Fatal(err)
				}
				defer armed.Disarm()
			}
			var want []string
			for i, line := range cleanCycle {
				if other, found := test.want[i]; found {
					line = other
				}
				if line != "" {
					want = append(want, line)
				}
			}
			mustRun(t, n, "cycle", want...)
			n.mustBeSound(t)
			m, err := n.MIG(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			if len(m.Instances) != test.left {
				t.Errorf("%d instances are left, want %d", len(m.Instances), test.left)
			}
			if err := n.ClearMIG(t.Context(), 0); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestMIGClientKilledAtEveryCall(t *testing.T) {
	n := newMIGNode(t, "A100-80")
	for _, entry := range []string{
		"nvmlDeviceCreateGpuInstanceWithPlacement", "nvmlGpuInstanceCreateComputeInstance", "nvmlComputeInstanceDestroy", "nvmlGpuInstanceDestroy",
	} {
		for _, late := range []bool{false, true} {
			armed, err := n.Inject(Injection{Entry: entry, Kill: true, Late: late})
			if err != nil {
				t.Fatal(err)
			}
			_, err = run(t, n, "cycle")
			if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Errorf("%s, late %t: the client should be killed, got: %v", entry, late, err)
			}
			armed.Disarm()
			n.mustBeSound(t)
			m, err := n.MIG(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			before := !late && entry == "nvmlDeviceCreateGpuInstanceWithPlacement"
			after := late && entry == "nvmlGpuInstanceDestroy"
			if gone := len(m.Instances) == 0; gone != (before || after) {
				t.Errorf("%s, late %t: instances are %v", entry, late, m.Instances)
			}
			if err := n.ClearMIG(t.Context(), 0); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestMIGOfOthers(t *testing.T) {
	n := newMIGNode(t, "H100", "A100-40")
	ctx := t.Context()
	for gpu := range 2 {
		for _, at := range []Placed{{profile3g, 0}, {profile2g, 4}} {
			if _, err := n.CreateMIG(ctx, gpu, at, at.Profile == profile2g); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := n.CreateMIG(ctx, 0, Placed{profile4g, 0}, false); err == nil || !strings.Contains(err.Error(), "in the way") {
		t.Errorf("create where something is: %v", err)
	}
	m, err := n.MIG(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := m.Layout().String(), "9:0 14:4"; got != want {
		t.Errorf("layout %q, want %q", got, want)
	}
	if len(m.Instances[0].Compute) != 1 || len(m.Instances[1].Compute) != 0 {
		t.Errorf("compute instances: %v", m.Instances)
	}
	n.mustBeSound(t)

	h := hold(t, n, "1/2/0")
	if err := n.DestroyMIG(ctx, 1, 2); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("in use by %d", h.PID)) {
		t.Errorf("destroy what %d holds: %v", h.PID, err)
	}
	if err := n.Reboot(ctx); err == nil {
		t.Error("the node boots with a process on it")
	}
	if err := h.Release(); err != nil {
		t.Error(err)
	}
	if err := n.Reboot(ctx); err != nil {
		t.Fatal(err)
	}
	for gpu, kept := range []bool{false, true} { // Ampere has the mode on the board
		if m, err := n.MIG(ctx, gpu); err != nil || m.Enabled != kept || len(m.Instances) != 0 {
			t.Errorf("GPU %d after a reboot: %+v, %v", gpu, m, err)
		}
	}
	if n.Boots() != 1 {
		t.Errorf("%d boots", n.Boots())
	}
	n.mustBeSound(t)
}

func TestMIGCapabilities(t *testing.T) {
	n := newMIGNode(t, "A30")
	minors, err := os.ReadFile(filepath.Join(n.Capabilities(), "proc", "driver", "nvidia-caps", "mig-minors"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(minors)), "\n")
	if len(lines) != 2+32*15*9 {
		t.Errorf("%d lines", len(lines))
	}
	for _, line := range []string{
		"config 1", "monitor 2", "gpu0/gi0/access 3", "gpu0/gi0/ci0/access 4", "gpu0/gi1/access 12", "gpu0/gi1/ci0/access 13", "gpu1/gi0/access 138",
	} {
		if !slices.Contains(lines, line) {
			t.Errorf("%q is missing", line)
		}
	}
	id, err := n.CreateMIG(t.Context(), 0, Placed{5, 2}, false) // 2g.12gb
	if err != nil {
		t.Fatal(err)
	}
	access := filepath.Join(n.Capabilities(), "proc", "driver", "nvidia", "capabilities", "gpu0", "mig", fmt.Sprintf("gi%d", id), "ci0", "access")
	text, err := os.ReadFile(access)
	if err != nil || !strings.HasPrefix(string(text), "DeviceFileMinor: 13\nDeviceFileMode: 292\n") {
		t.Errorf("%s: %q, %v", access, text, err)
	}
	n.mustBeSound(t)
}

func TestLayouts(t *testing.T) {
	build, err := FindBuild()
	if errors.Is(err, ErrNotBuilt) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	l, err := build.Layouts(t.Context(), "A100-40")
	if err != nil {
		t.Fatal(err)
	}
	plain := []int{profile7g, profile4g, profile3g, profile2g, profile1g}
	multisets := map[string]bool{}
	maximal := 0
	for _, layout := range l.Maximal() {
		var profiles []int
		for _, p := range layout {
			profiles = append(profiles, p.Profile)
		}
		if slices.ContainsFunc(profiles, func(p int) bool { return !slices.Contains(plain, p) }) {
			continue
		}
		slices.Sort(profiles)
		multisets[fmt.Sprint(profiles)] = true
		maximal++
	}
	if maximal != 19 {
		t.Errorf("%d maximal layouts of plain profiles, want 19", maximal)
	}
	want := map[string]bool{}
	for _, kind := range [][]int{ // by slices; what boards were seen to take
		{7}, {4, 3}, {4, 2, 1}, {4, 1, 1, 1}, {3, 3}, {3, 2, 1}, {3, 2, 2}, {3, 2, 1, 1}, {3, 1, 1, 1}, {3, 1, 1, 1, 1},
		{2, 2, 2, 1}, {2, 2, 1, 1, 1}, {2, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1, 1},
	} {
		var profiles []int
		for _, slices := range kind {
			profiles = append(profiles, map[int]int{7: profile7g, 4: profile4g, 3: profile3g, 2: profile2g, 1: profile1g}[slices])
		}
		slices.Sort(profiles)
		want[fmt.Sprint(profiles)] = true
	}
	if diff := cmp.Diff(want, multisets); diff != "" {
		t.Errorf("kinds of maximal layouts (-want +got):\n%s", diff)
	}
	for _, test := range []struct {
		layout Layout
		legal  bool
	}{
		{nil, true},
		{Layout{{profile3g, 4}, {profile4g, 0}}, true},
		{Layout{{profile3g, 0}, {profile4g, 0}}, false},
		{Layout{{profile4g, 4}}, false},
		{Layout{{profile3g, 0}, {profile3g, 4}, {profile1g, 6}}, false},
		{Layout{{20, 0}, {20, 1}}, false}, // 1g.5gb+me: one JPEG engine
		{Layout{{15, 0}, {15, 2}, {15, 4}, {15, 6}}, true},
	} {
		if l.Legal(test.layout) != test.legal {
			t.Errorf("%q: legal is %t", test.layout, !test.legal)
		}
	}
}
