package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
)

func TestCommandLinesAreForTheirOwnUserAndRoot(t *testing.T) {
	d := startFake(t, true)
	uid := os.Geteuid()
	if uid == 0 {
		uid = 65534
	}
	d.mu.Lock()
	d.clients = []*heddlev1.Client{
		{Id: 1, Uid: uint32(uid), Program: "mine", Command: "./mine --token 1234"},
		{Id: 2, Uid: uint32(uid) + 1, Program: "theirs", Command: "./theirs --token 5678"},
	}
	d.mu.Unlock()
	if err := os.Chmod(d.socket, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"ps"}, {"ps", "--json"}, {"__complete", "set", "--client", ""}, {"set", "--client", "2", "-w", "9"}} {
		cmd := heddleProcess(t, d.env("GORACE=atexit_sleep_ms=0"), args...)
		if os.Geteuid() == 0 {
			all := finish(t, cmd)
			if args[0] == "ps" && !strings.Contains(all.stdout, "--token 5678") {
				t.Errorf("heddle %v does not show root everything: %+v", args, all)
			}
			cmd = heddleProcess(t, d.env("GORACE=atexit_sleep_ms=0"), args...)
			becomeNobody(t, cmd, filepath.Dir(d.socket))
		}
		got := finish(t, cmd)
		if got.code != exitOK || !strings.Contains(got.stdout, "theirs") || strings.Contains(got.stdout, "5678") {
			t.Errorf("heddle %v shows another user's: %+v", args, got)
		}
		if args[0] != "set" && !strings.Contains(got.stdout, "--token 1234") {
			t.Errorf("heddle %v does not show one's own: %+v", args, got)
		}
	}
}
