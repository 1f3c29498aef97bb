package deps

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// pkg is the part of `go list -json` that the rules look at.
type pkg struct {
	ImportPath string
	Name       string
	Dir        string
	Standard   bool
	GoFiles    []string
	CgoFiles   []string
	Imports    []string
	Deps       []string
}

// short is the import path as the rules write it.
func (p pkg) short() string {
	return strings.TrimPrefix(p.ImportPath, module+"/")
}

// test reports whether the package exists for tests alone.
func (p pkg) test() bool {
	s := p.short()
	return strings.HasPrefix(s, "tests/") || strings.HasSuffix(s, "test")
}

// production lists the module's packages that are no test support, without their test files.
func production(t *testing.T) []pkg {
	t.Helper()
	all, err := ours()
	if err != nil {
		t.Fatal(err)
	}
	var out []pkg
	for _, p := range all {
		if !p.test() && len(p.GoFiles)+len(p.CgoFiles) > 0 {
			out = append(out, p)
		}
	}
	return out
}

// ours asks the go command once for all tests of this package. Packages that do not build are listed too: their
// imports are still right or wrong, and the compiler's message is another test's.
var ours = sync.OnceValues(func() ([]pkg, error) {
	return goList("-e", "./...")
})

func goList(args ...string) ([]pkg, error) {
	cmd := exec.Command("go", append([]string{"list", "-json"}, args...)...)
	cmd.Dir = root()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, errors.Join(err, errors.New(strings.TrimSpace(stderr.String())))
	}
	var pkgs []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		switch err := dec.Decode(&p); {
		case errors.Is(err, io.EOF):
			return pkgs, nil
		case err != nil:
			return nil, err
		}
		pkgs = append(pkgs, p)
	}
}

// root is the repository's top: tests run in their package's folder.
func root() string {
	return filepath.Join("..", "..")
}
