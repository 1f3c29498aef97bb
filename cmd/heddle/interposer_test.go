package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestInterposerThatCannotWorkIsRefused(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("not a library"), 0o644); err != nil {
		t.Fatal(err)
	}
	driver := buildLibrary(t, "int cuInit(void) { return 0; }")
	tests := []struct{ name, path, want string }{
		{"the driver itself", driver, "this is a driver, not the interposer"},
		{"a missing file", filepath.Join(dir, "none"), "no such file or directory"},
		{"a text", text, "not an ELF library"},
		{"a program or library by another name", "/bin/sh", "SONAME is not libcuda.so.1"},
		{"a path that the loader splits", "/a:b/libcuda.so.1", "a colon or a blank"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := checkInterposer(tt.path)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q in it", err, tt.want)
			}
		})
	}
	if err := checkInterposer(buildLibrary(t, marked)); err != nil {
		t.Errorf("a good one: %v", err)
	}
}

func TestInterposerIsSoughtBesideTheProgramFirst(t *testing.T) {
	a := &app{environ: nil}
	places := a.interposerPlaces()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(filepath.Dir(self), "../lib/heddle", driverSoname); places[0] != want {
		t.Errorf("first place %s, want %s", places[0], want)
	}
	_, err = a.findInterposer()
	for _, place := range places {
		if err != nil && !strings.Contains(err.Error(), place) && strings.Contains(err.Error(), "not found") {
			t.Errorf("the error does not say that it looked at %s: %v", place, err)
		}
	}
}
