package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heddle-project/heddle/runtime/profiles"
	"github.com/heddle-project/heddle/runtime/sim"
)

// simFiles writes a service of 20 x 50 us and a training job of 100 x 200 us.
func simFiles(t *testing.T) (service, training string) {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, n int, ns string) string {
		path := filepath.Join(dir, name)
		text := "Name,Profile,SM_usage,Duration\n" + strings.Repeat("kernel,1,132,"+ns+"\n", n)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("service.csv", 20, "50000"), write("training.csv", 100, "200000")
}

func runSim(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return runSimUntil(t.Context(), args...)
}

func runSimUntil(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	a := newApp(strings.NewReader(""), &out, &errs, os.Environ())
	code = a.execute(ctx, append([]string{"sim"}, args...))
	return code, out.String(), errs.String()
}

func TestSimComparesPolicies(t *testing.T) {
	service, training := simFiles(t)
	plot := filepath.Join(t.TempDir(), "out.svg")
	args := []string{"--hp", service + "@load:0.3", "--lp", training + "*2", "--policy", "heddle,none", "--duration", "2s", "--seeds", "2", "--oracle", "--plot", plot}
	code, stdout, stderr := runSim(t, args...)
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d, stderr %q", code, stderr)
	}
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	for i, want := range []string{"POLICY", "alone", "heddle", "none", "reactive", "oracle"} {
		if i >= len(lines) || !strings.HasPrefix(lines[i], want) {
			t.Fatalf("line %d does not begin with %s:\n%s", i, want, stdout)
		}
	}
	picture, err := os.ReadFile(plot)
	if err != nil {
		t.Fatal(err)
	}
	decoder := xml.NewDecoder(bytes.NewReader(picture))
	for err == nil {
		_, err = decoder.Token()
	}
	if !errors.Is(err, io.EOF) || !bytes.Contains(picture, []byte(">heddle</text>")) || !bytes.Contains(picture, []byte(">none</text>")) {
		t.Errorf("the plot: %v\n%s", err, picture)
	}

	_, again, _ := runSim(t, args...)
	if again != stdout {
		t.Errorf("a second run of the same seeds says something else:\n%s\n%s", stdout, again)
	}
	code, stdout, _ = runSim(t, append(args, "--json")...)
	for _, key := range []string{"policy", "p50", "p95", "p99", "ms", "of_alone", "share", "share_of_oracle", "rounds_per_s", "sm_busy", "overruns"} {
		if !strings.Contains(simLong, key) || !strings.Contains(stdout, `"`+key+`": `) {
			t.Errorf("the key %s is not both promised and printed", key)
		}
	}
	var report struct {
		GPU    string    `json:"gpu"`
		Shared bool      `json:"shared"`
		Alone  sim.Row   `json:"alone"`
		Oracle float64   `json:"oracle_share"`
		Rows   []sim.Row `json:"policies"`
	}
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || code != 0 {
		t.Fatalf("exit code %d, %v: %s", code, err, stdout)
	}
	if report.GPU != "H100" || !report.Shared || len(report.Rows) != 2 || math.Abs(report.Oracle-0.7) > 0.1 ||
		report.Rows[0].P99.OfAlone >= report.Rows[1].P99.OfAlone {
		t.Errorf("%+v", report)
	}
}

