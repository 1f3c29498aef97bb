package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

const (
	attachSingles = 50
	attachCrowd   = 500
	// How many are there, then slots of three times: see client/attach.c.
	attachHeaderBytes = 8
	attachSlotBytes   = 24
)

// attachTimes is what one client took, from the common start or its own.
type attachTimes struct {
	begun, initialised, done uint64
}

// benchAttach measures clients one after the other and many at once, bare and
// attached. A time is from before the driver is opened until a context is
// there, so a bare client's is the part that is not Heddle's.
func benchAttach(ctx context.Context, r *rig, f *figures) error {
	d, err := r.startDaemon(ctx, "daemon", "")
	if err != nil {
		return err
	}
	var bare, attached []float64
	for range attachSingles {
		for _, way := range []struct {
			env     []string
			samples *[]float64
		}{{r.bare(), &bare}, {d.of(r, "normal"), &attached}} {
			c, err := r.crowd(ctx, 1, way.env, nil)
			if err != nil {
				return err
			}
			t := c.times[0]
			*way.samples = append(*way.samples, float64(t.done-t.begun)/1e6)
		}
	}
	f.add("bare_ms", "ms", bare)
	f.value("p50_ms", "ms", quantile(attached, 0.5), len(attached))
	f.value("p99_ms", "ms", quantile(attached, 0.99), len(attached))

	c, err := r.crowd(ctx, attachCrowd, r.bare(), nil)
	if err != nil {
		return err
	}
	f.value("bare_500_s", "s", c.total(), attachCrowd)
	c, err = r.crowd(ctx, attachCrowd, d.of(r, "normal"), func() error { return d.awaitClients(ctx, attachCrowd) })
	if err != nil {
		return err
	}
	f.value("total_500_s", "s", c.total(), attachCrowd)
	f.limit("p50_ms", 2, "one client")
	f.limit("total_500_s", 2, "500 at once")
	return nil
}

// crowd is a number of clients that began together.
type crowd struct {
	start uint64
	times []attachTimes
}

// total is the time from the start until the last one was done, in seconds.
func (c *crowd) total() float64 {
	last := c.start
	for _, t := range c.times {
		last = max(last, t.done)
	}
	return float64(last-c.start) / 1e9
}

// crowd starts n clients, gives them one start, waits until all are done and
// lets them go again. check looks at them while all are there.
func (r *rig) crowd(ctx context.Context, n int, env []string, check func() error) (*crowd, error) {
	path := filepath.Join(r.dir, "crowd.shared")
	page, err := mapFile(path, attachHeaderBytes+n*attachSlotBytes)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Munmap(page) }() // it was mapped, so it can be unmapped
	first := len(r.procs)
	defer r.drop(first)
	// All wait for the end of one pipe: closing it is one moment for everybody.
	gate, open, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer gate.Close() // a second close of either end does nothing
	defer open.Close()
	for slot := range n {
		if _, err := r.client("crowd", env, []*os.File{gate}, "attach", path, strconv.Itoa(slot)); err != nil {
			return nil, err
		}
	}
	if err := await(ctx, "all processes are there", func() error {
		if have := int(binary.NativeEndian.Uint64(page)); have != n {
			return fmt.Errorf("%d of %d", have, n)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	c := &crowd{start: now()}
	if err := open.Close(); err != nil {
		return nil, err
	}
	if err := await(ctx, "all clients are done", func() error {
		c.times = readTimes(page, n)
		for slot, t := range c.times {
			if t.done == 0 {
				return fmt.Errorf("client %d is not%s", slot, r.procs[first+slot].said())
			}
		}
		return nil
	}); err != nil {
		return nil, err
	}
	if check != nil {
		return c, check()
	}
	return c, nil
}

func readTimes(page []byte, n int) []attachTimes {
	out := make([]attachTimes, n)
	for slot := range out {
		at := page[attachHeaderBytes+slot*attachSlotBytes:]
		out[slot] = attachTimes{
			begun:       binary.NativeEndian.Uint64(at),
			initialised: binary.NativeEndian.Uint64(at[8:]),
			done:        binary.NativeEndian.Uint64(at[16:]),
		}
	}
	return out
}

func mapFile(path string, size int) ([]byte, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	defer file.Close() // the mapping stays
	if err := file.Truncate(int64(size)); err != nil {
		return nil, err
	}
	return unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

func now() uint64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err) // the clock is part of the system call interface
	}
	return uint64(t.Nano())
}
