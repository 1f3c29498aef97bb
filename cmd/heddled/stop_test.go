package main

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// halfRequest sends a request whose end does not come: a stop waits for it a while.
func halfRequest(t *testing.T, socket string) {
	t.Helper()
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	request := "POST /heddle.v1.HeddleService/Status HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n" +
		"Content-Length: 1000\r\nExpect: 100-continue\r\n\r\n"
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	// The handler asks for the rest: it has begun.
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
}

// stopping starts a heddled whose stop has begun and is held up.
func stopping(t *testing.T) *process {
	t.Helper()
	p := startProcess(t, nil)
	p.await(t)
	halfRequest(t, p.dir+"/api.sock")
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for limit := time.Now().Add(10 * time.Second); ; {
		_, err := os.Lstat(p.dir + "/attach/attach.sock")
		if errors.Is(err, os.ErrNotExist) {
			return p
		}
		if time.Now().After(limit) {
			t.Fatal("the stop did not begin")
		}
		time.Sleep(time.Millisecond) // a bounded condition on another process
	}
}

// bounded waits for the end of a process, and ends it if it does not come.
func bounded(t *testing.T, p *process) error {
	t.Helper()
	timer := time.AfterFunc(30*time.Second, func() {
		t.Error("heddled did not end")
		_ = p.Process.Kill()
	})
	defer timer.Stop()
	return p.Wait()
}

func TestAStopCutsOffWhoDoesNotEnd(t *testing.T) {
	p := stopping(t)
	if err := bounded(t, p); err != nil {
		t.Errorf("a client's half request decides how heddled ends: %v\n%s", err, p.stderr)
	}
}

func TestASecondSignalEndsAStopAtOnce(t *testing.T) {
	p := stopping(t)
	// More than one, because the first may find the handler of the one before still in place.
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	ended := make(chan error, 1)
	go func() { ended <- bounded(t, p) }()
	for {
		select {
		case <-again.C:
			_ = p.Process.Signal(syscall.SIGTERM) // it may have ended
			continue
		case err := <-ended:
			var exit *exec.ExitError
			if !errors.As(err, &exit) {
				t.Fatalf("ended with %v: the stop went on to its own end", err)
			}
			if status, ok := exit.Sys().(syscall.WaitStatus); !ok || !status.Signaled() || status.Signal() != syscall.SIGTERM {
				t.Errorf("ended with %v, want by the signal\n%s", exit, p.stderr)
			}
			return
		}
	}
}
