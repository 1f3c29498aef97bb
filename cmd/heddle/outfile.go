package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// outfile is a file that appears when it is complete. Until then what is written is in a file beside it,
// so that neither a crash nor a full disk leaves half of one, or takes away an older one.
type outfile struct {
	io.Writer
	file *os.File // nil: standard output
	path string   // what it becomes, empty = it is written in place
}

// createOutput opens the file that a person named; - is standard output. What exists and is no plain
// file, a pipe for one, is written in place.
func (a *app) createOutput(path string) (*outfile, error) {
	if path == "-" {
		return &outfile{Writer: a.stdout}, nil
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("%s: %s", path, plainErrno(err))
	case info.IsDir():
		return nil, usagef("%s is a folder", path)
	case !info.Mode().IsRegular():
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return nil, fmt.Errorf("%s: %s", path, plainErrno(err))
		}
		return &outfile{Writer: f, file: f}, nil
	default: // a link goes on leading to its file
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return nil, err
		}
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return nil, fmt.Errorf("%s: %s", path, plainErrno(err))
	}
	return &outfile{Writer: f, file: f, path: path}, nil
}

// commit makes what was written the file.
func (o *outfile) commit() error {
	if o.file == nil {
		return nil
	}
	if err := o.file.Close(); err != nil || o.path == "" {
		return err
	}
	if err := os.Rename(o.file.Name(), o.path); err != nil {
		return err
	}
	o.path = ""
	return nil
}

// discard removes what was written, if it was not committed.
func (o *outfile) discard() error {
	if o.file == nil || o.path == "" {
		return nil
	}
	_ = o.file.Close() // nobody will read it
	return os.Remove(o.file.Name())
}
