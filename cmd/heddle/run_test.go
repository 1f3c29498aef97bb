package main

import (
	"bytes"
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
)

// heddleProcess prepares a process of heddle: this test binary in another role.
func heddleProcess(t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(env, asHeddle+"=1")
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// finish runs a process to its end.
func finish(t *testing.T, cmd *exec.Cmd) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	code := cmd.ProcessState.ExitCode()
	if status, known := cmd.ProcessState.Sys().(syscall.WaitStatus); known && status.Signaled() {
		code = -int(status.Signal())
	}
	return result{stdout.String(), stderr.String(), code}
}

// marked is the note that makes a library an interposer.
const marked = `
__attribute__((section(".note.heddle"), used, aligned(4)))
static const struct { unsigned name, desc, type; char owner[8]; unsigned abi; } note = {7, 4, 1, "Heddle", 1};
`

// buildLibrary builds a shared library with the driver's SONAME.
func buildLibrary(t *testing.T, source string) string {
	t.Helper()
	compiler, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler to build a library for the loader")
	}
	path := filepath.Join(t.TempDir(), driverSoname)
	cmd := exec.CommandContext(t.Context(), compiler, "-shared", "-fPIC", "-Wl,-soname,"+driverSoname, "-o", path, "-x", "c", "-")
	cmd.Stdin = strings.NewReader(source)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// printEnvironment is a program that shows what run gave it.
const printEnvironment = `echo "$LD_PRELOAD|$LD_LIBRARY_PATH|$HEDDLE_PRIORITY|$HEDDLE_WEIGHT|$HEDDLE_NAME|$HEDDLE_GANG|$HEDDLE_SOCKET|$CUDA_VISIBLE_DEVICES|$CUDA_DEVICE_ORDER"`

