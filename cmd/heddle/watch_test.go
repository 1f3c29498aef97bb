package main

import (
	"bufio"
	"encoding/json"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestFirstLinesLeaveRoomForTheCursor(t *testing.T) {
	text := "head\n1\n2\n3\n4\n"
	tests := []struct {
		height int
		want   string
	}{
		{0, text},
		{7, text},
		{6, text},
		{5, "head\n1\n2\nand 2 more\n"},
		{3, "head\nand 4 more\n"},
		{1, text},
	}
	for _, tt := range tests {
		if got := firstLines(text, tt.height); got != tt.want {
			t.Errorf("height %d: %q, want %q", tt.height, got, tt.want)
		}
	}
}

// TestWatchOutlivesTheDaemon watches, takes the daemon away and gives it back.
func TestWatchOutlivesTheDaemon(t *testing.T) {
	first := startFake(t, true)
	cmd := heddleProcess(t, first.env(), "ps", "--watch", "--json", "--interval", "100ms")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	names := func() (seen []string) {
		t.Helper()
		if !lines.Scan() {
			t.Fatalf("the watch ended: %v, stderr %q", lines.Err(), stderr.String())
		}
		var list struct{ Clients []clientView }
		if err := json.Unmarshal(lines.Bytes(), &list); err != nil {
			t.Fatal(err)
		}
		for _, c := range list.Clients {
			seen = append(seen, c.Name)
		}
		return seen
	}
	if got := names(); len(got) != 4 {
		t.Fatalf("at first: %v", got)
	}
	first.cut() // a killed daemon says no goodbye
	if got := names(); len(got) != 4 {
		t.Fatalf("after the connection broke: %v", got)
	}
	first.stop()
	second := &fakeDaemon{socket: first.socket, status: first.status, devices: fakeDevices(), clients: fakeClients()[:1]}
	second.serve(t, true)
	for limit := time.Now().Add(20 * time.Second); len(names()) != 1; {
		if time.Now().After(limit) {
			t.Fatal("the watch never saw the second daemon")
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, stdout); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("ended with %v, want success", err)
	}
	if !strings.Contains(stderr.String(), "waiting for it") {
		t.Errorf("nothing was said about the absence: %q", stderr.String())
	}
}
