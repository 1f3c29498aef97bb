package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
	"github.com/heddle-project/heddle/runtime/errdefs"
)

func fakeTrace() []*heddlev1.RecordTraceResponse {
	return []*heddlev1.RecordTraceResponse{
		{Start: &heddlev1.TraceStart{Time: timestamppb.Now(), ClockNs: 1000, Version: "v"}},
		{
			Clients: []*heddlev1.Client{{Id: 3, Pid: 4711, Name: "train", Priority: 7}},
			Devices: []*heddlev1.TraceDevice{{Uuid: uuidA, Name: "H100"}},
			Events: []*heddlev1.TraceEvent{
				{Kind: heddlev1.TraceKind_TRACE_KIND_LAUNCH, Client: 3, TimeNs: 2000, DurationNs: 500, Kernel: 7},
				{Kind: heddlev1.TraceKind_TRACE_KIND_HOLD, Client: 3, TimeNs: 3000, DurationNs: 500, Kernel: 7},
			},
			Losses: []*heddlev1.TraceLoss{{Client: 3, Dropped: 2}},
		},
	}
}

// entries are what is in a folder.
func entries(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

func validTrace(t *testing.T, data []byte) {
	t.Helper()
	var d struct{ TraceEvents []struct{ Name string } }
	if err := json.Unmarshal(data, &d); err != nil || len(d.TraceEvents) == 0 {
		t.Errorf("no trace: %v in %q", err, data)
	}
	if !strings.Contains(string(data), `"name":"train, client 3, pid 4711, low"`) {
		t.Errorf("the client is not in it: %s", data)
	}
}

const recorded = `recorded [0-9.µm]+s: 1 client, launches 1 \(measured 0\), holds 1, idle times 0, missing events 2`

func TestTraceRecordLeavesACompleteFile(t *testing.T) {
	d := startFake(t, true)
	d.tells(fakeTrace(), nil)
	dir := t.TempDir()
	path := filepath.Join(dir, "t.json")
	if err := os.WriteFile(path, []byte("older"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	got := invoke(t, d.env(), screen{}, "trace", "record", "-o", filepath.Join(dir, "link"), "--duration", "3s", "--client", "3", "--device", "0")
	if got.code != 0 || got.stdout != "" || !regexp.MustCompile("^"+recorded+"; ui.perfetto.dev opens .*\n$").MatchString(got.stderr) {
		t.Errorf("%+v", got)
	}
	if diff := cmp.Diff([]string{"trace [3] [" + uuidA + "] 3s"}, d.changes()); diff != "" {
		t.Error(diff)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	validTrace(t, data)
	if diff := cmp.Diff([]string{"link", "t.json"}, entries(t, dir)); diff != "" {
		t.Error(diff)
	}
}

func TestTraceRecordWritesToStandardOutput(t *testing.T) {
	d := startFake(t, true)
	d.tells(fakeTrace(), nil)
	got := invoke(t, d.env(), screen{}, "trace", "record", "-o", "-", "--duration", "1s")
	if got.code != 0 || !regexp.MustCompile("^"+recorded+"\n$").MatchString(got.stderr) {
		t.Errorf("%+v", got)
	}
	validTrace(t, []byte(got.stdout))
}

// An interrupt is how one ends a recording without a duration.
func TestTraceRecordEndsWithAnInterrupt(t *testing.T) {
	d := startFake(t, true)
	traced := d.tells(fakeTrace(), nil)
	dir := t.TempDir()
	cmd := heddleProcess(t, d.env(), "trace", "record", "-o", filepath.Join(dir, "t.json"))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-traced
	if err := errors.Join(cmd.Process.Signal(syscall.SIGINT), cmd.Wait()); err != nil {
		t.Errorf("%v, %s", err, stderr.String())
	}
	data, err := os.ReadFile(filepath.Join(dir, "t.json"))
	if err != nil || !json.Valid(data) {
		t.Errorf("%v: %q", err, data)
	}
	if diff := cmp.Diff([]string{"t.json"}, entries(t, dir)); diff != "" {
		t.Error(diff)
	}
}

func TestTraceRecordKeepsWhatCameBeforeAnError(t *testing.T) {
	d := startFake(t, true)
	d.tells(fakeTrace(), errdefs.Errorf(errdefs.Unavailable, "heddled is stopping"))
	dir := t.TempDir()
	args := []string{"trace", "record", "-o", filepath.Join(dir, "t.json")}
	got := invoke(t, d.env(), screen{}, args...)
	if got.code != exitUnreachable || !strings.Contains(got.stderr, "heddle trace record: heddled is stopping\n") {
		t.Errorf("%+v", got)
	}
	data, err := os.ReadFile(filepath.Join(dir, "t.json"))
	if err != nil {
		t.Fatal(err)
	}
	validTrace(t, data)
	d.tells(nil, errdefs.Errorf(errdefs.Exhausted, "too many"))
	if got := invoke(t, d.env(), screen{}, args...); got.code != exitFailure || got.stderr != "heddle trace record: too many\n" {
		t.Errorf("%+v", got)
	}
	if again, err := os.ReadFile(filepath.Join(dir, "t.json")); err != nil || string(again) != string(data) {
		t.Errorf("the older file is gone: %v", err)
	}
	if diff := cmp.Diff([]string{"t.json"}, entries(t, dir)); diff != "" {
		t.Error(diff)
	}
}

func TestTraceRecordSaysWhyItCannotWrite(t *testing.T) {
	d := startFake(t, true)
	d.tells(fakeTrace(), nil)
	dir := t.TempDir()
	for _, tt := range []struct {
		path, line string
		code       int
	}{
		{dir, "heddle trace record: " + dir + " is a folder\n", exitUsage},
		{filepath.Join(dir, "none", "t.json"), "heddle trace record: " + dir + "/none/t.json: no such file or directory\n", exitFailure},
		{"/dev/full", "heddle trace record: /dev/full: write /dev/full: no space left on device\n", exitFailure},
	} {
		got := invoke(t, d.env(), screen{}, "trace", "record", "-o", tt.path, "--duration", "1s")
		if diff := cmp.Diff(result{stderr: tt.line, code: tt.code}, got, cmp.AllowUnexported(result{})); diff != "" {
			t.Errorf("%s: %s", tt.path, diff)
		}
	}
	if len(entries(t, dir)) != 0 {
		t.Errorf("left behind: %v", entries(t, dir))
	}
}
