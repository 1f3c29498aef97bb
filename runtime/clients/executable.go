package clients

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// executable finds the file that a process runs: its path, and a question that may be asked of it.
// The path is the one in the process's own mount namespace, where its owner may have put any file
// at any path. So the question is whether heddled finds that very file at that path. It is answered
// once, when first asked: an upgrade may put another file there while the process lives on.
func executable(dir string) (path string, genuine func() bool) {
	link := dir + "/exe"
	path, err := os.Readlink(link)
	if err != nil {
		return "", nil
	}
	runs, err := fileOf(link)
	if err != nil {
		return path, nil
	}
	return path, sync.OnceValue(func() bool {
		found, err := fileOf(path)
		return err == nil && found == runs
	})
}

// file is one file of this machine, whatever paths lead to it.
type file struct {
	major, minor uint32
	inode        uint64
}

// fileOf follows path. What is known of the file is enough: a file server, which may be a program
// of the client's owner, is not asked again.
func fileOf(path string) (file, error) {
	var s unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_STATX_DONT_SYNC, unix.STATX_INO, &s)
	return file{s.Dev_major, s.Dev_minor, s.Ino}, err
}
