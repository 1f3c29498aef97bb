package main

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// checkMPS looks for a running MPS control daemon. Both answers are fine: with MPS, kernels of
// several programs run side by side; without, they take turns.
func checkMPS(_ context.Context, x *examination) finding {
	pipes := x.app.getenv("CUDA_MPS_PIPE_DIRECTORY")
	if pipes == "" {
		pipes = "/tmp/nvidia-mps"
	}
	_, err := os.Stat(filepath.Join(pipes, "control"))
	pid := findProcess("/proc", "nvidia-cuda-mps-control")
	switch {
	case err == nil && pid == 0:
		return warn("remove "+pipes+" or start nvidia-cuda-mps-control -d: programs will wait for it",
			"%s is there, but no control daemon runs", pipes)
	case pid == 0:
		return ok("not running: programs take turns on the device")
	case err != nil:
		return warn("set CUDA_MPS_PIPE_DIRECTORY to the folder that it uses",
			"control daemon runs (pid %d), but not with %s", pid, pipes)
	default:
		return ok("control daemon runs (pid %d), pipes in %s", pid, pipes)
	}
}

// findProcess finds a process by the program that it was started as; 0 if there is none. The
// short name that the OS kernel keeps has room for 15 letters only.
func findProcess(proc, program string) int {
	entries, err := os.ReadDir(proc)
	if err != nil {
		return 0
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		data, err := os.ReadFile(filepath.Join(proc, entry.Name(), "cmdline"))
		if err != nil {
			continue
		}
		first, _, _ := strings.Cut(string(data), "\x00")
		if filepath.Base(first) == program {
			return pid
		}
	}
	return 0
}
