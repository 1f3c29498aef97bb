package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestProgramsThatTheLoaderProtects(t *testing.T) {
	const user = 1000
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		mode os.FileMode
		euid int
		want bool
	}{
		{"a plain program", 0o755, user, false},
		{"setuid", 0o755 | os.ModeSetuid, user, true},
		{"setgid", 0o755 | os.ModeSetgid, user, true},
		{"setuid, for root, who gains nothing", 0o755 | os.ModeSetuid, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := os.Chmod(program, tt.mode); err != nil {
				t.Fatal(err)
			}
			if got := isPrivileged(program, tt.euid); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
	if isPrivileged(filepath.Join(t.TempDir(), "none"), user) {
		t.Error("a program that is not there has no rights")
	}
}
