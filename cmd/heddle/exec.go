package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// findProgram finds a command as a shell does: a name with a slash is a path, others are looked
// for in PATH; a file that is there but cannot be executed is another error than none at all.
func findProgram(name, path string) (string, error) {
	if name == "" {
		return "", &exitError{exitNotFound, errors.New("the command is empty")}
	}
	if strings.Contains(name, "/") {
		return name, executable(name)
	}
	var refused error
	for _, dir := range filepath.SplitList(path) {
		candidate := filepath.Join(dir, name)
		if dir == "" {
			candidate = "./" + name
		}
		err := executable(candidate)
		if err == nil {
			return candidate, nil
		}
		if exitCode(err) == exitNotExecutable && refused == nil {
			refused = err
		}
	}
	if refused != nil {
		return "", refused
	}
	return "", &exitError{exitNotFound, fmt.Errorf("%s: command not found", name)}
}

// searchPath is where commands are looked for; without any PATH it is the C library's default.
func (a *app) searchPath() string {
	if path, set := lookupEnv(a.environ, "PATH"); set {
		return path
	}
	return "/bin:/usr/bin"
}

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return &exitError{exitNotFound, fmt.Errorf("%s: no such file or directory", path)}
	case err != nil:
		return &exitError{exitNotExecutable, fmt.Errorf("%s: %s", path, plainErrno(err))}
	case info.IsDir():
		return &exitError{exitNotExecutable, fmt.Errorf("%s: is a directory", path)}
	}
	const execute = 0x1 // X_OK
	if err := syscall.Access(path, execute); err != nil {
		return &exitError{exitNotExecutable, fmt.Errorf("%s: %s", path, plainErrno(err))}
	}
	return nil
}

// execProgram replaces this process. It returns only if that did not work.
func execProgram(program string, args, env []string) error {
	err := syscall.Exec(program, args, env)
	if errors.Is(err, syscall.ENOEXEC) {
		// A script without a first line that names its interpreter; shells and env run it with sh.
		err = syscall.Exec("/bin/sh", append([]string{"sh", program}, args[1:]...), env)
	}
	if errors.Is(err, syscall.ENOENT) {
		// The file is there, so this is about its interpreter or its loader.
		return &exitError{exitNotExecutable, fmt.Errorf("%s: its interpreter or loader is missing", program)}
	}
	return &exitError{exitNotExecutable, fmt.Errorf("%s: %s", program, plainErrno(err))}
}

// isPrivileged says whether the loader will ignore LD_PRELOAD and LD_LIBRARY_PATH in a program
// because it gives a user who is not root more rights than that user has.
func isPrivileged(program string, euid int) bool {
	if euid == 0 {
		return false
	}
	if n, err := unix.Getxattr(program, "security.capability", nil); err == nil && n > 0 {
		return true
	}
	info, err := os.Stat(program)
	return err == nil && info.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0
}
