package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
)

// standIn is what an interposer is to the loader and to the probe.
const standIn = `
int cuInit(unsigned int flags) { return flags == 0 ? 0 : 1; }
int cuDeviceGetCount(int *count) { *count = 2; return 0; }
int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
`

// buildNode builds a node that doctor finds nothing wrong with: driver, interposer, probe and sockets.
func buildNode(t *testing.T, d *fakeDaemon) (env []string, interposer string) {
	t.Helper()
	driver, interposer := buildLibrary(t, standIn), buildLibrary(t, marked+standIn)
	build := exec.CommandContext(t.Context(), "cc", "-D_GNU_SOURCE", "-o", filepath.Join(filepath.Dir(interposer), probeProgram),
		"../../interpose/probe/heddle-probe.c", "-ldl")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	leaveSocket(t, d.status.GetAttachSocket())
	d.clients = append(d.clients, &heddlev1.Client{
		Id: 77, Name: "heddle-doctor-" + strconv.Itoa(os.Getpid()), Priority: 5,
		State: heddlev1.ClientState_CLIENT_STATE_ATTACHED, InterposerVersion: d.status.GetVersion(),
	})
	return d.env("HEDDLE_REAL_LIBCUDA="+driver, "HEDDLE_INTERPOSER="+interposer), interposer
}

type doctorReport struct {
	Checks   []finding `json:"checks"`
	Failed   int       `json:"failed"`
	Warnings int       `json:"warnings"`
}

func examine(t *testing.T, env []string) (report map[string]finding, code int) {
	t.Helper()
	got := invoke(t, env, screen{}, "doctor", "--json")
	var r doctorReport
	if err := json.Unmarshal([]byte(got.stdout), &r); err != nil {
		t.Fatalf("%v in %q, stderr %q", err, got.stdout, got.stderr)
	}
	report = make(map[string]finding)
	failed, warnings := 0, 0
	for _, f := range r.Checks {
		report[f.ID] = f
		switch f.Status {
		case gradeFail:
			failed++
		case gradeWarn:
			warnings++
		case gradeOK, gradeSkip:
		}
		if mends := f.Mend != ""; mends != (f.Status == gradeFail || f.Status == gradeWarn) {
			t.Errorf("%s is %s, and its advice is %q", f.ID, f.Status, f.Mend)
		}
	}
	if failed != r.Failed || warnings != r.Warnings || len(r.Checks) != len(checks()) {
		t.Errorf("%d failed, %d warnings in %+v", failed, warnings, r)
	}
	return report, got.code
}

