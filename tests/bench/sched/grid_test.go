package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heddle-project/heddle/runtime/sched"
	"github.com/heddle-project/heddle/runtime/sim"
	"github.com/heddle-project/heddle/tests/bench/kernels"
)

// workload is n kernels of equal time on the whole device.
func workload(name string, n int, t time.Duration) sim.Workload {
	w := sim.Workload{Name: name}
	for range n {
		w.Kernels = append(w.Kernels, sim.Kernel{Name: "k", Time: t, SMs: 132})
	}
	return w
}

func TestCells(t *testing.T) {
	set := &kernels.Set{Services: make([]kernels.Table, 2), Trainings: make([]kernels.Table, 3)}
	for i := range set.Services {
		set.Services[i].Workload = workload("service", 10, time.Millisecond)
	}
	for i := range set.Trainings {
		set.Trainings[i].Workload = workload("training", 10, time.Millisecond)
	}
	all := cells(set)
	if want := 2 * 2 * len(loads()) * 3 * 2; len(all) != want {
		t.Fatalf("%d cells, want %d", len(all), want)
	}
	for _, c := range all {
		if len(c.clients) != 1+c.Trainers || c.clients[0].Arrivals == nil || c.clients[1].Arrivals != nil || c.clients[0].Class >= c.clients[1].Class {
			t.Errorf("%s: %d clients, not one service and its trainers", c.Name, len(c.clients))
		}
	}
}

func TestACellsBarDependsOnTheRequest(t *testing.T) {
	training := workload("training", 1, time.Millisecond)
	for _, tt := range []struct {
		kernels int
		want    float64
	}{{4, 1.04}, {5, 1.02}, {50, 1.02}} {
		c := newCell(true, workload("service", tt.kernels, time.Millisecond), load{part: 0.5}, training, 1)
		if c.Limit != tt.want {
			t.Errorf("a request of %d ms has a bar of %g, want %g", tt.kernels, c.Limit, tt.want)
		}
	}
}

func TestRequestsComeAtTheLoadOfACell(t *testing.T) {
	c := newCell(true, workload("service", 10, time.Millisecond), load{part: 0.5}, workload("training", 1, time.Millisecond), 1)
	arrivals := c.clients[0].Arrivals(1)
	at := uint64(0)
	for range 20_000 {
		at = arrivals.Next(at, at)
	}
	if got := float64(at) / 20_000 / 1e6; got < 19.5 || got > 20.5 {
		t.Errorf("a request of 10 ms comes every %.2f ms at half of capacity", got)
	}
	c = newCell(true, workload("service", 10, time.Millisecond), pausing(3*time.Millisecond), workload("training", 1, time.Millisecond), 1)
	if w := c.clients[0].Workload; w.SyncEvery != 25 || w.HostTime != 3*time.Millisecond || !strings.Contains(c.Name, "pauses of 3ms") {
		t.Errorf("%s: waits after %d kernels and pauses for %v", c.Name, w.SyncEvery, w.HostTime)
	}
}

// Every variant must differ from the whole policy somewhere, else it shows nothing. Here they are
// made, and those that must hurt are seen to.
func TestVariantsTakeAwayWhatTheySay(t *testing.T) {
	if _, err := newVariant("- everything", sched.DefaultSettings()); err == nil {
		t.Error("an unknown variant is made")
	}
	names := map[string]bool{}
	without := map[sched.Without]bool{}
	for _, v := range variants() {
		if _, err := newVariant(v.name, sched.DefaultSettings()); err != nil || names[v.name] {
			t.Errorf("variant %s: %v", v.name, err)
		}
		if v.policy == "heddle" && without[v.without] {
			t.Errorf("%s takes away what another does", v.name)
		}
		names[v.name], without[v.without] = true, true
	}

	training := workload("training", 100, 60*time.Microsecond)
	for i := 0; i < len(training.Kernels); i += 10 {
		training.Kernels[i].Time = 1250 * time.Microsecond
	}
	c := newCell(true, workload("service", 150, 40*time.Microsecond), pausing(1500*time.Microsecond), training, 2)
	o := &options{gpu: "H100", duration: 500 * time.Millisecond, seeds: 1}
	if err := c.play(context.Background(), o, []string{"heddle", "- margin", "- filling", "none"}, newVariant); err != nil {
		t.Fatal(err)
	}
	heddle := c.row("heddle")
	if r := c.row("- margin"); r.Share > heddle.Share*3/4 {
		t.Errorf("with the margin of the class training gets %.3f, by what was measured %.3f", r.Share, heddle.Share)
	}
	if r := c.row("- filling"); r.P99.OfAlone < heddle.P99.OfAlone+0.02 {
		t.Errorf("without filling p99 is %.3f, with it %.3f", r.P99.OfAlone, heddle.P99.OfAlone)
	}
	var out bytes.Buffer
	c.printVariants(&out)
	if got := out.String(); strings.Count(got, "\n") != 5 || !strings.Contains(got, "\n  - margin ") {
		t.Error(got)
	}
}

func TestTheResultIsWritten(t *testing.T) {
	c := judged(row("heddle", 1, 1, 0.5, 0.96))
	r := result{Source: "here", GPU: "H100", Seeds: 5, Cells: []*cell{c}, Ablation: []*cell{c}}
	r.sum()
	path := filepath.Join(t.TempDir(), "bench", "sched.json")
	if err := r.write(path); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var again result
	if err := json.Unmarshal(text, &again); err != nil || again.Bars != 4 || len(again.Cells) != 1 || again.Cells[0].Report.Rows[0].Share != 0.5 || len(again.Ablation) != 1 {
		t.Errorf("%v: %s", err, text)
	}
}
