package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// compile builds an object file in dir that holds one object of every type of the headers: a
// compiler drops types that nothing uses from the debug information.
func compile(cc, include, root string, headers []header, dir string) (string, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return "", err
	}
	var source strings.Builder
	for _, h := range headers {
		fmt.Fprintf(&source, "#include \"%s\"\n", filepath.Join(root, h.path))
	}
	for _, h := range headers {
		for _, t := range h.types {
			fmt.Fprintf(&source, "%s %s genabi_%s_%s;\n", t.keyword, t.name, t.keyword, t.name)
		}
	}
	path := filepath.Join(dir, "instances.c")
	if err := os.WriteFile(path, []byte(source.String()), 0o600); err != nil {
		return "", err
	}
	object := filepath.Join(dir, "instances.o")
	cmd := exec.Command(cc, "-std=c11", "-D_GNU_SOURCE", "-O0", "-gdwarf-4", "-I"+include, "-c", path, "-o", object)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", cc, err, out)
	}
	return object, nil
}
