package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDoctorLooksAtTheSoftwareGPUsFile(t *testing.T) {
	dir := t.TempDir()
	there := filepath.Join(dir, "node")
	if err := os.WriteFile(there, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, path  string
		want        grade
		found, mend string
	}{
		{"a file that may be used", there, gradeOK, there + " (mode 0600, owner ", ""},
		{"none yet", dir + "/new", gradeOK, "the first program will make", ""},
		{"a folder", dir, gradeFail, "is not a regular file", "name a file"},
		{"no folder for it", dir + "/none/node", gradeFail, "cannot be made in its folder: no such file", "folder of yours"},
		{"a file as its folder", there + "/node", gradeFail, "not a directory", "name another file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := checkSoftwareGPU(tt.path)
			if f.Status != tt.want || !strings.Contains(f.Found, tt.found) || !strings.Contains(f.Mend, tt.mend) {
				t.Errorf("%+v", f)
			}
		})
	}
	if text, err := os.ReadFile(there); err != nil || string(text) != "x" {
		t.Errorf("the file became %q, %v", text, err)
	}
	if _, err := os.Stat(dir + "/new"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file was made: %v", err)
	}
}

// A file that this user may not use: his own without rights, or another user's.
func TestDoctorSaysHowToMendAnUnusableSoftwareGPU(t *testing.T) {
	dir := shortTempDir(t)
	path := filepath.Join(dir, "node")
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	env := []string{"SOFTGPU_STATE=" + path, "HEDDLE_API=/nonexistent/api.sock", "GORACE=atexit_sleep_ms=0"}
	cmd := heddleProcess(t, env, "doctor", "--json")
	mend := "chmod u+rw " + path
	if os.Geteuid() == 0 {
		becomeNobody(t, cmd, dir)
		mend = "run as its owner, remove the file, or name another one in SOFTGPU_STATE"
	} else if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	got := finish(t, cmd)
	var report doctorReport
	if err := json.Unmarshal([]byte(got.stdout), &report); err != nil {
		t.Fatalf("%v: %+v", err, got)
	}
	for _, f := range report.Checks {
		if f.ID != "device-nodes" {
			continue
		}
		if f.Status != gradeFail || f.Mend != mend || strings.Contains(f.Found, "\n") ||
			!strings.HasPrefix(f.Found, "SOFTGPU_STATE="+path+" (mode 0") || !strings.HasSuffix(f.Found, ": permission denied") {
			t.Errorf("%+v", f)
		}
		return
	}
	t.Errorf("nothing is said of the file: %+v", got)
}
