package foreign

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heddle-project/heddle/tests/softgpu"
)

// installLimit bounds one installation; a fast index needs a tenth of it.
const installLimit = 4 * time.Minute

// newNode makes a software node; the test is skipped where the software GPU is not built.
func newNode(t *testing.T, opts softgpu.Options) *softgpu.Node {
	t.Helper()
	n, err := softgpu.New(t.Context(), t.TempDir(), opts)
	if errors.Is(err, softgpu.ErrNotBuilt) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// python returns the folder of programs of a virtual environment that has what requirements.txt lists. It
// lies in build/ and is made once.
func python(t *testing.T, build softgpu.Build) string {
	t.Helper()
	wanted, err := os.ReadFile(filepath.Join("testdata", "requirements.txt"))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(build.Root, "build", "pyenv")
	unlock := lock(t, dir+".lock")
	defer unlock()
	stamp := filepath.Join(dir, "installed")
	if have, err := os.ReadFile(stamp); err == nil && string(have) == string(wanted) {
		return filepath.Join(dir, "bin")
	}

	python3, err := exec.LookPath("python3")
	if err != nil {
		t.Skipf("no python3: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), installLimit)
	defer cancel()
	if out, err := exec.CommandContext(ctx, python3, "-m", "venv", dir).CombinedOutput(); err != nil {
		t.Skipf("python3 makes no virtual environment: %v: %s", err, lastLine(out))
	}
	pip := exec.CommandContext(ctx, filepath.Join(dir, "bin", "pip"), "install", "--quiet", "--disable-pip-version-check",
		"--retries", "1", "--timeout", "15", "-r", filepath.Join("testdata", "requirements.txt"))
	if out, err := pip.CombinedOutput(); err != nil {
		t.Skipf("Python's package index is out of reach: %v: %s", err, lastLine(out))
	}
	if err := os.WriteFile(stamp, wanted, 0o644); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "bin")
}

// lock keeps a second run of these tests from installing into the same folder.
func lock(t *testing.T, path string) (unlock func()) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}
