package main

import (
	"path/filepath"
	"slices"
	"strings"
)

// setEnv sets a variable once, whatever was there before, and leaves the order of the rest.
func setEnv(env []string, name, value string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		return strings.HasPrefix(entry, name+"=")
	})
	return append(env, name+"="+value)
}

// interpose puts the interposer in front of the driver for a program started with env, twice: the
// search path for those that open libcuda.so by another name, the preload for those that carry a
// path to the driver inside (RPATH). What was set before stays, behind it.
func interpose(env []string, interposer string) []string {
	dir := filepath.Dir(interposer)
	path, _ := lookupEnv(env, "LD_LIBRARY_PATH")
	env = setEnv(env, "LD_LIBRARY_PATH", prepend(dir, path, func(r rune) bool { return r == ':' || r == ';' }))
	preload, _ := lookupEnv(env, "LD_PRELOAD")
	return setEnv(env, "LD_PRELOAD", prepend(interposer, preload, func(r rune) bool { return r == ':' || r == ' ' }))
}

// prepend puts first at the head of a list and takes its other occurrences out, so that a program
// started by a program under heddle run is not slowed down by ever longer lists. An empty element
// is kept: in a search path it means the current folder.
func prepend(first, list string, separator func(rune) bool) string {
	if list == "" {
		return first
	}
	kept := []string{first}
	for rest := list; ; {
		i := strings.IndexFunc(rest, separator)
		element := rest
		if i >= 0 {
			element = rest[:i]
		}
		if element != first {
			kept = append(kept, element)
		}
		if i < 0 {
			break
		}
		rest = rest[i+1:]
	}
	return strings.Join(kept, ":")
}
