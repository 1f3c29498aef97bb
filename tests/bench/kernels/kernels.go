// Package kernels finds the kernel tables that the benches play: those of ../shared/data/kernels (or of
// $HEDDLE_SHARED/data/kernels) where they are, else the workloads that come with the player.
package kernels

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/heddle-project/heddle/runtime/sim"
)

// Set is what a bench makes its cells of.
type Set struct {
	Source    string // for people
	Services  []Table
	Trainings []Table
}

// Table is a workload and the file that it is from.
type Table struct {
	sim.Workload
	Path string
}

// Load reads the tables. It is called in the top folder of the repository.
func Load() (*Set, error) {
	if folder := shared(); folder != "" {
		return read("../shared/data/kernels", folder,
			[]string{"resnet50_4_fwd.csv", "mobilenetv2_4_fwd.csv"},
			[]string{"resnet50_32_fb1.csv", "mobilenetv2_64_fb1.csv", "resnet101_32_fb1.csv"})
	}
	folder := filepath.Join("tests", "play", "workloads")
	return read(folder, folder, []string{"inference.csv", "small-inference.csv"}, []string{"training.csv", "small-training.csv"})
}

// shared looks for the folder beside the repository, or any folder above it.
func shared() string {
	if shared := os.Getenv("HEDDLE_SHARED"); shared != "" {
		return filepath.Join(shared, "data", "kernels")
	}
	dir, err := filepath.Abs(".")
	for err == nil && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		folder := filepath.Join(dir, "shared", "data", "kernels")
		if _, err := os.Stat(folder); err == nil {
			return folder
		}
	}
	return ""
}

func read(source, folder string, services, trainings []string) (*Set, error) {
	folder, err := filepath.Abs(folder) // who plays a table may do so in a folder of its own
	if err != nil {
		return nil, err
	}
	s := &Set{Source: source}
	for _, list := range []struct {
		names []string
		to    *[]Table
	}{{services, &s.Services}, {trainings, &s.Trainings}} {
		for _, name := range list.names {
			t, err := readTable(filepath.Join(folder, name))
			if err != nil {
				return nil, err
			}
			*list.to = append(*list.to, t)
		}
	}
	return s, nil
}

func readTable(path string) (Table, error) {
	f, err := os.Open(path)
	if err != nil {
		return Table{}, err
	}
	defer f.Close() // read only
	name := filepath.Base(path)
	list, err := sim.ReadTable(name, f)
	if err != nil {
		return Table{}, err
	}
	return Table{Workload: sim.Workload{Name: strings.TrimSuffix(name, filepath.Ext(name)), Kernels: list}, Path: path}, nil
}
