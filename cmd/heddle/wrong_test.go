package main

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWrongUse holds the promise of one clear line, a code that tells the reasons apart, and no effect.
func TestWrongUse(t *testing.T) {
	d := startFake(t, true)
	tests := []struct {
		args string
		line string // what stderr says, DIR being the daemon's folder
		code int
	}{
		{"pss", `heddle: unknown command "pss", did you mean ps?`, exitUsage},
		{"frobnicate", `heddle: unknown command "frobnicate" (see heddle --help)`, exitUsage},
		{"--verbos", `heddle: unknown flag --verbos (see heddle --help)`, exitUsage},
		{"help nothing", `heddle help: unknown command "nothing" (see heddle --help)`, exitUsage},
		{"completion fsh", `heddle completion: unknown command "fsh", did you mean fish?`, exitUsage},
		{"completion bash x", `heddle completion bash: unexpected argument "x" (see heddle completion bash --help)`, exitUsage},
		{"ps --jsn", `heddle ps: unknown flag --jsn, did you mean --json?`, exitUsage},
		{"ps -x", `heddle ps: unknown flag -x (see heddle ps --help)`, exitUsage},
		{"ps x", `heddle ps: unexpected argument "x" (see heddle ps --help)`, exitUsage},
		{"ps --watch=maybe", `heddle ps: --watch maybe: not true or false`, exitUsage},
		{"ps --interval 3", `heddle ps: --interval 3: not a duration such as 500ms or 2s`, exitUsage},
		{"ps --interval", `heddle ps: --interval needs a value (see heddle ps --help)`, exitUsage},
		{"ps --interval 1ms", `heddle ps: --interval 1ms: must be from 100ms to 1m0s`, exitUsage},
		{"--timeout 0s ps", `heddle ps: --timeout 0s: must be more than zero`, exitUsage},
		{"set", `heddle set: give one of --client, --pid and --tenant`, exitUsage},
		{"set --pid 1 --client 2 -p 1", `heddle set: give one of --client, --pid and --tenant`, exitUsage},
		{"set --client 3", `heddle set: nothing to change: give --priority, --weight, --slo or several, or --reset`, exitUsage},
		{"set --client 3 --reset=false", `heddle set: nothing to change: give --priority, --weight, --slo or several, or --reset`, exitUsage},
		{"set --client 3 --reset -p low", `heddle set: give --reset or new values, not both`, exitUsage},
		{"set --tenant web --reset -w 5", `heddle set: give --reset or new values, not both`, exitUsage},
		{"set --reset", `heddle set: give one of --client, --pid and --tenant`, exitUsage},
		{"set --client 99 --reset", `heddle set: no client 99 (heddle ps lists them)`, exitFailure},
		{"set --client x -p low", `heddle set: --client x: not a number in range`, exitUsage},
		{"set --client 3 -p urgent", `heddle set: --priority urgent: not a class: realtime, high, normal, low, idle, or 0 (most urgent) to 9`, exitUsage},
		{"set --client 3 -p 10", `heddle set: --priority 10: not a class: realtime, high, normal, low, idle, or 0 (most urgent) to 9`, exitUsage},
		{"set --client 3 -w 0", `heddle set: --weight 0: not a weight from 1 to 10000`, exitUsage},
		{"set --client 3 --slo fast", `heddle set: --slo fast: want a slowdown such as "2%" or a latency such as "20ms"`, exitUsage},
		{"set --client 3 --slo 5000%", `heddle set: --slo 5000%: 5000% is not between 0% and 1000%`, exitUsage},
		{"set --client 3 --slo 1us", `heddle set: --slo 1us: 1µs is not between 100µs and 16m40s`, exitUsage},
		{"set --client 3 -w 10001", `heddle set: --weight 10001: not a weight from 1 to 10000`, exitUsage},
		{"set --client 99 -w 5", `heddle set: no client 99 (heddle ps lists them)`, exitFailure},
		{"set --pid 99 -w 5", `heddle set: no client with pid 99 (heddle ps lists them)`, exitFailure},
		{"set --pid 0 -w 5", `heddle set: no client with pid 0 (heddle ps lists them)`, exitFailure},
		{"set --tenant nobody -w 5", `heddle set: no tenant nobody`, exitFailure},
		{"set --tenant= -w 5", `heddle set: --tenant: the name is empty`, exitUsage},
		{"trace recor", `heddle trace: unknown command "recor", did you mean record?`, exitUsage},
		{"trace record", `heddle trace record: give a file with --output, - for standard output`, exitUsage},
		{"trace record -o t --duration 0s", `heddle trace record: --duration 0s: must be more than zero`, exitUsage},
		{"trace record -o t --client x", `heddle trace record: --client x: not a number in range`, exitUsage},
		{"trace record -o DIR/t --device 9", `heddle trace record: --device: no device 9 on this node (heddle gpus lists them)`, exitUsage},
		{"config dmp", `heddle config: unknown command "dmp", did you mean dump?`, exitUsage},
		{"config dump --json --origins", `heddle config dump: give --origins or --json, not both`, exitUsage},
		{"config check a b", `heddle config check: one file at a time (see heddle config check --help)`, exitUsage},
		{"config check /nonexistent.toml", `heddle config check: read configuration: stat /nonexistent.toml: no such file or directory`, exitFailure},
		{"docs man", `heddle docs man: give one folder`, exitUsage},
		{"run", `heddle run: no command given (heddle run [flags] -- COMMAND [ARG...])`, exitUsage},
		{"run --", `heddle run: no command given (heddle run [flags] -- COMMAND [ARG...])`, exitUsage},
		{"run -p 11 -- true", `heddle run: --priority 11: not a class: realtime, high, normal, low, idle, or 0 (most urgent) to 9`, exitUsage},
		{"run --gang train -- true", `heddle run: --gang train: not NAME:N with N from 1 to 1024`, exitUsage},
		{"run --gang a/b:2 -- true", `heddle run: --gang a/b:2: not NAME:N with a name of 1 to 63 letters, digits, '.', '_' and '-'`, exitUsage},
		{"run --wieght 3 -- true", `heddle run: unknown flag --wieght, did you mean --weight?`, exitUsage},
		{"run -d first -- true", `heddle run: --device first: not a device: an index, or a UUID that begins with GPU- or MIG-`, exitUsage},
		{"run -n " + strings.Repeat("n", 64) + " -- true", `heddle run: --name: longer than 63 bytes`, exitUsage},
		{"run -- true", `heddle run: interposer not found: HEDDLE_INTERPOSER names /nonexistent/libcuda.so.1`, exitFailure},
		{"--socket DIR/none ps", `heddle ps: no heddled at DIR/none: no such socket; start heddled, or name its API socket`, exitUnreachable},
		{"--socket DIR/file gpus", `heddle gpus: no heddled at DIR/file: not a socket; name its API socket with --socket or HEDDLE_API`, exitUnreachable},
		{"--socket DIR/left status", `heddle status: no heddled at DIR/left: nobody listens; start heddled, or name its API socket`, exitUnreachable},
		{"--socket DIR/none ps --watch", `heddle ps: no heddled at DIR/none: no such socket; start heddled, or name its API socket`, exitUnreachable},
		{"--socket DIR/none set --client 1 -w 2", `heddle set: no heddled at DIR/none: no such socket; start heddled, or name its API socket`, exitUnreachable},
		{"--socket DIR/mute --timeout 50ms ps", `heddle ps: no answer from heddled at DIR/mute within 50ms`, exitUnreachable},
	}
	dir := filepath.Dir(d.socket)
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	leaveSocket(t, filepath.Join(dir, "left"))
	listenMute(t, filepath.Join(dir, "mute"))
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			env := d.env("HEDDLE_INTERPOSER=/nonexistent/libcuda.so.1")
			args := strings.Fields(strings.ReplaceAll(tt.args, "DIR", dir))
			want := result{stderr: strings.ReplaceAll(tt.line, "DIR", dir) + "\n", code: tt.code}
			if diff := cmp.Diff(want, invoke(t, env, screen{}, args...), cmp.AllowUnexported(result{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if got := d.changes(); got != nil {
		t.Errorf("wrong use changed something: %v", got)
	}
}

// leaveSocket leaves what a heddled that was killed leaves: a socket on which nobody listens.
func leaveSocket(t *testing.T, path string) {
	t.Helper()
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
}

// listenMute listens and never answers.
func listenMute(t *testing.T, path string) {
	t.Helper()
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestOthersMayLookButNotChange(t *testing.T) {
	d := startFake(t, false)
	if got := invoke(t, d.env(), screen{}, "ps"); got.code != exitOK {
		t.Errorf("ps: %+v", got)
	}
	for _, args := range [][]string{
		{"set", "--client", "3", "-w", "5"}, {"set", "--tenant", "web", "-p", "low"}, {"set", "--tenant", "web", "--reset"},
	} {
		got := invoke(t, d.env(), screen{}, args...)
		if got.code != exitFailure || !strings.HasPrefix(got.stderr, "heddle set: uid ") ||
			!strings.Contains(got.stderr, " may only look; ") || strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("heddle %v: %+v", args, got)
		}
	}
	if got := d.changes(); got != nil {
		t.Errorf("changed: %v", got)
	}
}

func TestSocketThatRefusesTheUser(t *testing.T) {
	d := startFake(t, true)
	if err := os.Chmod(d.socket, 0); err != nil {
		t.Fatal(err)
	}
	cmd := heddleProcess(t, d.env(), "ps")
	if os.Geteuid() == 0 {
		becomeNobody(t, cmd, filepath.Dir(d.socket))
	}
	got := finish(t, cmd)
	line := "heddle ps: " + d.socket + ": permission denied; this user may not use the socket (mode 0000, owner "
	if got.code != exitUnreachable || !strings.HasPrefix(got.stderr, line) || strings.Count(got.stderr, "\n") != 1 {
		t.Errorf("%+v", got)
	}
}

// becomeNobody lets a process run as a user who is not root, whom no permission stops. That user
// may not enter the folder of the test binary, so it gets a copy.
func becomeNobody(t *testing.T, cmd *exec.Cmd, dir string) {
	t.Helper()
	const nobody = 65534
	data, err := os.ReadFile(cmd.Path)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Path = filepath.Join(dir, "heddle")
	if err := errors.Join(os.WriteFile(cmd.Path, data, 0o755), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
}

func TestConfigCheckPrintsEveryProblem(t *testing.T) {
	path := filepath.Join(t.TempDir(), "heddled.toml")
	text := "version = 1\nadmin_grup = \"x\"\n\n[clients]\nmax = -1\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	got := invoke(t, nil, screen{}, "config", "check", path)
	lines := strings.Split(strings.TrimSpace(got.stderr), "\n")
	if got.code != exitFailure || len(lines) < 2 || !strings.HasPrefix(lines[0], path+":2:") {
		t.Errorf("%+v", got)
	}
	if err := os.WriteFile(path, []byte("version = 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	want := result{stdout: path + ": ok\n"}
	if diff := cmp.Diff(want, invoke(t, nil, screen{}, "config", "check", path), cmp.AllowUnexported(result{})); diff != "" {
		t.Error(diff)
	}
}