func TestRunPreparesTheEnvironment(t *testing.T) {
	d := startFake(t, true)
	attach := d.status.GetAttachSocket()
	leaveSocket(t, attach)
	lib := buildLibrary(t, marked)
	dir := filepath.Dir(lib)
	tests := []struct {
		name  string
		env   []string
		flags []string
		want  string
	}{
		{"nothing was set", nil, nil, lib + "|" + dir + "|||||" + attach + "||"},
		{
			"what was set stays behind", []string{"LD_LIBRARY_PATH=/a:/b", "LD_PRELOAD=libc.so.6"}, nil,
			lib + ":libc.so.6|" + dir + ":/a:/b|||||" + attach + "||",
		},
		{
			"a program under run starts another", []string{"LD_LIBRARY_PATH=" + dir + ":/a", "LD_PRELOAD=" + lib}, nil,
			lib + "|" + dir + ":/a|||||" + attach + "||",
		},
		{
			"wishes become hints", nil, []string{"-p", "low", "-w", "30", "-n", "my job", "--gang", "train:4"},
			lib + "|" + dir + "|7|30|my job|train:4|" + attach + "||",
		},
		{"the caller's attach socket counts", []string{"HEDDLE_SOCKET=" + d.socket}, nil, lib + "|" + dir + "|||||" + d.socket + "||"},
		{
			"but not against a daemon named by flag", []string{"HEDDLE_SOCKET=/x"}, []string{"--socket", d.socket},
			lib + "|" + dir + "|||||" + attach + "||",
		},
		{"a device by index becomes its UUID", nil, []string{"-d", "0"}, lib + "|" + dir + "|||||" + attach + "|" + uuidA + "|"},
		{
			"devices by the beginning of their UUID", nil, []string{"-d", "MIG-5a", "-d", "GPU-3f2a"},
			lib + "|" + dir + "|||||" + attach + "|" + uuidMIG + "," + uuidA + "|",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			args := append(append([]string{"run"}, tt.flags...), "--", "/bin/sh", "-c", printEnvironment)
			got := finish(t, heddleProcess(t, d.env(append(tt.env, "HEDDLE_INTERPOSER="+lib)...), args...))
			if diff := cmp.Diff(result{stdout: tt.want + "\n"}, got, cmp.AllowUnexported(result{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	t.Run("a device that is not there", func(t *testing.T) {
		got := finish(t, heddleProcess(t, d.env("HEDDLE_INTERPOSER="+lib), "run", "-d", "7", "--", "true"))
		want := result{stderr: "heddle run: no device 7 on this node (heddle gpus lists them)\n", code: exitFailure}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(result{})); diff != "" {
			t.Error(diff)
		}
	})
}

func TestRunPassesExitCodesAndSignals(t *testing.T) {
	d := startFake(t, true)
	leaveSocket(t, d.status.GetAttachSocket())
	dir := shortTempDir(t)
	script := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	env := d.env("HEDDLE_INTERPOSER=" + buildLibrary(t, marked))
	plain := script("plain", "exit 9\n", 0o755)
	locked := script("locked", "#!/bin/sh\n", 0o644)
	orphan := script("orphan", "#!/nonexistent/sh\n", 0o755)
	tests := []struct {
		name   string
		args   []string
		stderr string
		code   int
	}{
		{"success", []string{"true"}, "", 0},
		{"failure", []string{"sh", "-c", "exit 42"}, "", 42},
		{"death by a signal", []string{"sh", "-c", "kill -TERM $$"}, "", -int(syscall.SIGTERM)},
		{"a closed pipe kills as ever", []string{"sh", "-c", "kill -PIPE $$"}, "", -int(syscall.SIGPIPE)},
		{"a signal that was ignored stays ignored", []string{"sh", "-c", "kill -HUP $$; exit 4"}, "", 4},
		{"a script without an interpreter line", []string{plain}, "", 9},
		{"a flag that is the program's", []string{"sh", "-c", "exit 3", "--json"}, "", 3},
		{"a command that is not found", []string{"nonexistent-command"}, "heddle run: nonexistent-command: command not found\n", 127},
		{"a path that is not found", []string{dir + "/none"}, "heddle run: " + dir + "/none: no such file or directory\n", 127},
		{"a file that is not executable", []string{locked}, "heddle run: " + locked + ": permission denied\n", 126},
		{"a folder", []string{dir}, "heddle run: " + dir + ": is a directory\n", 126},
		{"an interpreter that is missing", []string{orphan}, "heddle run: " + orphan + ": its interpreter or loader is missing\n", 126},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cmd := heddleProcess(t, env, append([]string{"run", "--"}, tt.args...)...)
			// As nohup starts programs.
			cmd.Args = append([]string{"sh", "-c", `trap "" HUP; exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
			cmd.Path = "/bin/sh"
			got := finish(t, cmd)
			if diff := cmp.Diff(result{stderr: tt.stderr, code: tt.code}, got, cmp.AllowUnexported(result{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRunWithoutDaemonWarnsOrRefuses(t *testing.T) {
	lib := buildLibrary(t, marked)
	env := []string{"PATH=" + os.Getenv("PATH"), "HEDDLE_API=/nonexistent/api.sock", "HEDDLE_SOCKET=/nonexistent/attach.sock", "HEDDLE_INTERPOSER=" + lib}
	attach := filepath.Join(shortTempDir(t), "attach.sock")
	listenMute(t, attach)
	const reason = "no heddled at /nonexistent/api.sock: no such socket; start heddled, or name its API socket"
	tests := []struct {
		name string
		args []string
		want result
	}{
		{
			"it warns and goes on", []string{"run", "--", "echo", "ran"},
			result{stdout: "ran\n", stderr: "heddle run: warning: " + reason + "; the program runs unscheduled until that is mended\n"},
		},
		{
			"a required daemon", []string{"run", "--require", "--", "echo", "ran"},
			result{stderr: "heddle run: " + reason + "\n", code: exitUnreachable},
		},
		{
			"an index keeps its meaning", []string{"run", "-d", "1", "--", "sh", "-c", `echo "$CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER"`},
			result{stdout: "1 PCI_BUS_ID\n", stderr: "heddle run: warning: " + reason + "; the program runs unscheduled until that is mended\n"},
		},
	}
	t.Run("no search path at all", func(t *testing.T) {
		bare := []string{"HEDDLE_API=/nonexistent/api.sock", "HEDDLE_SOCKET=" + attach, "HEDDLE_INTERPOSER=" + lib}
		if got := finish(t, heddleProcess(t, bare, "run", "--", "echo", "found")); got.stdout != "found\n" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("only the attach socket is there, as in a container", func(t *testing.T) {
		got := finish(t, heddleProcess(t, setEnv(env, "HEDDLE_SOCKET", attach), "run", "--require", "--", "sh", "-c", `echo "$HEDDLE_SOCKET"`))
		if diff := cmp.Diff(result{stdout: attach + "\n"}, got, cmp.AllowUnexported(result{})); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("only the attach socket is missing", func(t *testing.T) {
		d := startFake(t, true)
		got := finish(t, heddleProcess(t, d.env("HEDDLE_INTERPOSER="+lib), "run", "--require", "--", "true"))
		want := result{stderr: "heddle run: attach socket " + d.status.GetAttachSocket() + ": no such file or directory\n", code: exitUnreachable}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(result{})); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, finish(t, heddleProcess(t, env, tt.args...)), cmp.AllowUnexported(result{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRunSaysWhenTheInterposerIsOff(t *testing.T) {
	d := startFake(t, true)
	leaveSocket(t, d.status.GetAttachSocket())
	env := d.env("HEDDLE_DISABLE=1", "HEDDLE_INTERPOSER="+buildLibrary(t, marked))
	got := finish(t, heddleProcess(t, env, "run", "--", "echo", "ran"))
	want := result{stdout: "ran\n", stderr: "heddle run: warning: HEDDLE_DISABLE=1 is set; the program runs unscheduled\n"}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(result{})); diff != "" {
		t.Error(diff)
	}
	got = finish(t, heddleProcess(t, env, "run", "--require", "--", "echo", "ran"))
	if got.code != exitFailure || got.stdout != "" {
		t.Errorf("with --require: %+v", got)
	}
}

func TestRunSaysWhenTheNamedDriverIsNone(t *testing.T) {
	d := startFake(t, true)
	leaveSocket(t, d.status.GetAttachSocket())
	text := filepath.Join(t.TempDir(), "libcuda.so.1")
	if err := os.WriteFile(text, []byte("not a library"), 0o600); err != nil {
		t.Fatal(err)
	}
	lib := buildLibrary(t, marked)
	for _, tt := range []struct{ driver, problem string }{
		{"/nonexistent/libcuda.so.1", "no such file or directory"},
		{text, "not an ELF library"},
		{lib, ""},
	} {
		env := d.env("HEDDLE_REAL_LIBCUDA="+tt.driver, "HEDDLE_INTERPOSER="+lib)
		want := result{stdout: "ran\n"}
		if tt.problem != "" {
			want.stderr = "heddle run: warning: HEDDLE_REAL_LIBCUDA=" + tt.driver + ": " + tt.problem +
				"; the program finds no driver until that is corrected or unset\n"
		}
		if diff := cmp.Diff(want, finish(t, heddleProcess(t, env, "run", "--", "echo", "ran")), cmp.AllowUnexported(result{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.driver, diff)
		}
		got := finish(t, heddleProcess(t, env, "run", "--require", "--", "echo", "ran"))
		if refused := got.code != 0 && got.stdout == ""; refused != (tt.problem != "") {
			t.Errorf("%s with --require: %+v", tt.driver, got)
		}
	}
}

// TestRunIsTheProgram checks that nothing of heddle is left: one process, its limits and its terminal.
func TestRunIsTheProgram(t *testing.T) {
	d := startFake(t, true)
	leaveSocket(t, d.status.GetAttachSocket())
	env := d.env("HEDDLE_INTERPOSER=" + buildLibrary(t, marked))
	cmd := heddleProcess(t, env, "run", "--", "sh", "-c", "echo $$; ulimit -S -n")
	cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh", "-c", `ulimit -S -n 300; exec "$0" "$@"`}, cmd.Args...)
	cmd.Args[3] = heddleProcess(t, env).Path
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	pid, limit, _ := strings.Cut(strings.TrimSpace(stdout.String()), "\n")
	if want := cmd.Process.Pid; pid != strconv.Itoa(want) || limit != "300" {
		t.Errorf("pid %s and %s open files, want %d and 300", pid, limit, want)
	}
}
