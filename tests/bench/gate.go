package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

const (
	gateRounds = 1000
	// turn, go, idle_ns, passed_ns: see client/gate.c.
	gateSharedBytes = 24
	gateGoOffset    = 4
)

// benchGate measures how soon a held launch runs once its holder is idle. The
// quiet time that a class waits on purpose is set to nothing for that; a
// second measurement has the default, for comparison.
func benchGate(ctx context.Context, r *rig, f *figures) error {
	waits, err := gateWaits(ctx, r, "prompt", "[class.low]\nquiet = \"0s\"\n", gateRounds)
	if err != nil {
		return err
	}
	f.value("p50_us", "us", quantile(waits, 0.5), len(waits))
	f.value("p99_us", "us", quantile(waits, 0.99), len(waits))
	f.value("min_us", "us", slices.Min(waits), len(waits))
	f.value("max_us", "us", slices.Max(waits), len(waits))
	if waits, err = gateWaits(ctx, r, "default", "", gateRounds/5); err != nil {
		return err
	}
	f.value("default_quiet_p50_us", "us", quantile(waits, 0.5), len(waits))
	f.value("default_quiet_p99_us", "us", quantile(waits, 0.99), len(waits))
	f.limit("p99_us", 50, "on an idle machine with two processors")
	return nil
}

func gateWaits(ctx context.Context, r *rig, name, config string, rounds int) ([]float64, error) {
	d, err := r.startDaemon(ctx, name, config)
	if err != nil {
		return nil, err
	}
	defer d.kill()
	path := filepath.Join(r.dir, name+".shared")
	if err := os.WriteFile(path, make([]byte, gateSharedBytes), 0o600); err != nil {
		return nil, err
	}
	procs := make(map[string]*proc)
	for role, class := range map[string]string{"holder": "high", "held": "low"} {
		p, err := r.client(role, d.of(r, class), nil, "gate", role, path, strconv.Itoa(rounds))
		if err != nil {
			return nil, err
		}
		defer p.kill()
		if line, err := p.line(); err != nil || line != "ready" {
			return nil, fmt.Errorf("%s: said %q: %w", role, line, err)
		}
		procs[role] = p
	}
	if err := d.awaitGates(ctx, "yielded to", "yielding"); err != nil {
		return nil, err
	}
	if err := giveTheWord(path); err != nil {
		return nil, err
	}
	waits := make([]float64, 0, rounds)
	for range rounds {
		line, err := procs["holder"].line()
		if err != nil {
			return nil, err
		}
		ns, err := strconv.ParseFloat(line, 64)
		if err != nil {
			return nil, fmt.Errorf("holder: said %q: %w", line, err)
		}
		waits = append(waits, ns/1000)
	}
	return waits, nil
}

// giveTheWord lets the two begin.
func giveTheWord(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer file.Close() // nothing is buffered
	_, err = file.WriteAt(binary.NativeEndian.AppendUint32(nil, 1), gateGoOffset)
	return err
}
