package main

import (
	"context"
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/heddle-project/heddle/runtime/api"
	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
)

func checkInterposerFile(_ context.Context, x *examination) finding {
	path, err := x.app.findInterposer()
	if err != nil {
		return fail("install the package again, or name the file with HEDDLE_INTERPOSER", "%v", err)
	}
	problem, abi := builtFor(path)
	if problem != "" {
		return fail("install the package for this machine", "%s: %s", path, problem)
	}
	info, err := os.Stat(path)
	if err != nil {
		return fail("install the package again", "%v", err)
	}
	x.interposer = path
	// Programs run what is in this file with their own rights.
	if info.Mode().Perm()&0o022 != 0 {
		return warn("chmod go-w "+path, "%s can be changed by others (mode %04o)", path, info.Mode().Perm())
	}
	if x.status != nil && x.status.GetAbiVersion() != abi {
		return warn("install interposer and heddled from one build", "%s speaks ABI %d, heddled %d", path, abi, x.status.GetAbiVersion())
	}
	return ok("%s (SONAME %s, ABI %d)", path, driverSoname, abi)
}

// builtFor reads which version of the contract an interposer was built for, and says if it was
// built for another machine than this.
func builtFor(path string) (problem string, abi uint32) {
	file, err := elf.Open(path)
	if err != nil {
		return "not an ELF library", 0
	}
	defer file.Close()
	machines := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	if want, known := machines[runtime.GOARCH]; known && file.Machine != want {
		return fmt.Sprintf("built for %s, this is %s", file.Machine, runtime.GOARCH), 0
	}
	abi, _ = interposerABI(file)
	return "", abi
}

// checkLoader starts a child as heddle run would, and looks at what the loader gave it.
func checkLoader(ctx context.Context, x *examination) finding {
	if x.interposer == "" {
		return skip("no usable interposer")
	}
	child, err := x.startProbe(ctx)
	if err != nil {
		return fail("reinstall the package", "%v", err)
	}
	x.child = child
	pid := child.cmd.Process.Pid
	if !child.ready() {
		return fail("run it by hand: heddle run -- "+child.cmd.Path,
			"%s ended or hung before it was ready: %s", filepath.Base(child.cmd.Path), orUnknown(child.report["error"]))
	}
	libraries, err := mappedLibraries(pid)
	switch {
	case err != nil:
		return fail("check that /proc is mounted", "%v", err)
	case !hasFile(libraries, x.interposer):
		return fail("look for a loader that ignores LD_PRELOAD (hardened system, static program)",
			"the child (pid %d) did not map %s", pid, x.interposer)
	case child.probe && !sameFile(child.report["library"], x.interposer):
		return fail("look for what opens the driver before the interposer: heddle run -- "+child.cmd.Path,
			"the child got cuInit from %s", orUnknown(child.report["library"]))
	case !child.probe:
		return ok("mapped in %s (pid %d); %s is not installed, so nothing more was tried", filepath.Base(child.cmd.Path), pid, probeProgram)
	}
	text := fmt.Sprintf("mapped, and it answers cuInit (pid %d)", pid)
	if x.driver != "" && !hasFile(libraries, x.driver) {
		return warn("name the driver with HEDDLE_REAL_LIBCUDA", "%s; but behind it is not %s", text, x.driver)
	}
	return ok("%s", text)
}

// mappedLibraries lists the files that a process has mapped.
func mappedLibraries(pid int) ([]string, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil, err
	}
	return parseMaps(string(data)), nil
}

// parseMaps takes the paths out of the text of /proc/PID/maps, each once, in its order.
func parseMaps(text string) []string {
	var paths []string
	seen := map[string]bool{}
	for line := range strings.Lines(text) {
		// address perms offset dev inode path, the path being the rest of the line
		i := strings.IndexByte(line, '/')
		if i < 0 {
			continue
		}
		path := strings.TrimSuffix(strings.TrimRight(line[i:], "\n"), " (deleted)")
		if !seen[path] {
			seen[path] = true
			paths = append(paths, path)
		}
	}
	return paths
}

func hasFile(paths []string, want string) bool {
	for _, path := range paths {
		if path == want || sameFile(path, want) {
			return true
		}
	}
	return false
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// checkAttach asks heddled for the child: only what heddled lists is scheduled.
func checkAttach(ctx context.Context, x *examination) finding {
	switch {
	case x.child == nil || !x.child.ready():
		return skip("no child was started")
	case !x.child.probe:
		return skip("%s is not installed beside the interposer", probeProgram)
	case x.child.report["cuinit"] != "0" && x.driver == "":
		return skip("there is no driver behind the interposer")
	case x.child.report["cuinit"] != "0":
		return fail("try the driver without Heddle: nvidia-smi", "cuInit answered %s in the child", orUnknown(x.child.report["cuinit"]))
	case x.status == nil:
		return skip("heddled does not answer")
	case x.app.getenv("HEDDLE_DISABLE") == "1":
		return skip("HEDDLE_DISABLE=1")
	}
	client, err := x.awaitClient(ctx)
	devices := orUnknown(x.child.report["devices"])
	switch {
	case err != nil:
		return fail("see the log of heddled", "%v", err)
	case client == nil:
		return fail("see the log of heddled for why it refused", "the child (pid %d) runs, but heddled does not list it", x.child.cmd.Process.Pid)
	case client.GetState() == heddlev1.ClientState_CLIENT_STATE_EVICTED:
		return fail("install interposer and heddled from one build", "heddled evicted the child: %s", client.GetReason())
	case client.GetInterposerVersion() != x.status.GetVersion():
		return warn("install interposer and heddled from one build", "client %d, devices %s; the interposer is %s, heddled %s",
			client.GetId(), devices, orUnknown(client.GetInterposerVersion()), x.status.GetVersion())
	}
	return ok("client %d, class %s, devices %s", client.GetId(), className(client.GetPriority()), devices)
}

// awaitClient waits for heddled to list the child, by the name that it was given: its pid may be
// another in heddled's namespace.
func (x *examination) awaitClient(ctx context.Context) (*heddlev1.Client, error) {
	const limit, pause = 3 * time.Second, 20 * time.Millisecond
	var found *heddlev1.Client
	err := x.app.callWithin(ctx, limit, func(ctx context.Context, conn *api.Conn) error {
		tick := time.NewTicker(pause)
		defer tick.Stop()
		for {
			list, err := conn.Clients(ctx, nil)
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return err
			}
			for _, c := range list {
				if c.GetName() == x.child.name {
					found = c
					return nil
				}
			}
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
		}
	})
	return found, err
}
