package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/heddle-project/heddle/runtime/api"
	"github.com/heddle-project/heddle/tests/oldkernel"
)

// mainVariable makes the test binary heddled itself.
const mainVariable = "HEDDLE_TEST_HEDDLED"

func TestMain(m *testing.M) {
	if os.Getenv(mainVariable) != "" {
		if pid := os.Getenv(activateVariable); pid != "" {
			// systemd sets the pid of the program that it starts; a test can
			// only know it afterwards.
			_ = os.Setenv("LISTEN_PID", fmt.Sprint(os.Getpid()))
		}
		if lack := os.Getenv(lackVariable); lack != "" {
			if err := oldkernel.Enter(oldkernel.Lack(lack)); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(lackFailed)
			}
		}
		main()
	}
	os.Exit(m.Run())
}

const activateVariable = "HEDDLE_TEST_ACTIVATE"

func TestWrongUseIsOneLineAndNothingElse(t *testing.T) {
	dir := shortDir(t)
	bad := filepath.Join(dir, "bad.toml")
	if err := os.WriteFile(bad, []byte("version = 1\n[log]\nlevel = 7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		args []string
		code int
		want string
	}{
		{"an unknown flag", []string{"--colour"}, exitUsage, "-colour"},
		{"a flag without its value", []string{"--config"}, exitUsage, "-config"},
		{"an argument", []string{"start"}, exitUsage, `unexpected argument "start"`},
		{"a file that is not there", []string{"--config", dir + "/none.toml"}, exitFailure, "none.toml: no such file"},
		{"a folder as the file", []string{"--config", dir}, exitFailure, "not a regular file"},
		{"a bad value", []string{"--config", bad, "--check"}, exitFailure, "bad.toml:3: log.level: want a string"},
		{"a bad flag value", []string{"--log-level", "loud", "--check"}, exitFailure, `flag:log-level: log.level: "loud" is not one of`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), tt.args, &stdout, &stderr)
			text := stderr.String()
			if code != tt.code || stdout.Len() != 0 || !strings.HasPrefix(text, "heddled: ") ||
				!strings.Contains(text, tt.want) || strings.Count(text, "\n") != 1 {
				t.Errorf("code %d, stdout %q, stderr %q", code, stdout.String(), text)
			}
		})
	}
}

func TestQuestionsAreAnswered(t *testing.T) {
	good := filepath.Join(shortDir(t), "good.toml")
	if err := os.WriteFile(good, []byte("version = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--version"}, "heddled "},
		{[]string{"--help"}, "-api-socket path"},
		{[]string{"--config", good, "--api-socket", "/a", "--attach-dir", "/b", "--state-dir", "/c", "--check"}, "valid"},
	} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), tt.args, &stdout, &stderr); code != 0 || stderr.Len() != 0 || !strings.Contains(stdout.String(), tt.want) {
			t.Errorf("%v: code %d, stdout %q, stderr %q", tt.args, code, stdout.String(), stderr.String())
		}
	}
}

// shortDir is a folder whose name leaves room for a socket: a unix socket's path
// has 107 bytes, and t.TempDir spends many of them on the name of the test.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "heddle")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// process is a heddled of its own on the software GPU.
type process struct {
	*exec.Cmd
	dir    string
	stderr *bytes.Buffer
	conn   *api.Conn
}

func startProcess(t *testing.T, change func(*exec.Cmd)) *process {
	t.Helper()
	library, err := filepath.Abs("../../build/softgpu/libnvidia-ml.so.1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(library); err != nil {
		t.Skipf("the software GPU is not built: %v", err)
	}
	dir := shortDir(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "--api-socket", dir+"/api.sock", "--attach-dir", dir+"/attach",
		"--state-dir", dir+"/state", "--nvml-library", library)
	cmd.Env = append(os.Environ(), mainVariable+"=1", "SOFTGPU_STATE="+dir+"/node", "HEDDLED_CONFIG=")
	p := &process{Cmd: cmd, dir: dir, stderr: &bytes.Buffer{}, conn: api.NewConn(dir + "/api.sock")}
	cmd.Stderr = p.stderr
	t.Cleanup(p.conn.Close)
	if change != nil {
		change(cmd)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return p
}

// await waits until the API answers.
func (p *process) await(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for {
		_, err := p.conn.Status(ctx)
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("no answer: %v\n%s", err, p.stderr)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestSIGTERMStopsWithoutLeavingSockets(t *testing.T) {
	notify, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(shortDir(t), "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = notify.Close() })
	p := startProcess(t, func(cmd *exec.Cmd) {
		cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+notify.LocalAddr().String(), "WATCHDOG_USEC=20000")
	})
	p.await(t)
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, p.stderr)
	}
	for _, path := range []string{"/api.sock", "/attach/attach.sock"} {
		if _, err := os.Lstat(p.dir + path); err == nil {
			t.Errorf("%s was left behind", path)
		}
	}
	// All was said before it ended, so nothing here has to wait.
	var said strings.Builder
	_ = notify.SetReadDeadline(time.Now().Add(time.Second))
	for !strings.Contains(said.String(), "STOPPING=1") {
		var buf [256]byte
		n, err := notify.Read(buf[:])
		if err != nil {
			t.Fatalf("systemd was told %q: %v", said.String(), err)
		}
		said.Write(append(buf[:n], '\n'))
	}
	if !strings.HasPrefix(said.String(), "READY=1\n") {
		t.Errorf("systemd was told %q", said.String())
	}
}

func TestSocketsOfSystemdAreUsedAndLeft(t *testing.T) {
	dir := shortDir(t)
	var files []*os.File
	for _, name := range []string{"api", "attach"} {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, name), Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		f, err := l.File()
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
		t.Cleanup(func() { _ = f.Close() })
		files = append(files, f)
	}
	p := startProcess(t, func(cmd *exec.Cmd) {
		cmd.ExtraFiles = files
		cmd.Env = append(cmd.Env, "LISTEN_FDS=2", "LISTEN_FDNAMES=api:attach", activateVariable+"=1")
	})
	p.conn = api.NewConn(filepath.Join(dir, "api"))
	t.Cleanup(p.conn.Close)
	p.await(t)
	status, err := p.conn.Status(t.Context())
	if err != nil || status.GetAttachSocket() != filepath.Join(dir, "attach") {
		t.Errorf("%v, %v", status, err)
	}
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, p.stderr)
	}
	for _, name := range []string{"api", "attach"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			t.Errorf("systemd's socket is gone: %v", err)
		}
	}
	if _, err := os.Lstat(p.dir + "/api.sock"); err == nil {
		t.Error("a second socket was made")
	}
}
