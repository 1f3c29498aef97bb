package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/heddle-project/heddle/runtime/profiles"
	"github.com/heddle-project/heddle/runtime/sim"
)

// workloadSpec is FILE[@KIND[:VALUE]][*COUNT], taken apart.
type workloadSpec struct {
	file        string
	kind, value string // of its arrivals, empty = a training job
	count       int
}

func parseWorkload(text string) (workloadSpec, error) {
	s := workloadSpec{file: text, count: 1}
	if i := strings.LastIndexByte(text, '*'); i >= 0 {
		n, err := strconv.Atoi(text[i+1:])
		if err != nil || n < 1 || n > simMaxClients {
			return s, fmt.Errorf("%s is not a number of copies from 1 to %d", text[i:], simMaxClients)
		}
		s.file, s.count = text[:i], n
	}
	if i := strings.LastIndexByte(s.file, '@'); i >= 0 {
		s.kind, s.value, _ = strings.Cut(s.file[i+1:], ":")
		s.file = s.file[:i]
		switch s.kind {
		case "poisson", "load", "closed", "every", "trace":
		default:
			return s, fmt.Errorf("%s is not poisson, load, closed, every or trace", strconv.Quote(s.kind))
		}
	}
	if s.file == "" {
		return s, errors.New("no file is named")
	}
	return s, nil
}

// readWorkload makes the clients that a specification describes, for a GPU of the catalogue.
func readWorkload(text, gpu string, class int) ([]sim.Client, error) {
	s, err := parseWorkload(text)
	if err != nil {
		return nil, err
	}
	c := sim.Client{Class: class, Weight: 100}
	if c.Workload, err = readKernels(s.file, gpu); err != nil {
		return nil, err
	}
	c.Name = c.Workload.Name
	if c.Arrivals, err = s.arrivals(&c.Workload); err != nil {
		return nil, err
	}
	clients := make([]sim.Client, s.count)
	for i := range clients {
		clients[i] = c
	}
	return clients, nil
}

// workloadMost bounds what is read of a file.
const workloadMost = 64 << 20

// readKernels reads a table of kernels or an exported profile, which begins as every JSON object does.
func readKernels(file, gpu string) (sim.Workload, error) {
	f, err := openWorkload(file, shippedFolders())
	if err != nil {
		return sim.Workload{}, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, workloadMost+1))
	switch {
	case err != nil:
		return sim.Workload{}, errors.New(plainErrno(err))
	case len(content) > workloadMost:
		return sim.Workload{}, fmt.Errorf("larger than %d MiB", workloadMost>>20)
	}
	if !bytes.HasPrefix(bytes.TrimLeft(content, " \t\r\n"), []byte("{")) {
		kernels, err := sim.ReadTable(file, bytes.NewReader(content))
		return sim.Workload{Name: shortName(file), Kernels: kernels}, err
	}
	profile, err := profiles.Import(content)
	if err != nil {
		return sim.Workload{}, fmt.Errorf("%s: %w", file, err)
	}
	w, err := sim.FromProfile(profile, gpu)
	w.Name = shortName(file)
	return w, err
}

// openWorkload opens a file, or the workload of that name in the first of the folders that has it.
func openWorkload(file string, shipped []string) (*os.File, error) {
	f, err := os.Open(file)
	if err == nil {
		return f, nil
	}
	missing := errors.New(plainErrno(err))
	if !errors.Is(err, fs.ErrNotExist) || strings.ContainsRune(file, filepath.Separator) {
		return nil, missing
	}
	for _, folder := range shipped {
		if f, err := os.Open(filepath.Join(folder, file+".csv")); err == nil {
			return f, nil
		}
	}
	if names := workloadsIn(shipped); len(names) > 0 {
		missing = fmt.Errorf("%w; the shipped workloads are %s", missing, strings.Join(names, ", "))
	}
	return nil, missing
}

// shippedFolders are the places where the workloads that came with heddle may be.
func shippedFolders() []string {
	self, err := selfFolder()
	if err != nil {
		return nil
	}
	return workloadPlaces(self, "", "")
}

// workloadsIn names the workloads of the first folder that has any.
func workloadsIn(folders []string) (names []string) {
	for _, folder := range folders {
		tables, _ := filepath.Glob(filepath.Join(folder, "*.csv"))
		for _, table := range tables {
			names = append(names, shortName(table))
		}
		if len(names) > 0 {
			break
		}
	}
	return names
}

// Bounds of arrivals: above them the queue only grows, or nothing ever comes.
const (
	rateMax = 1e6 // per second
	loadMax = 10
)

func (s *workloadSpec) arrivals(w *sim.Workload) (func(uint64) sim.Arrivals, error) {
	number := func(what string, limit float64) (float64, error) {
		f, err := strconv.ParseFloat(s.value, 64)
		if err != nil || !(f > 0 && f <= limit) {
			return 0, fmt.Errorf("%s %q: want a number above 0, up to %g", what, s.value, limit)
		}
		return f, nil
	}
	period := func() (time.Duration, error) {
		d, err := time.ParseDuration(s.value)
		if err != nil || d <= 0 || d > simMaxDuration {
			return 0, fmt.Errorf(`%q: want a duration above 0, such as "20ms"`, s.value)
		}
		return d, nil
	}
	switch s.kind {
	case "":
		return nil, nil
	case "poisson":
		rate, err := number("rate", rateMax)
		return sim.Poisson(rate), err
	case "load":
		load, err := number("load", loadMax)
		if err == nil && w.Time() == 0 {
			err = errors.New("kernels that take no time have no load")
		}
		return sim.Poisson(load / w.Time().Seconds()), err
	case "closed":
		if s.value == "" {
			return sim.Closed(0), nil
		}
		think, err := period()
		return sim.Closed(think), err
	case "every":
		d, err := period()
		return sim.Gaps([]time.Duration{d}), err
	default: // trace
		f, err := os.Open(s.value)
		if err != nil {
			return nil, fmt.Errorf("%s: %s", s.value, plainErrno(err))
		}
		defer f.Close()
		gaps, err := sim.ReadGaps(s.value, f)
		if err != nil {
			return nil, err
		}
		return sim.Gaps(gaps), nil
	}
}

// parseSLO reads "2%" as 1.02, and "0%" as none.
func parseSLO(text string) (float64, error) {
	digits, ok := strings.CutSuffix(text, "%")
	f, err := strconv.ParseFloat(digits, 64)
	if !ok || err != nil || !(f >= 0 && f <= 1000) {
		return 0, errors.New(`want a percentage from 0% to 1000%, such as "2%"`)
	}
	if f == 0 {
		return 0, nil
	}
	return 1 + f/100, nil
}
