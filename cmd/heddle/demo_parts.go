package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// demoParts are the files that the demo is made of, all as absolute paths.
type demoParts struct {
	play       string // heddle-play
	daemon     string // heddled
	interposer string
	softgpu    string // folder with the software GPU's libraries; empty for a real GPU
	hp, lp     string // kernel tables
}

// findDemoParts looks beside the executable, as in a build tree or a package, and says of the
// first part that is missing where it was looked for.
func (a *app) findDemoParts(o *demoOptions) (*demoParts, error) {
	var p demoParts
	var err error
	self, err := selfFolder()
	if err != nil {
		return nil, err
	}
	if p.interposer, err = a.findInterposer(); err != nil {
		return nil, err
	}
	find := func(to *string, what string, places ...string) {
		if err == nil {
			*to, err = firstThatExists(what, places...)
		}
	}
	find(&p.play, "heddle-play", filepath.Join(self, "heddle-play"))
	find(&p.daemon, "heddled", filepath.Join(self, "heddled"), "/usr/sbin/heddled")
	if o.gpu == "soft" {
		find(&p.softgpu, "the software GPU", filepath.Join(self, "..", "softgpu"), "/usr/lib/heddle/softgpu")
	}
	find(&p.hp, "kernel table", workloadPlaces(self, o.hp, "inference.csv")...)
	find(&p.lp, "kernel table", workloadPlaces(self, o.lp, "training.csv")...)
	if err != nil {
		return nil, err
	}
	return &p, nil
}

func selfFolder() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find the demo's parts: %w", err)
	}
	if resolved, err := filepath.EvalSymlinks(self); err == nil {
		self = resolved
	}
	return filepath.Dir(self), nil
}

func workloadPlaces(self, chosen, shipped string) []string {
	if chosen != "" {
		return []string{chosen}
	}
	return []string{
		filepath.Join(self, "..", "share", "heddle", "workloads", shipped),
		filepath.Join(self, "..", "..", "tests", "play", "workloads", shipped), // a checkout
		filepath.Join("/usr/share/heddle/workloads", shipped),
	}
}

func firstThatExists(what string, places ...string) (string, error) {
	for _, place := range places {
		path, err := filepath.Abs(place)
		if err != nil {
			return "", fmt.Errorf("find %s: %w", what, err)
		}
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s not found: looked at %v (make demo builds it)", what, places)
}
