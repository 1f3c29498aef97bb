package integration

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// demo is a `heddle demo` whose temporary files all lie in one folder of the
// test's own: what is found there afterwards was left behind, and a process
// that has the folder in its environment is one of the demo's.
type demo struct {
	cmd    *exec.Cmd
	temp   string
	stdout bytes.Buffer
	stderr bytes.Buffer
}

func startDemo(t *testing.T, args ...string) *demo {
	t.Helper()
	d := prepareDemo(t, args...)
	d.start(t)
	return d
}

func prepareDemo(t *testing.T, args ...string) *demo {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	heddle := filepath.Join(root, "build", "bin", "heddle")
	for _, part := range []string{heddle, filepath.Join(root, "build", "bin", "heddled"), filepath.Join(root, "build", "softgpu", "libcuda.so.1")} {
		if _, err := os.Stat(part); err != nil {
			t.Skipf("%s is missing: make build", part)
		}
	}
	// Short: the demo puts sockets below it.
	temp, err := os.MkdirTemp("/tmp", "demo-test-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(temp) }) // what a killed demo leaves is checked by its test
	d := &demo{cmd: exec.Command(heddle, append([]string{"demo"}, args...)...), temp: temp}
	d.cmd.Env = append(os.Environ(), "TMPDIR="+temp)
	d.cmd.Stdout, d.cmd.Stderr = &d.stdout, &d.stderr
	return d
}

func (d *demo) start(t *testing.T) {
	t.Helper()
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.cmd.Process.Kill() }) // if the test has failed on the way
}

// As with `heddle demo | head -1`: the end is a signal at the next line, and a
// program that dies of it cleans nothing up.
func TestDemoWhoseReaderHasLeftLeavesNothing(t *testing.T) {
	d := prepareDemo(t, "--duration", "3s")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	d.cmd.Stdout = w
	d.start(t)
	_, _ = w.Close(), r.Close() // only the demo has it now, and nobody reads
	if err := d.cmd.Wait(); err == nil {
		t.Error("the demo says it went well, and nobody has read of it")
	}
	d.wantNothingLeft(t)
}

// processes are those of the demo's children that run.
func (d *demo) processes(t *testing.T) (pids []int) {
	t.Helper()
	environs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range environs {
		text, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(text, []byte("SOFTGPU_STATE="+d.temp)) {
			continue // another's, or gone since
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// awaitProcesses waits until the demo has that many children.
func (d *demo) awaitProcesses(t *testing.T, n int) []int {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		pids := d.processes(t)
		if len(pids) == n {
			return pids
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d children, waited for %d; stderr: %s", len(pids), n, d.stderr.String())
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// wantNothingLeft fails if a process or a file of the demo is still there.
func (d *demo) wantNothingLeft(t *testing.T) {
	t.Helper()
	if pids := d.processes(t); len(pids) > 0 {
		t.Errorf("processes %v are left", pids)
	}
	entries, err := os.ReadDir(d.temp)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		t.Errorf("%s is left", entry.Name())
	}
}

func TestDemoMeasuresAndLeavesNothing(t *testing.T) {
	d := startDemo(t, "--duration", "3s", "--json")
	err := d.cmd.Wait()
	d.wantNothingLeft(t)
	type measure struct {
		P50    float64 `json:"p50_ms"`
		P99    float64 `json:"p99_ms"`
		TrainS float64 `json:"train_it_s"`
	}
	var got struct {
		Alone, Naive, Heddle measure
		Held                 bool
		Problems             []string
	}
	if jsonErr := json.Unmarshal(d.stdout.Bytes(), &got); jsonErr != nil {
		t.Fatalf("%v: %v; stderr: %s", err, jsonErr, d.stderr.String())
	}
	for name, m := range map[string]measure{"alone": got.Alone, "naive": got.Naive, "heddle": got.Heddle} {
		if m.P50 <= 0 || m.P99 < m.P50 || m.TrainS <= 0 {
			t.Errorf("%s: %+v", name, m)
		}
	}
	// Three seconds on a busy machine prove no promise; but the exit code must say what the result says.
	if (err == nil) != got.Held || got.Held != (len(got.Problems) == 0) {
		t.Errorf("ended with %v, held %v, problems %q", err, got.Held, got.Problems)
	}
	if got.Naive.P99 <= got.Alone.P99 {
		t.Errorf("two jobs on one device: p99 %.2f ms, alone %.2f ms", got.Naive.P99, got.Alone.P99)
	}
}

func TestDemoCanBeEndedAtAnyTime(t *testing.T) {
	tests := []struct {
		name     string
		signal   syscall.Signal
		children int // wait until it has that many
	}{
		{"an interrupt while one plays", syscall.SIGINT, 1},
		{"an interrupt while two play", syscall.SIGINT, 2},
		{"an interrupt while two play under heddled", syscall.SIGINT, 3},
		{"a request to end", syscall.SIGTERM, 3},
		{"a terminal that is gone", syscall.SIGHUP, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := startDemo(t, "--duration", "1s")
			d.awaitProcesses(t, tt.children)
			if err := d.cmd.Process.Signal(tt.signal); err != nil {
				t.Fatal(err)
			}
			if err := d.cmd.Wait(); err == nil {
				t.Error("an interrupted demo says that all is well")
			}
			d.wantNothingLeft(t)
			if got := d.stderr.String(); got != "heddle demo: interrupted\n" {
				t.Errorf("stderr: %q", got)
			}
		})
	}
}

func TestDemoSaysWhichPartFailed(t *testing.T) {
	tests := []struct {
		name     string
		children int
		want     string
	}{
		{"a player alone", 1, "service-alone-service"},
		{"one of two players", 2, "shared-without-Heddle-"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := startDemo(t, "--duration", "2s")
			pids := d.awaitProcesses(t, tt.children)
			if err := syscall.Kill(pids[0], syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if err := d.cmd.Wait(); err == nil {
				t.Error("a demo that lost a player says that all is well")
			}
			d.wantNothingLeft(t)
			if got := d.stderr.String(); !strings.Contains(got, tt.want) || strings.Count(got, "\n") != 1 {
				t.Errorf("stderr: %q, want one line with %q", got, tt.want)
			}
		})
	}
}

func TestDemoReadsWhatWasChosenFirst(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.csv")
	if err := os.WriteFile(bad, []byte("Name,Profile,SM_usage,Duration\nconv,7,1,5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--hp", bad}, "heddle demo: --hp " + bad + ": line 2: Profile 7 is not from -1 to 1\n"},
		{[]string{"--lp", bad}, "heddle demo: --lp " + bad + ": line 2: Profile 7 is not from -1 to 1\n"},
		{[]string{"--arrivals", "poisson:often"}, "heddle demo: arrivals poisson:often: the rate must be requests per second, above 0\n"},
	} {
		d := startDemo(t, tt.args...)
		_ = d.cmd.Wait()
		if code := d.cmd.ProcessState.ExitCode(); code != 2 || d.stderr.String() != tt.want || d.stdout.Len() != 0 {
			t.Errorf("%v: exit code %d, stdout %q, stderr %q; want %q", tt.args, code, d.stdout.String(), d.stderr.String(), tt.want)
		}
		if left, err := os.ReadDir(d.temp); err != nil || len(left) != 0 {
			t.Errorf("%v: left behind %v, %v", tt.args, left, err)
		}
	}
}

func TestDemoThatIsKilledTakesItsChildrenAlong(t *testing.T) {
	d := startDemo(t, "--duration", "1s")
	d.awaitProcesses(t, 3)
	if err := d.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = d.cmd.Wait() // it was killed
	d.awaitProcesses(t, 0)
}
