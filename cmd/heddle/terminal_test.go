package main

import (
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
)

func TestRunGivesTheTerminalAndItsKeys(t *testing.T) {
	d := startFake(t, true)
	leaveSocket(t, d.status.GetAttachSocket())
	env := d.env("HEDDLE_INTERPOSER="+buildLibrary(t, marked), "TERM=xterm")
	cmd := heddleProcess(t, env, "run", "--", "sh", "-c",
		`test -t 0 && test -t 1 && test -t 2 && stty size; trap 'echo interrupted; exit 5' INT; echo ready; while :; do read -r line || :; done`)
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 33, Cols: 77})
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	screen := newScreenReader(terminal)
	screen.await(t, "33 77")
	screen.await(t, "ready")
	if _, err := terminal.Write([]byte{3}); err != nil { // Ctrl-C
		t.Fatal(err)
	}
	screen.await(t, "interrupted")
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 5 {
		t.Errorf("ended with %v, want exit code 5", err)
	}
}

func TestWatchRepaintsAndEndsWithCtrlC(t *testing.T) {
	d := startFake(t, true)
	cmd := heddleProcess(t, d.env("TERM=xterm"), "ps", "--watch", "--interval", "100ms")
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 120})
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	screen := newScreenReader(terminal)
	screen.await(t, cursorHide)
	screen.await(t, "resnet")
	screen.await(t, cursorHome) // and again
	screen.await(t, "resnet")
	if _, err := terminal.Write([]byte{3}); err != nil {
		t.Fatal(err)
	}
	screen.await(t, cursorShow)
	if err := cmd.Wait(); err != nil {
		t.Errorf("ended with %v, want success", err)
	}
}

// screenReader reads what a program writes to a terminal.
type screenReader struct {
	chunks chan []byte
	unread string
}

func newScreenReader(r io.Reader) *screenReader {
	s := &screenReader{chunks: make(chan []byte)}
	go func() {
		defer close(s.chunks)
		for {
			buffer := make([]byte, 4096)
			n, err := r.Read(buffer)
			if n > 0 {
				s.chunks <- buffer[:n]
			}
			if err != nil {
				return // a terminal whose program has ended answers EIO
			}
		}
	}()
	return s
}

// await reads on until a text was seen, and forgets everything up to it.
func (s *screenReader) await(t *testing.T, want string) {
	t.Helper()
	limit := time.After(20 * time.Second)
	for {
		if _, after, found := strings.Cut(s.unread, want); found {
			s.unread = after
			return
		}
		select {
		case chunk, more := <-s.chunks:
			if !more {
				t.Fatalf("the terminal closed before %q, after %q", want, s.unread)
			}
			s.unread += string(chunk)
		case <-limit:
			t.Fatalf("no %q within the limit, but %q", want, s.unread)
		}
	}
}
