package main

import (
	"context"
	"debug/elf"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// driverFolders are where distributions and container runtimes put the driver's libraries; the
// interposer looks there too.
func driverFolders() []string {
	return []string{
		"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib",
		"/usr/lib/wsl/lib", "/usr/local/nvidia/lib64", "/usr/local/nvidia/lib",
		"/usr/lib/x86_64-linux-gnu/nvidia/current", "/usr/lib64/nvidia", "/run/opengl-driver/lib",
		"/run/nvidia/driver/usr/lib/x86_64-linux-gnu", "/run/nvidia/driver/usr/lib64", "/usr/local/cuda/compat",
	}
}

// findLibrary finds a library of the driver as the interposer would: on the search path first,
// then in the usual folders; never the interposer, which bears the driver's name.
func (x *examination) findLibrary(name string) string {
	folders := append(strings.Split(x.app.getenv("LD_LIBRARY_PATH"), ":"), driverFolders()...)
	for _, folder := range folders {
		if folder == "" {
			continue
		}
		path := filepath.Join(folder, name)
		if _, err := os.Stat(path); err == nil && !isInterposer(path) {
			return path
		}
	}
	return ""
}

func checkDriver(_ context.Context, x *examination) finding {
	const mend = "install the NVIDIA driver, or point LD_LIBRARY_PATH or HEDDLE_REAL_LIBCUDA at the software GPU's"
	if path := x.app.getenv("HEDDLE_REAL_LIBCUDA"); path != "" {
		if problem := libraryProblem(path); problem != "" {
			return fail("correct or unset HEDDLE_REAL_LIBCUDA", "HEDDLE_REAL_LIBCUDA=%s: %s", path, problem)
		}
		x.driver = path
		return ok("%s (HEDDLE_REAL_LIBCUDA)", path)
	}
	path := x.findLibrary(driverSoname)
	if path == "" {
		return fail(mend, "%s not found in LD_LIBRARY_PATH or the usual folders, %s and others", driverSoname, strings.Join(driverFolders()[:3], ", "))
	}
	if problem := libraryProblem(path); problem != "" {
		return fail(mend, "%s: %s", path, problem)
	}
	x.driver = path
	if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
		return ok("%s -> %s", path, real)
	}
	return ok("%s", path)
}

// libraryProblem says why the loader will not take a file; empty if it will.
func libraryProblem(path string) string {
	file, err := elf.Open(path)
	switch {
	case err == nil:
		defer file.Close()
		if file.Type != elf.ET_DYN {
			return "not a shared library"
		}
		return ""
	case errors.As(err, new(syscall.Errno)):
		return plainErrno(err)
	default:
		return "not an ELF library"
	}
}

// isDynamic says whether a program is started by the loader, which is what a preload needs.
func isDynamic(path string) bool {
	file, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP {
			return true
		}
	}
	return false
}

// checkNVML believes heddled, which has the library open; without heddled a file has to do.
func checkNVML(ctx context.Context, x *examination) finding {
	const name = "libnvidia-ml.so.1"
	if x.status.GetNvmlVersion() != "" {
		library, origin, err := x.configValue(ctx, "nvml_library")
		if err != nil || library == "" {
			return ok("version %s, open in heddled", x.status.GetNvmlVersion())
		}
		return ok("version %s, open in heddled from %s (%s)", x.status.GetNvmlVersion(), library, origin)
	}
	path := x.findLibrary(name)
	if path == "" {
		return warn("install the driver's NVML library, or set nvml_library in heddled's configuration",
			"%s not found in LD_LIBRARY_PATH or the usual folders", name)
	}
	if problem := libraryProblem(path); problem != "" {
		return fail("reinstall the driver", "%s: %s", path, problem)
	}
	return ok("%s", path)
}

// checkDeviceNodes looks at the files under /dev that the real driver opens, or at the one that the
// software GPU has instead.
func checkDeviceNodes(_ context.Context, x *examination) finding {
	if path := x.app.getenv("SOFTGPU_STATE"); path != "" {
		return checkSoftwareGPU(path)
	}
	nodes, err := filepath.Glob("/dev/nvidia[0-9]*")
	if err != nil || len(nodes) == 0 {
		if _, err := os.Stat("/proc/driver/nvidia/version"); err == nil {
			return fail("run nvidia-modprobe or nvidia-smi once as root", "the driver is loaded, but /dev/nvidia0 is missing")
		}
		return skip("no NVIDIA kernel module is loaded (software GPU)")
	}
	for _, path := range append([]string{"/dev/nvidiactl"}, nodes...) {
		const readWrite = 0x6 // R_OK | W_OK
		if err := syscall.Access(path, readWrite); err != nil {
			return fail("give the user access to the device nodes (group video on some systems)", "%s: %s", path, plainErrno(err))
		}
	}
	return ok("/dev/nvidiactl, %s", strings.Join(nodes, ", "))
}
