package main

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// driverSoname is the name under which programs ask for the driver, and the interposer's own.
const driverSoname = "libcuda.so.1"

// interposerPlaces are the files that may be the interposer, the first one that exists counts.
func (a *app) interposerPlaces() []string {
	if path := a.getenv("HEDDLE_INTERPOSER"); path != "" {
		return []string{path} // named by hand: nothing else will do
	}
	var places []string
	if self, err := os.Executable(); err == nil {
		if real, err := filepath.EvalSymlinks(self); err == nil {
			self = real
		}
		places = append(places, filepath.Join(filepath.Dir(self), "..", "lib", "heddle", driverSoname))
	}
	places = append(places, "/usr/lib/heddle/"+driverSoname, "/usr/local/lib/heddle/"+driverSoname)
	return slices.Compact(places)
}

// findInterposer returns the absolute path of a usable interposer.
func (a *app) findInterposer() (string, error) {
	places := a.interposerPlaces()
	for _, place := range places {
		path, err := filepath.Abs(place)
		if err != nil {
			return "", fmt.Errorf("interposer %s: %w", place, err)
		}
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err := checkInterposer(path); err != nil {
			return "", fmt.Errorf("interposer %s: %w", path, err)
		}
		return path, nil
	}
	if a.getenv("HEDDLE_INTERPOSER") != "" {
		return "", fmt.Errorf("interposer not found: HEDDLE_INTERPOSER names %s", places[0])
	}
	return "", fmt.Errorf("interposer not found: looked at %s (HEDDLE_INTERPOSER names another place)", strings.Join(places, ", "))
}

// checkInterposer refuses a file that the loader would refuse, or worse, would load to no effect:
// it warns of the first in every program that is started, and says nothing about the second.
func checkInterposer(path string) error {
	// LD_PRELOAD is split at both, and there is no way to quote them.
	if strings.ContainsAny(path, ": ") {
		return errors.New("the loader cannot preload a path with a colon or a blank in it")
	}
	file, err := elf.Open(path)
	if err != nil {
		if plain := plainErrno(err); plain != err.Error() {
			return errors.New(plain)
		}
		return errors.New("not an ELF library")
	}
	defer file.Close()
	if file.Type != elf.ET_DYN {
		return errors.New("not a shared library")
	}
	names, err := file.DynString(elf.DT_SONAME)
	if err != nil || !slices.Contains(names, driverSoname) {
		return fmt.Errorf("its SONAME is not %s", driverSoname)
	}
	if _, found := interposerABI(file); !found {
		return errors.New("this is a driver, not the interposer")
	}
	return nil
}
