package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heddle-project/heddle/tests/oldkernel"
)

var update = flag.Bool("update", false, "write what the commands print to the golden files")

// asHeddle makes the test binary be heddle, for tests that need a process of it.
const asHeddle = "HEDDLE_TEST_AS_HEDDLE"

// lackVariable names what such a process shall do without; lackFailed says that this cannot be
// arranged here.
const (
	lackVariable = "HEDDLE_TEST_LACK"
	lackFailed   = 77
)

func TestMain(m *testing.M) {
	if os.Getenv(asHeddle) == "1" {
		if err := os.Unsetenv(asHeddle); err != nil {
			panic(err)
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

// result is what a command line did.
type result struct {
	stdout, stderr string
	code           int
}

// invoke runs a command line in this process, with an environment of its own.
func invoke(t *testing.T, env []string, show screen, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	a := newApp(bytes.NewReader(nil), &stdout, &stderr, env)
	a.screen = show
	code := a.execute(t.Context(), args)
	return result{stdout.String(), stderr.String(), code}
}

// wantGolden compares a text with a file under testdata, or writes it there.
func wantGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// shortTempDir is a folder whose path leaves room for a socket's name: the OS kernel takes 107 bytes.
func shortTempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "heddle-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
