package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/heddle-project/heddle/runtime/api"
	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
)

const startDaemon = "start heddled: systemctl start heddled, or heddled in another terminal"

func checkAPISocket(_ context.Context, x *examination) finding {
	path := x.app.socket
	info, err := os.Stat(path)
	if err != nil {
		return fail(startDaemon, "%s: %s", path, plainErrno(err))
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fail("name the API socket with --socket or HEDDLE_API", "%s is not a socket", path)
	}
	f := accessOf(path, info)
	x.socketUsable = f.Status == gradeOK
	return f
}

// accessOf says whether this user may connect to a socket: that takes the right to write to it.
func accessOf(path string, info fs.FileInfo) finding {
	const write = 0x2 // W_OK
	text := fmt.Sprintf("%s (mode %04o, owner %s)", path, info.Mode().Perm(), owner(info))
	if err := syscall.Access(path, write); err != nil {
		return fail("run as a user who may, or widen the socket's mode", "%s: %s", text, plainErrno(err))
	}
	return ok("%s", text)
}

func checkDaemon(ctx context.Context, x *examination) finding {
	if !x.socketUsable {
		return skip("the API socket is not usable")
	}
	var status *heddlev1.StatusResponse
	err := x.app.call(ctx, func(ctx context.Context, conn *api.Conn) (err error) {
		status, err = conn.Status(ctx)
		return err
	})
	if err != nil {
		return fail(startDaemon+"; its log says why it stopped", "%v", err)
	}
	x.status = status
	text := fmt.Sprintf("version %s, pid %d, ABI %d, NVML %s, driver %s", status.GetVersion(), status.GetPid(),
		status.GetAbiVersion(), orUnknown(status.GetNvmlVersion()), orUnknown(status.GetDriverVersion()))
	if own := buildVersion(); status.GetVersion() != own {
		return warn("restart heddled after an upgrade, or install both from one build", "%s; heddle is %s", text, own)
	}
	return ok("%s", text)
}

func checkDevices(ctx context.Context, x *examination) finding {
	if x.status == nil {
		return skip("heddled does not answer")
	}
	err := x.app.call(ctx, func(ctx context.Context, conn *api.Conn) (err error) {
		x.devices, err = conn.Devices(ctx)
		return err
	})
	switch {
	case err != nil:
		return fail("see the log of heddled", "%v", err)
	case len(x.devices) == 0:
		return fail("check the driver (nvidia-smi), then restart heddled", "heddled sees no device")
	}
	names := make([]string, len(x.devices))
	for i, d := range x.devices {
		names[i] = fmt.Sprintf("%d %s %s", d.GetIndex(), d.GetName(), formatBytes(d.GetMemoryTotalBytes()))
	}
	return ok("%s: %s", plural(len(names), "device"), strings.Join(names, ", "))
}

func checkAttachSocket(_ context.Context, x *examination) finding {
	path := x.app.getenv("HEDDLE_SOCKET")
	if x.status != nil {
		path = x.status.GetAttachSocket()
	}
	if path == "" {
		return skip("heddled does not answer")
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return fail("check that the folder can be entered by everybody who uses the GPU", "%s: %s", path, plainErrno(err))
	case info.Mode().Type() != fs.ModeSocket:
		return fail("remove it and restart heddled", "%s is not a socket", path)
	}
	return accessOf(path, info)
}

// checkRights says what this user may do. Reading needs no rights, so none is no failure.
func checkRights(ctx context.Context, x *examination) finding {
	if x.status == nil {
		return skip("heddled does not answer")
	}
	if os.Geteuid() == 0 {
		return ok("root: may read and change everything")
	}
	if info, err := os.Stat(x.app.socket); err == nil {
		if stat, known := info.Sys().(*syscall.Stat_t); known && int(stat.Uid) == os.Geteuid() {
			return ok("heddled runs as this user: may read and change everything")
		}
	}
	group, _, err := x.configValue(ctx, "admin_group")
	if err != nil || group == "" {
		return ok("may read, and lower its own programs")
	}
	if inGroup(group) {
		return ok("member of %s: may read and change everything", group)
	}
	return ok("not in group %s: may read, and lower its own programs", group)
}

// inGroup asks about this process, not about the user's entry: a new membership counts from the
// next login on.
func inGroup(name string) bool {
	group, err := user.LookupGroup(name)
	if err != nil {
		return false
	}
	gid, err := strconv.Atoi(group.Gid)
	if err != nil {
		return false
	}
	groups, err := os.Getgroups()
	return err == nil && slices.Contains(append(groups, os.Getegid()), gid)
}

func checkFailMode(ctx context.Context, x *examination) finding {
	if x.status == nil {
		return skip("heddled does not answer")
	}
	mode, origin, err := x.configValue(ctx, "scheduling.fail")
	switch {
	case err != nil:
		return warn("see the log of heddled", "%v", err)
	case mode == "closed":
		return ok("closed (%s): programs that are held stay held when heddled is gone", origin)
	case mode == "open":
		return ok("open (%s): programs run on when heddled is gone", origin)
	default:
		return warn("upgrade heddle", "%q (%s) is not known to this heddle", mode, origin)
	}
}
