package clients

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// shellAt puts a shell of its own at a path: a file that is no other program's.
func shellAt(t *testing.T, path string) {
	t.Helper()
	program, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Skipf("no shell to copy: %v", err)
	}
	if err := os.WriteFile(path+".new", program, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// waiting runs a program that says a word and waits, and returns its folder in /proc; empty if it
// did not come to say it.
func waiting(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	if word, err := bufio.NewReader(out).ReadString('\n'); err != nil || word != "ready\n" {
		return ""
	}
	return "/proc/" + strconv.Itoa(cmd.Process.Pid)
}

const sayAndWait = "echo ready; read line"

func TestAProgramIsTheFileThatHeddledFindsAtItsPath(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	shellAt(t, program)
	dir := waiting(t, program, "-c", sayAndWait)
	path, genuine := executable(dir)
	if path != program || genuine == nil || !genuine() {
		t.Errorf("%q is not taken for the file at its path", path)
	}
	_, late := executable(dir)
	shellAt(t, program)
	if late() {
		t.Error("another file at the path is taken for the one that runs")
	}
	if !genuine() {
		t.Error("an upgrade changed who a living process is")
	}
}

func TestAProgramAtAForgedPathIsFoundOut(t *testing.T) {
	dir := t.TempDir()
	program, forged := filepath.Join(dir, "program"), filepath.Join(dir, "forged")
	shellAt(t, program)
	shellAt(t, forged)
	proc := waiting(t, "unshare", "--mount", "sh", "-c", `mount --bind "$1" "$0" && exec "$0" -c "$2"`, program, forged, sayAndWait)
	if proc == "" {
		t.Skip("this user may not make mount namespaces and mount there")
	}
	path, genuine := executable(proc)
	if path != program {
		t.Fatalf("the forged path is %q, want %q: this test shows nothing", path, program)
	}
	if genuine() {
		t.Error("a program that its owner mounted over another one is taken for that")
	}
}

func TestAProcessThatCannotBeSeenRunsNothing(t *testing.T) {
	if path, genuine := executable(t.TempDir()); path != "" || genuine != nil {
		t.Errorf("%q", path)
	}
}
