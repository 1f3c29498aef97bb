package daemon

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/heddle-project/heddle/runtime/errdefs"
)

// processStart tells a process from others that had or will have its number: when it was started,
// and since which boot that counts.
func processStart(pid int) (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, os.ErrNotExist) {
		return "", errdefs.Errorf(errdefs.NotFound, "no process %d", pid)
	}
	if err != nil {
		return "", err
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	// The name of the program stands in parentheses and may have spaces and more of them.
	_, fields, ok := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " ")
	words := strings.Fields(fields)
	const state, started = 0, 19 // of the fields behind the name
	if !ok || len(words) <= started {
		return "", errdefs.Errorf(errdefs.Corrupt, "/proc/%d/stat has %d fields", pid, len(words))
	}
	if words[state] == "Z" || words[state] == "X" {
		return "", errdefs.Errorf(errdefs.NotFound, "process %d has ended", pid)
	}
	return words[started] + " of " + strings.TrimSpace(string(boot)), nil
}
