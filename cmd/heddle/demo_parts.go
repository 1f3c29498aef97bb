package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

// checkTables lets the player read what was chosen, before a minute is spent on the first run.
func (p *demoParts) checkTables(ctx context.Context, o *demoOptions) error {
	for _, chosen := range []struct{ flag, table, arrivals string }{
		{"hp", p.hp, o.arrivals},
		{"lp", p.lp, "closed"},
	} {
		cmd := exec.CommandContext(ctx, p.play, "--table", chosen.table, "--mode", "infer", "--arrivals", chosen.arrivals, "--ptx")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		err := cmd.Run()
		if err == nil || ctx.Err() != nil {
			continue
		}
		said, _, _ := strings.Cut(strings.TrimSpace(stderr.String()), "\n")
		if code, ok := errors.AsType[*exec.ExitError](err); !ok || code.ExitCode() != exitUsage || said == "" {
			return fmt.Errorf("let %s read %s: %w %s", p.play, chosen.table, err, said)
		}
		said = strings.TrimPrefix(said, "heddle-play: ")
		if what, ok := strings.CutPrefix(said, "read kernel table "+chosen.table+": "); ok {
			return usagef("--%s %s: %s", chosen.flag, chosen.table, what)
		}
		return usagef("%s", said)
	}
	return nil
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
