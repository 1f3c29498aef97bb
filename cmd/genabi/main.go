// Command genabi writes the Go mirror of structures that C and Go share.
//
// It lets the C compiler lay out every struct and enum of the listed headers, reads sizes, offsets
// and enumerators back from the debug information, and writes from that a Go file, a golden layout
// for people and reviews, and the tables inside a document. Nobody copies a number by hand, and a
// change of layout always shows up as a change of the golden file.
//
//	go run ./cmd/genabi            write everything (run in the repository's root)
//	go run ./cmd/genabi -check     change nothing, fail if something is out of date
//	go run ./cmd/genabi -cc clang  with another compiler; the result must be the same
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "genabi:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("genabi", flag.ContinueOnError)
	root := flags.String("root", ".", "root of the repository")
	cc := flags.String("cc", "gcc", "C compiler")
	object := flags.String("object", "", "read this object file instead of compiling; needs -unit")
	only := flags.String("unit", "", "only this unit: "+strings.Join(unitNames(), ", "))
	check := flags.Bool("check", false, "write nothing, fail if a file is out of date")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if *object != "" && *only == "" {
		return errors.New("-object needs -unit")
	}
	found := false
	var stale []string
	for _, u := range units {
		if *only != "" && u.name != *only {
			continue
		}
		found = true
		files, err := u.generate(*root, *cc, *object)
		if err != nil {
			return fmt.Errorf("unit %s: %w", u.name, err)
		}
		for _, f := range files {
			path := filepath.Join(*root, f.path)
			old, err := os.ReadFile(path)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
			if err == nil && bytes.Equal(old, f.content) {
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
	}
	if !found {
		return fmt.Errorf("no unit %q, there are %s", *only, strings.Join(unitNames(), ", "))
	}
	if len(stale) != 0 {
		return fmt.Errorf("out of date, run go run ./cmd/genabi: %s", strings.Join(stale, ", "))
	}
	return nil
}