func TestDoctorOnANodeThatIsWell(t *testing.T) {
	d := startFake(t, true)
	env, _ := buildNode(t, d)
	report, code := examine(t, env)
	if code != exitOK {
		t.Errorf("exit code %d", code)
	}
	for _, id := range []string{"os-kernel", "driver", "api-socket", "heddled", "devices", "attach-socket", "rights", "fail-mode", "interposer", "attach"} {
		if report[id].Status != gradeOK {
			t.Errorf("%+v", report[id])
		}
	}
	if f := report["attach"]; f.Found != "client 77, class normal, devices 2" {
		t.Errorf("attach: %+v", f)
	}
	// The stand-in does not open the driver behind it, and doctor notices.
	f := report["loader"]
	if f.Status != gradeWarn || !strings.Contains(f.Found, "behind it is not") {
		t.Errorf("loader: %+v", f)
	}
	_, after, _ := strings.Cut(f.Found, "(pid ")
	number, _, _ := strings.Cut(after, ")")
	pid, err := strconv.Atoi(number)
	if err != nil {
		t.Fatalf("no pid in %q: %v", f.Found, err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the child %d is left behind: %v", pid, err)
	}
}

func TestDoctorFindsWhatIsWrong(t *testing.T) {
	tests := []struct {
		name string
		harm func(t *testing.T, d *fakeDaemon, env []string, interposer string) []string
		want map[string]grade
	}{
		{
			"heddled is not there",
			func(_ *testing.T, _ *fakeDaemon, env []string, _ string) []string {
				return setEnv(env, "HEDDLE_API", "/nonexistent/api.sock")
			},
			map[string]grade{"api-socket": gradeFail, "heddled": gradeSkip, "devices": gradeSkip, "attach-socket": gradeSkip, "loader": gradeWarn, "attach": gradeSkip},
		},
		{
			"the driver is missing",
			func(_ *testing.T, _ *fakeDaemon, env []string, _ string) []string {
				return setEnv(env, "HEDDLE_REAL_LIBCUDA", "/nonexistent/libcuda.so.1")
			},
			map[string]grade{"driver": gradeFail, "heddled": gradeOK},
		},
		{
			"no device",
			func(_ *testing.T, d *fakeDaemon, env []string, _ string) []string {
				d.devices = nil
				return env
			},
			map[string]grade{"devices": gradeFail},
		},
		{
			"versions differ",
			func(_ *testing.T, d *fakeDaemon, env []string, _ string) []string {
				d.status.Version = "v0.0.1"
				return env
			},
			map[string]grade{"heddled": gradeWarn, "attach": gradeWarn},
		},
		{
			"the attach socket is gone",
			func(t *testing.T, d *fakeDaemon, env []string, _ string) []string {
				t.Helper()
				if err := os.Remove(d.status.GetAttachSocket()); err != nil {
					t.Fatal(err)
				}
				return env
			},
			map[string]grade{"attach-socket": gradeFail},
		},
		{
			"the interposer is missing",
			func(_ *testing.T, _ *fakeDaemon, env []string, _ string) []string {
				return setEnv(env, "HEDDLE_INTERPOSER", "/nonexistent/libcuda.so.1")
			},
			map[string]grade{"interposer": gradeFail, "loader": gradeSkip, "attach": gradeSkip},
		},
		{
			"the probe is missing",
			func(t *testing.T, _ *fakeDaemon, env []string, interposer string) []string {
				t.Helper()
				if err := os.Remove(filepath.Join(filepath.Dir(interposer), probeProgram)); err != nil {
					t.Fatal(err)
				}
				return env
			},
			map[string]grade{"interposer": gradeOK, "loader": gradeOK, "attach": gradeSkip},
		},
		{
			"heddled evicted the child",
			func(_ *testing.T, d *fakeDaemon, env []string, _ string) []string {
				last := d.clients[len(d.clients)-1]
				last.State, last.Reason = heddlev1.ClientState_CLIENT_STATE_EVICTED, "bad magic"
				return env
			},
			map[string]grade{"attach": gradeFail},
		},
		{
			"the interposer is off",
			func(_ *testing.T, _ *fakeDaemon, env []string, _ string) []string {
				return append(env, "HEDDLE_DISABLE=1")
			},
			map[string]grade{"environment": gradeWarn, "attach": gradeSkip},
		},
		{
			"MPS left its folder behind",
			func(t *testing.T, _ *fakeDaemon, env []string, _ string) []string {
				t.Helper()
				pipes := t.TempDir()
				if err := os.WriteFile(filepath.Join(pipes, "control"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
				return append(env, "CUDA_MPS_PIPE_DIRECTORY="+pipes)
			},
			map[string]grade{"mps": gradeWarn},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := startFake(t, true)
			env, interposer := buildNode(t, d)
			report, code := examine(t, tt.harm(t, d, env, interposer))
			got, failed := make(map[string]grade), false
			for id := range tt.want {
				got[id] = report[id].Status
			}
			for _, f := range report {
				failed = failed || f.Status == gradeFail
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s%+v", diff, report)
			}
			if failed != (code == exitFailure) || !failed && code != exitOK {
				t.Errorf("exit code %d with failures: %v", code, failed)
			}
		})
	}
}

func TestDoctorForPeople(t *testing.T) {
	d := startFake(t, true)
	env, _ := buildNode(t, d)
	got := invoke(t, setEnv(env, "HEDDLE_API", "/nonexistent/api.sock"), screen{tty: true, width: 100}, "doctor")
	if got.code != exitFailure || got.stderr != "" {
		t.Errorf("exit %d, stderr %q", got.code, got.stderr)
	}
	for _, want := range []string{
		"ok    OS kernel", "fail  API socket             /nonexistent/api.sock: no such file or directory\n",
		"-> start heddled", "skip  heddled", "1 check failed, ",
	} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("no %q in:\n%s", want, got.stdout)
		}
	}
}

