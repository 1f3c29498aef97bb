package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// A hook is defined at the start of a line, by HEDDLE_HOOK or by one of the macros named after it
// that define a family of them.
var hookForm = regexp.MustCompile(`(?m)^HEDDLE_HOOK[A-Z0-9_]*\((cu[A-Za-z0-9_]+)[,)]`)

// findHooks maps the name of every hook below dir to the file that defines it.
func findHooks(root fs.FS, dir string) (map[string]string, error) {
	hooks := make(map[string]string)
	err := fs.WalkDir(root, dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".c" {
			return err
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		for _, m := range hookForm.FindAllStringSubmatch(string(text), -1) {
			if first, twice := hooks[m[1]]; twice {
				return fmt.Errorf("%s: hook %s is already in %s", name, m[1], first)
			}
			hooks[m[1]] = strings.TrimPrefix(name, dir+"/")
		}
		return nil
	})
	return hooks, err
}

// matchHooks reports every name whose action and hook do not agree.
func matchHooks(symbols []symbol, hooks map[string]string) error {
	var problems []error
	listed := make(map[string]bool)
	for _, s := range symbols {
		listed[s.name] = true
		where, has := hooks[s.name]
		switch {
		case s.hooked() && !has:
			problems = append(problems, fmt.Errorf("%s has action %s and no hook", s.name, s.action))
		case !s.hooked() && has:
			problems = append(problems, fmt.Errorf("%s has action %s and a hook in %s", s.name, s.action, where))
		}
	}
	for name, where := range hooks {
		if !listed[name] {
			problems = append(problems, fmt.Errorf("%s has a hook in %s and is not in the list", name, where))
		}
	}
	return errors.Join(problems...)
}
