package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
)

func kept() demoResult {
	return demoResult{
		Alone:    demoMeasure{P50Ms: 6, P99Ms: 12, TrainItS: 16},
		Naive:    demoMeasure{P50Ms: 13, P99Ms: 40, TrainItS: 9},
		Heddle:   demoMeasure{P50Ms: 7, P99Ms: 15, TrainItS: 11},
		Requests: 600,
	}
}

func TestDemoPromise(t *testing.T) {
	tests := []struct {
		name   string
		change func(*demoResult)
		want   string // part of the one problem; empty: none
	}{
		{"holds at exactly a quarter more", func(*demoResult) {}, ""},
		{"breaks when the service is slower than promised", func(r *demoResult) { r.Heddle.P99Ms = 15.1 }, "1.26 times that of the service alone"},
		{"breaks when the training stands still", func(r *demoResult) { r.Heddle.TrainItS = 0 }, "training did not go on"},
		{"breaks when sharing did no harm without Heddle", func(r *demoResult) { r.Naive.P99Ms = 13 }, "nothing to mend"},
		{"breaks when nothing was measured", func(r *demoResult) { *r = demoResult{Requests: 600} }, "measured nothing"},
		{"breaks when a p99 would be luck", func(r *demoResult) { r.Requests = 99 }, "too few"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := kept()
			tt.change(&r)
			problems := r.broken()
			switch {
			case tt.want == "" && len(problems) > 0:
				t.Errorf("broken() = %q, want nothing", problems)
			case tt.want != "" && (len(problems) != 1 || !strings.Contains(problems[0], tt.want)):
				t.Errorf("broken() = %q, want one with %q", problems, tt.want)
			}
		})
	}
}

func TestDemoReportFailsWhenThePromiseDoesNotHold(t *testing.T) {
	var stdout, stderr bytes.Buffer
	a := newApp(strings.NewReader(""), &stdout, &stderr, nil)
	r := kept()
	if err := a.reportDemo(&demoOptions{}, &demoResult{Held: true, Alone: r.Alone, Naive: r.Naive, Heddle: r.Heddle}); err != nil {
		t.Errorf("a promise that held: %v", err)
	}
	for _, want := range []string{"alone, each", "12.00 ms", "shared without Heddle", "3.33", "shared with Heddle", "11.00 it/s", "69%", "The promise held"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, stdout.String())
		}
	}
	stdout.Reset()
	r.Problems = []string{"too slow"}
	if err := a.reportDemo(&demoOptions{asJSON: true}, &r); exitCode(err) != exitFailure {
		t.Errorf("exit code of a broken promise: %d", exitCode(err))
	}
	if !strings.Contains(stderr.String(), "heddle demo: too slow") || !strings.Contains(stdout.String(), `"held": false`) {
		t.Errorf("stderr %q, stdout %q", stderr.String(), stdout.String())
	}
}

func TestDemoRefusesWrongUse(t *testing.T) {
	for _, args := range [][]string{
		{"--gpu", "imaginary"},
		{"--duration", "10ms"},
		{"--duration", "1h"},
		{"--hp", "/nonexistent.csv"},
		{"--keep-logs", "/nonexistent"},
		{"extra"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			a := newApp(strings.NewReader(""), &stdout, &stderr, os.Environ())
			if code := a.execute(t.Context(), append([]string{"demo"}, args...)); code != exitUsage {
				t.Errorf("exit code %d, want %d", code, exitUsage)
			}
			if lines := strings.Count(stderr.String(), "\n"); lines != 1 {
				t.Errorf("%d lines on stderr: %q", lines, stderr.String())
			}
		})
	}
}