func TestParseMaps(t *testing.T) {
	text := "55d0-55d1 r--p 00000000 fd:00 12 /usr/bin/cat\n" +
		"55d1-55d2 r-xp 00001000 fd:00 12 /usr/bin/cat\n" +
		"7f00-7f01 rw-p 00000000 00:00 0 \n" +
		"7f01-7f02 r--p 00000000 fd:00 13 /opt/a b/libcuda.so.1 (deleted)\n" +
		"7ffe-7fff r-xp 00000000 00:00 0 [vdso]"
	if diff := cmp.Diff([]string{"/usr/bin/cat", "/opt/a b/libcuda.so.1"}, parseMaps(text)); diff != "" {
		t.Error(diff)
	}
}

func TestFindProcessByItsProgram(t *testing.T) {
	proc := t.TempDir()
	for pid, cmdline := range map[string]string{"10": "/usr/bin/nvidia-cuda-mps-control\x00-d\x00", "11": "grep\x00nvidia-cuda-mps-control\x00", "self": "x"} {
		dir := filepath.Join(proc, pid)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "cmdline"), []byte(cmdline), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if pid := findProcess(proc, "nvidia-cuda-mps-control"); pid != 10 {
		t.Errorf("found %d, want 10", pid)
	}
	if pid := findProcess(proc, "heddled"); pid != 0 {
		t.Errorf("found %d, want none", pid)
	}
}

func TestWrapKeepsWordsWhole(t *testing.T) {
	tests := []struct {
		width, indent int
		want          string
	}{
		{0, 2, "one two three /a/long/path/of/thirty/letters four"},
		{24, 2, "one two three\n  /a/long/path/of/thirty/letters\n  four"},
		{80, 2, "one two three /a/long/path/of/thirty/letters four"},
	}
	for _, tt := range tests {
		if got := wrap(tests[0].want, tt.width, tt.indent); got != tt.want {
			t.Errorf("width %d: %q, want %q", tt.width, got, tt.want)
		}
	}
}

// TestInterruptedDoctorLeavesNoChild interrupts doctor while its child hangs.
func TestInterruptedDoctorLeavesNoChild(t *testing.T) {
	d := startFake(t, true)
	leaveSocket(t, d.status.GetAttachSocket())
	lib := buildLibrary(t, marked)
	probe := filepath.Join(filepath.Dir(lib), probeProgram)
	// A program that never reports; it notes its pid, as doctor has not come to that.
	if err := os.WriteFile(probe, []byte("#!/bin/sh\necho $$ > \"$0.pid\"\nexec sleep 600\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := heddleProcess(t, d.env("HEDDLE_INTERPOSER="+lib), "doctor")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := awaitPID(t, probe+".pid")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("an interrupted doctor ended with success")
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the child %d is left behind: %v", pid, err)
	}
}

// awaitPID waits for a program to have written its pid.
func awaitPID(t *testing.T, path string) int {
	t.Helper()
	for limit := time.Now().Add(20 * time.Second); time.Now().Before(limit); {
		data, err := os.ReadFile(path)
		if pid, convErr := strconv.Atoi(strings.TrimSpace(string(data))); err == nil && convErr == nil {
			return pid
		}
		time.Sleep(5 * time.Millisecond) // a bounded condition on another process
	}
	t.Fatalf("%s was not written", path)
	return 0
}