func TestSimTakesEveryKindOfArrivals(t *testing.T) {
	service, training := simFiles(t)
	gaps := filepath.Join(t.TempDir(), "gaps.json")
	if err := os.WriteFile(gaps, []byte("[0.01, 0.03]"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"@poisson:100", "@load:0.1", "@closed", "@closed:5ms", "@every:20ms", "@trace:" + gaps, ""} {
		code, stdout, stderr := runSim(t, "--hp", service+kind, "--lp", training, "--policy", "heddle", "--duration", "200ms", "--seeds", "1", "--time-sliced", "--slo", "0%")
		if code != 0 || stderr != "" || !strings.Contains(stdout, "heddle") {
			t.Errorf("%s: exit code %d, stderr %q\n%s", kind, code, stderr, stdout)
		}
	}
}

func TestSimEndsInTheMiddleOfARun(t *testing.T) {
	service, training := simFiles(t)
	// An hour of the device's time takes far longer than the test may.
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	code, stdout, stderr := runSimUntil(ctx, "--hp", service+"@load:0.3", "--lp", training, "--duration", "1h", "--oracle")
	if want := "heddle sim: interrupted before the runs of one seed were over\n"; code != 130 || stdout != "" || stderr != want {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

func TestSimShowsWhatItHasWhenInterrupted(t *testing.T) {
	report := &sim.Report{Seeds: 2, Rows: []sim.Row{{Policy: "heddle"}}}
	for _, asJSON := range []bool{false, true} {
		var out bytes.Buffer
		a := newApp(strings.NewReader(""), &out, io.Discard, nil)
		if err := a.printSim(&simOptions{gpu: "H100", asJSON: asJSON}, report, true); err != nil {
			t.Fatal(err)
		}
		if text := out.String(); !strings.Contains(text, "heddle") ||
			asJSON && (!strings.Contains(text, `"interrupted": true`) || !strings.Contains(text, `"seeds": 2`)) {
			t.Error(text)
		}
	}
}

func TestSimNamesTheGPUAsTheCatalogueDoes(t *testing.T) {
	service, _ := simFiles(t)
	_, stdout, _ := runSim(t, "--hp", service, "--gpu", "h100", "--policy", "none", "--duration", "100ms", "--seeds", "1", "--json")
	if !strings.Contains(stdout, `"gpu": "H100"`) {
		t.Error(stdout)
	}
}

func TestPoliciesAreCompletedOneAfterTheOther(t *testing.T) {
	for _, tt := range []struct{ typed, want, not string }{
		{"", "\nheddle\n", "heddle,"},
		{"heddle,", "\nheddle,none\n", "heddle,heddle"},
		{"heddle,orion,f", "\nheddle,orion,fair\n", "heddle,orion,orion"},
	} {
		var out bytes.Buffer
		a := newApp(strings.NewReader(""), &out, io.Discard, nil)
		a.execute(t.Context(), []string{"__complete", "sim", "--policy", tt.typed})
		if got := "\n" + out.String(); !strings.Contains(got, tt.want) || strings.Contains(got, tt.not) {
			t.Errorf("after %q: %q", tt.typed, got)
		}
	}
}

func TestSimTakesExportedProfiles(t *testing.T) {
	p := profiles.New(profiles.ID{Workload: "w", Device: "H100"})
	p.Describe(profiles.Description{Key: 1, Name: "k", Shape: profiles.Shape{Grid: [3]uint32{132, 1, 1}, Block: [3]uint32{1024, 1, 1}, BlocksPerSM: 1}})
	for range 50 {
		p.Observe(profiles.Sample{Kernel: 1, Previous: 1, Measured: true, DeviceTime: 2 * time.Millisecond})
	}
	document, err := p.Export()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path, broken := filepath.Join(dir, "api.json"), filepath.Join(dir, "broken.json")
	if err := errors.Join(os.WriteFile(path, document, 0o600), os.WriteFile(broken, document[:len(document)/2], 0o600)); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := runSim(t, "--hp", path+"@every:10ms", "--policy", "none", "--duration", "200ms", "--seeds", "1", "--json")
	var report struct{ Alone sim.Row }
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || code != 0 || math.Abs(report.Alone.P50.Ms-2) > 0.02 {
		t.Errorf("exit code %d, %v, stderr %q: %s", code, err, stderr, stdout)
	}
	if code, _, stderr = runSim(t, "--hp", broken); code != exitUsage || !strings.Contains(stderr, broken+": import profile: line ") {
		t.Errorf("of half a document: exit code %d, %q", code, stderr)
	}
}

func TestShippedWorkloadsHaveNames(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"a.csv", "b.csv", "README.md"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	folders := []string{filepath.Join(folder, "nothing"), folder}
	f, err := openWorkload("b", folders)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if content, _ := io.ReadAll(f); string(content) != "b.csv" {
		t.Errorf("read %q", content)
	}
	for _, tt := range []struct {
		file    string
		folders []string
		want    string
	}{
		{"c", folders, "no such file or directory; the shipped workloads are a, b"},
		{"./b", folders, "no such file or directory"},
		{"c", folders[:1], "no such file or directory"},
		{folder + "/a.csv/x", folders, "not a directory"},
	} {
		if _, err := openWorkload(tt.file, tt.folders); err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v, want %s", tt.file, err, tt.want)
		}
	}
}

func TestSimLists(t *testing.T) {
	if code, stdout, _ := runSim(t, "--list"); code != 0 || !strings.Contains(stdout, "H100") || !strings.Contains(stdout, "timeslice") {
		t.Errorf("exit code %d: %s", code, stdout)
	}
}

func TestSimRefusesWrongUse(t *testing.T) {
	service, _ := simFiles(t)
	bad := filepath.Join(t.TempDir(), "bad")
	if err := os.WriteFile(bad, []byte("[1, 2"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, "give at least one --hp workload"},
		{[]string{"--hp", "/nonexistent.csv"}, "--hp /nonexistent.csv: no such file or directory"},
		{[]string{"--hp", bad}, "no column Name"},
		{[]string{"--hp", service + "@often"}, `"often" is not poisson, load, closed, every or trace`},
		{[]string{"--hp", service + "@poisson:0"}, `rate "0": want a number above 0`},
		{[]string{"--hp", service + "@load:NaN"}, `load "NaN": want a number above 0`},
		{[]string{"--hp", service + "@every:20"}, `"20": want a duration above 0`},
		{[]string{"--hp", service + "@closed:-1s"}, `"-1s": want a duration above 0`},
		{[]string{"--hp", service + "@trace:" + bad}, "not a whole JSON array"},
		{[]string{"--hp", service + "@trace:/nonexistent"}, "/nonexistent: no such file or directory"},
		{[]string{"--hp", service + "*0"}, "*0 is not a number of copies from 1 to 64"},
		{[]string{"--hp", "@closed"}, "no file is named"},
		{[]string{"--hp", service + "*40", "--lp", service + "*40"}, "80 programs: want at most 64"},
		{[]string{"--hp", service, "--gpu", "H99"}, "--gpu H99: there are "},
		{[]string{"--hp", service, "--policy", "best"}, `no policy is named "best"`},
		{[]string{"--hp", service, "--duration", "0s"}, "--duration 0s: want more than 0"},
		{[]string{"--hp", service, "--seeds", "0"}, "--seeds 0: want 1 to 1000"},
		{[]string{"--hp", service, "--noise", "2"}, "--noise 2: want 0 to 1"},
		{[]string{"--hp", service, "--slo", "2"}, "--slo 2: want a percentage"},
		{[]string{"extra"}, "extra"},
	} {
		code, stdout, stderr := runSim(t, tt.args...)
		if code != exitUsage || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, tt.want) {
			t.Errorf("%v: exit code %d, stdout %q, stderr %q; want %q", tt.args, code, stdout, stderr, tt.want)
		}
	}
}

func FuzzParseWorkload(f *testing.F) {
	for _, text := range []string{"a.csv", "a.csv@poisson:40", "a@b.csv@trace:x@y.json*4", "*", "@", "a*b*2"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseWorkload(text)
		if err == nil && (s.file == "" || s.count < 1 || s.count > simMaxClients || !strings.HasPrefix(text, s.file)) {
			t.Errorf("%q is %+v", text, s)
		}
	})
}
