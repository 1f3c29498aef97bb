package main

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write testdata/sample.golden anew")

var root = filepath.Join("..", "..")

// compilers returns those of the machine; without any there is nothing to test.
func compilers(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, cc := range []string{"gcc", "clang", "aarch64-linux-gnu-gcc"} {
		if _, err := exec.LookPath(cc); err == nil {
			found = append(found, cc)
		} else {
			t.Logf("not looked at: %v", err)
		}
	}
	if len(found) == 0 {
		t.Skip("no C compiler")
	}
	return found
}

func TestCommittedFilesAreWhatEveryCompilerSays(t *testing.T) {
	for _, cc := range compilers(t) {
		for _, u := range units {
			t.Run(u.name+" with "+cc, func(t *testing.T) {
				files, err := u.generate(root, cc, "")
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range files {
					committed, err := os.ReadFile(filepath.Join(root, f.path))
					if err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(string(committed), string(f.content)); diff != "" {
						t.Errorf("%s, go run ./cmd/genabi would change it (-committed +generated):\n%s", f.path, diff)
					}
				}
			})
		}
	}
}

// TestContractCompilesAsCAndAsCXX holds the headers to what their users may be: C11 and C++17, with
// nothing included but what they include themselves.
func TestContractCompilesAsCAndAsCXX(t *testing.T) {
	strict := []string{
		"-Wall", "-Wextra", "-Werror", "-Wshadow", "-Wconversion", "-Wvla", "-fsyntax-only",
		"-I" + filepath.Join(root, "interpose/include"),
	}
	tests := []struct {
		compiler string
		flags    []string
	}{
		{"gcc", []string{"-std=c11", "-xc"}},
		{"clang", []string{"-std=c11", "-xc"}},
		{"g++", []string{"-std=c++17", "-xc++"}},
		{"clang++", []string{"-std=c++17", "-xc++"}},
	}
	for _, header := range []string{"abi", "attach", "gate", "atomic", "profile"} {
		for _, tt := range tests {
			t.Run(header+" with "+tt.compiler, func(t *testing.T) {
				if _, err := exec.LookPath(tt.compiler); err != nil {
					t.Skip(err)
				}
				cmd := exec.Command(tt.compiler, slices.Concat(tt.flags, strict, []string{"-"})...)
				cmd.Stdin = strings.NewReader("#include <heddle/" + header + ".h>\n")
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%v\n%s", err, out)
				}
			})
		}
	}
}

// sample is a unit of its own that needs no other file of the repository: everything that the
// contract's rules allow, and for the not strict kind what they forbid.
var sample = unit{
	name: "sample", headers: []string{"sample.h"}, include: ".", prefixes: []string{"demo_"}, pkg: "demo",
	goFile: "zsample.go", testFile: "zsample_test.go", golden: "sample.layout", document: "sample.md",
}

const sampleHeader = `#include <stdalign.h>
#include <stdint.h>

/* Colours that the
 * machine knows. */
enum demo_colour {
    DEMO_RED = -1,    /* below zero */
    DEMO_GREEN,
    DEMO_POINT = 4,   /* also a struct's name */
    DEMO_LAST = 0x7fff1234,
};

/* ---- a place ---- */
struct demo_point {
    alignas(64) int16_t x; /* to the right,
                              in steps */
    uint64_t id;
    uint8_t uuid[3];
};

struct demo_line {
    struct demo_point ends[2];
    char name[5];
    union {
        int a;
        double b;
    } hidden;
    enum demo_colour colour;
    void *next;
    uint32_t grid[2][3];
};
`

const sampleDocument = `before
<!-- genabi:begin enum demo_colour -->
old
<!-- genabi:end -->
after
<!-- genabi:begin struct demo_line -->
<!-- genabi:end -->
`

func sampleFolder(t *testing.T, header string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"sample.h": header, "sample.md": sampleDocument} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestSampleMirrorsAsTheGoldenFileSays(t *testing.T) {
	dir := sampleFolder(t, sampleHeader)
	golden := filepath.Join("testdata", "sample.golden")
	for i, cc := range compilers(t) {
		files, err := sample.generate(dir, cc, "")
		if err != nil {
			t.Fatal(err)
		}
		var all bytes.Buffer
		for _, f := range files {
			all.WriteString("==== " + f.path + "\n")
			all.Write(f.content)
		}
		if *update && i == 0 {
			if err := os.WriteFile(golden, all.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), all.String()); diff != "" {
			t.Errorf("%s (-golden +got), -update writes it anew:\n%s", cc, diff)
		}
	}
}

