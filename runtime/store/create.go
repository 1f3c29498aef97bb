package store

import (
	"errors"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"
)

// create puts an empty state file at path, if there is none. It is made beside its place first: a
// full disk or a kill in the middle must not leave half a file there, which the next start would
// have to take for a damaged one.
func create(path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		return nil // whatever it is, opening it tells
	}
	f, err := os.CreateTemp(filepath.Dir(path), FileName+".new-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	db, err := bbolt.Open(f.Name(), 0o600, &bbolt.Options{FreelistType: bbolt.FreelistArrayType})
	if err == nil {
		err = db.Close()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	// A link, because it replaces nothing: another heddled may have been faster.
	if err := os.Link(f.Name(), path); !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}
