// Command gensyms writes everything that follows from the list of driver symbols.
//
// interpose/symbols.txt says what the interposer does with each function of the CUDA driver. From it
// come the list that the trampolines and tables are assembled from, the version script, the stubs of
// the software GPU and the coverage page. It also holds the list and the hand-written hooks
// together: a name with an action has a hook, a name without one has none.
//
//	go run ./cmd/gensyms          write everything (run in the repository's root)
//	go run ./cmd/gensyms -check   change nothing, fail if something is out of date
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	listPath  = "interpose/symbols.txt"
	hooksPath = "interpose/src"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gensyms:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("gensyms", flag.ContinueOnError)
	root := flags.String("root", ".", "root of the repository")
	check := flags.Bool("check", false, "write nothing, fail if a file is out of date")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	files, err := generate(os.DirFS(*root))
	if err != nil {
		return err
	}
	var stale []string
	for _, f := range files {
		path := filepath.Join(*root, f.path)
		old, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if bytes.Equal(old, f.content) {
			continue
		}
		if *check {
			stale = append(stale, f.path)
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, f.content, 0o644); err != nil {
			return err
		}
	}
	if len(stale) != 0 {
		return fmt.Errorf("out of date: %s; run go run ./cmd/gensyms", strings.Join(stale, ", "))
	}
	return nil
}

// A file is one output, its path relative to the root.
type file struct {
	path    string
	content []byte
}

// generate reads the list and the hooks below root and returns every output.
func generate(root fs.FS) ([]file, error) {
	text, err := fs.ReadFile(root, listPath)
	if err != nil {
		return nil, err
	}
	symbols, err := parseList(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", listPath, err)
	}
	hooks, err := findHooks(root, hooksPath)
	if err != nil {
		return nil, err
	}
	if err := matchHooks(symbols, hooks); err != nil {
		return nil, err
	}
	return []file{
		{"interpose/gen/symbols.inc", symbolsInc(symbols)},
		// What programs call of their own accord, see heddle/yield.h.
		{"interpose/gen/libcuda.map", versionScript(symbols, "heddle_wanted_v1", "heddle_yield_v1")},
		{"tests/softgpu/gen/stubs.c", softgpuStubs(symbols)},
		{"tests/softgpu/gen/libcuda.map", versionScript(symbols)},
		{"docs/coverage.md", coverage(symbols, hooks)},
	}, nil
}
