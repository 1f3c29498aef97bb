package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// checkSoftwareGPU tries to open the file that is the software GPU's node, as the driver would: for
// programs without it there is no driver at all, whatever was wrong. Nothing is made.
func checkSoftwareGPU(path string) finding {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return newNode(path)
	case err != nil:
		return fail("name another file in SOFTGPU_STATE", "SOFTGPU_STATE=%s: %s", path, plainErrno(err))
	case !info.Mode().IsRegular():
		return fail("name a file in SOFTGPU_STATE", "SOFTGPU_STATE=%s is not a regular file", path)
	}
	text := fmt.Sprintf("SOFTGPU_STATE=%s (mode %04o, owner %s)", path, info.Mode().Perm(), owner(info))
	// The driver asks for the file to be made if it is missing, and this matters here: in a folder
	// such as /tmp some OS kernels then refuse another user's file even to root.
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	switch {
	case err == nil:
		_ = file.Close() // nothing was written
		return ok("software GPU: %s", text)
	case errors.Is(err, fs.ErrPermission) && !ownedByUs(info):
		return fail("run as its owner, remove the file, or name another one in SOFTGPU_STATE", "%s: another user's: %s", text, plainErrno(err))
	case errors.Is(err, fs.ErrPermission):
		return fail("chmod u+rw "+path, "%s: %s", text, plainErrno(err))
	default:
		return fail("name another file in SOFTGPU_STATE", "%s: %s", text, plainErrno(err))
	}
}

// newNode says whether the first program will be able to make the file.
func newNode(path string) finding {
	const writeAndSearch = 0x3 // W_OK | X_OK
	if err := syscall.Access(filepath.Dir(path), writeAndSearch); err != nil {
		return fail("name a file in a folder of yours in SOFTGPU_STATE",
			"SOFTGPU_STATE=%s is not there, and cannot be made in its folder: %s", path, plainErrno(err))
	}
	return ok("software GPU: SOFTGPU_STATE=%s, which the first program will make", path)
}

func ownedByUs(info fs.FileInfo) bool {
	stat, known := info.Sys().(*syscall.Stat_t)
	return known && int(stat.Uid) == os.Geteuid()
}