func TestDemoRowShowsWhoRunsAndWhoIsHeld(t *testing.T) {
	device := func(busy, held bool) *heddlev1.Client {
		return &heddlev1.Client{Devices: []*heddlev1.ClientDevice{{Busy: busy, Held: held}}}
	}
	tests := []struct {
		name   string
		status *playStatus
		client *heddlev1.Client
		yields bool
		want   string
	}{
		{"nothing known yet", nil, nil, false, "idle"},
		{"a player between passes", &playStatus{Begun: 3, Done: 3}, nil, false, "idle"},
		{"a player in a pass, nobody to ask", &playStatus{Begun: 4, Done: 3}, nil, false, "runs"},
		{"the daemon knows better: held", &playStatus{Begun: 4, Done: 3}, device(true, true), true, "held"},
		{"the daemon knows better: idle", &playStatus{Begun: 4, Done: 3}, device(false, false), false, "idle"},
		{"the daemon says busy", &playStatus{Begun: 4, Done: 3}, device(true, false), false, "runs"},
		{"it yields and has nothing to launch", &playStatus{Begun: 4, Done: 3}, device(true, false), true, "runs"},
		{"its own work fills its window", &playStatus{Begun: 4, Done: 3}, device(true, true), false, "runs"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			row := demoRow{name: "service"}
			row.update(tt.status, tt.client, tt.yields)
			if got := row.strip[0].word(); got != tt.want {
				t.Errorf("state %q, want %q", got, tt.want)
			}
		})
	}
}

func TestDemoScreenKeepsItsShape(t *testing.T) {
	row := demoRow{name: "service"}
	for range 2 * demoStrip {
		row.update(&playStatus{Begun: 2, Done: 1, LastMs: 6.25}, nil, false)
	}
	text := demoScreen("shared with Heddle", time.Hour, time.Second, []demoRow{row, row}, palette{})
	if lines := strings.Count(text, "\n"); lines != 3 {
		t.Errorf("%d lines, want 3:\n%s", lines, text)
	}
	if !strings.HasPrefix(text, wrapOff) || !strings.HasSuffix(text, wrapOn) {
		t.Errorf("lines may wrap in a narrow terminal: %q", text)
	}
	if !strings.Contains(text, " "+strings.Repeat("#", demoShown)+"    1 done, last   6.2 ms, runs 100%") {
		t.Errorf("no full strip in\n%s", text)
	}
}

func TestDemoWarnsOfABusyMachine(t *testing.T) {
	for loadavg, busy := range map[string]bool{
		"0.35 1.20 2.00 1/200 999\n": false,
		"1.00 0.10 0.10 1/200 999\n": true,
		"5.31 4.00 3.00 9/200 999\n": true,
		"nonsense":                   false,
	} {
		if got := demoLoadWarning(loadavg, 2); (got != "") != busy {
			t.Errorf("load %q on 2 processors: %q", loadavg, got)
		}
	}
}

func TestDemoFolderHasRoomForASocket(t *testing.T) {
	for _, temp := range []string{"", t.TempDir(), "/tmp/" + strings.Repeat("x", 120)} {
		dir, err := makeDemoFolder(temp)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Remove(dir) })
		if len(dir)+demoSocketRoom > socketPathMax {
			t.Errorf("%s is too long for a socket", dir)
		}
	}
}

// sh starts a shell as a child of the demo.
func sh(t *testing.T, script string) *child {
	t.Helper()
	c, err := startChild(t.TempDir(), "sh", os.Environ(), []string{"/bin/sh", "-c", script})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.stop(0) })
	return c
}

func TestChildTakesItsWholeGroupAlong(t *testing.T) {
	// The shell ignores the polite signal and has a child of its own.
	c := sh(t, `trap "" TERM; sleep 1000 & echo $! > pid; wait; wait`)
	pid := filepath.Join(c.cmd.Dir, "pid")
	var grandchild int
	for grandchild == 0 {
		if err := t.Context().Err(); err != nil {
			t.Fatal(err)
		}
		text, _ := os.ReadFile(pid)
		if line, complete := strings.CutSuffix(string(text), "\n"); complete {
			var err error
			if grandchild, err = strconv.Atoi(line); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.stop(time.Millisecond)
	// Orphans are reaped by init in its own time; a zombie runs no more.
	for alive(grandchild) {
		if err := t.Context().Err(); err != nil {
			t.Fatalf("process %d is still there", grandchild)
		}
	}
}

func alive(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func TestChildFailureSaysWhatItSaidLast(t *testing.T) {
	c := sh(t, `echo first >&2; echo "open device 7: there is 1" >&2; exit 3`)
	err := c.wait(t.Context())
	if err == nil || err.Error() != "sh: exit status 3: open device 7: there is 1" {
		t.Errorf("wait() = %v", err)
	}
}

func TestChildWaitEndsWithItsContext(t *testing.T) {
	c := sh(t, `exec sleep 1000`)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("wait() = %v", err)
	}
}
