package shm

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestMain fails the package if a test left a descriptor open or a segment mapped.
func TestMain(m *testing.M) {
	before := openFiles()
	code := m.Run()
	for name, target := range openFiles() {
		if _, known := before[name]; !known && strings.Contains(target, "memfd:") {
			fmt.Fprintf(os.Stderr, "leaked descriptor %s: %s\n", name, target)
			code = 99
		}
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil || strings.Contains(string(maps), "memfd:heddle") {
		fmt.Fprintf(os.Stderr, "leaked mapping (%v):\n%s", err, maps)
		code = 99
	}
	os.Exit(code)
}

func openFiles() map[string]string {
	files := map[string]string{}
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err == nil {
			files[e.Name()] = target
		}
	}
	return files
}