// TestSampleCompiles builds the generated Go and runs the generated layout test.
func TestSampleCompiles(t *testing.T) {
	cc := compilers(t)[0]
	dir := sampleFolder(t, sampleHeader)
	files, err := sample.generate(dir, cc, "")
	if err != nil {
		t.Fatal(err)
	}
	module := t.TempDir()
	files = append(files, file{"go.mod", []byte("module demo\n\ngo 1.26\n")})
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(module, f.path), f.content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "test", "./...")
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestGenerateReadsAGivenObject(t *testing.T) {
	cc := compilers(t)[0]
	dir := sampleFolder(t, sampleHeader)
	headers, err := sample.readHeaders(dir)
	if err != nil {
		t.Fatal(err)
	}
	object, err := compile(cc, dir, dir, headers, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	given, err := sample.generate(dir, "no-such-compiler", object)
	if err != nil {
		t.Fatal(err)
	}
	built, err := sample.generate(dir, cc, "")
	if err != nil {
		t.Fatal(err)
	}
	for i := range built {
		if !bytes.Equal(given[i].content, built[i].content) {
			t.Errorf("%s differs", built[i].path)
		}
	}
}

func TestHeadersThatCannotBeMirroredAreRefused(t *testing.T) {
	cc := compilers(t)[0]
	tests := []struct {
		name   string
		header string
		want   string
	}{
		{"no types", "int demo_x;\n", "no types"},
		{"an enum without a name", "enum {\n    DEMO_A,\n};\n", "enum without a name"},
		{"a typedef of a struct without a name", "typedef struct {\n    int a;\n} demo_t;\n", "struct without a name"},
		{"a bit-field", "struct demo_s {\n    unsigned a : 3;\n};\n", "bit-field"},
		{"an int", "struct demo_s {\n    int a;\n};\n", "not allowed"},
		{"a size_t", "#include <stddef.h>\nstruct demo_s {\n    size_t a;\n};\n", "no fixed width"},
		{"a pointer", "struct demo_s {\n    char *a;\n};\n", "not allowed"},
		{"a union", "struct demo_s {\n    union { char a; } u;\n};\n", "not allowed"},
		{"a member without a name", "struct demo_s {\n    union { char a; };\n};\n", "without a name"},
		{"an array without a length", "#include <stdint.h>\nstruct demo_s {\n    uint8_t n;\n    uint8_t a[];\n};\n", "without a length"},
		{"two names that Go cannot tell apart", "enum demo_e {\n    DEMO_A_B,\n    DEMO_A__B,\n};\n", "both be AB"},
		{"a header that does not compile", "struct demo_s {\n    nonsense a;\n};\n", "nonsense"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			strict := sample
			strict.strict = true
			files, err := strict.generate(sampleFolder(t, tt.header), cc, "")
			if err == nil || files != nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("generate = %d files, %v; want an error about %q", len(files), err, tt.want)
			}
		})
	}
}

func TestDocumentMarksMustMatch(t *testing.T) {
	tests := []struct{ name, doc, want string }{
		{"an end alone", "x\n<!-- genabi:end -->\n", "without a beginning"},
		{"a beginning alone", "<!-- genabi:begin enum demo_e -->\n", "no <!-- genabi:end -->"},
		{"a type that is not there", "<!-- genabi:begin struct gone -->\n<!-- genabi:end -->\n", "no struct gone"},
	}
	l := layout{enums: []enumType{{name: "demo_e"}}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := fillTables(tt.doc, l); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("fillTables = %v, want an error about %q", err, tt.want)
			}
		})
	}
}

func TestRunRefusesWrongUse(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"an argument too many", []string{"x"}, `unexpected argument "x"`},
		{"an object without a unit", []string{"-object", "x.o"}, "needs -unit"},
		{"a unit that is not there", []string{"-unit", "x"}, `no unit "x"`},
		{"a root that is none", []string{"-root", "/nonexistent", "-unit", "heddle"}, "no such file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := run(tt.args); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("run = %v, want %q", err, tt.want)
			}
		})
	}
}

func TestCheckFindsStaleFilesAndWritesNothing(t *testing.T) {
	cc := compilers(t)[0]
	dir := t.TempDir()
	u := units[0]
	for _, path := range append(u.headers, u.document, "interpose/include/heddle/atomic.h") {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, path), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"-root", dir, "-unit", u.name, "-cc", cc}
	if err := run(append(args, "-check")); err == nil || !strings.Contains(err.Error(), u.goFile) {
		t.Errorf("with nothing generated: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, u.goFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("-check wrote a file: %v", err)
	}
	if err := run(args); err != nil {
		t.Fatal(err)
	}
	if err := run(append(args, "-check")); err != nil {
		t.Errorf("right after writing: %v", err)
	}
}
