package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heddle-project/heddle/runtime/sim"
)

// row has latencies, times alone, and the lower class's share, of the device and of the oracle's.
func row(policy string, p50, p99, share, ofOracle float64) sim.Row {
	return sim.Row{
		Policy: policy, P50: sim.Figure{OfAlone: p50}, P99: sim.Figure{OfAlone: p99}, Share: share, OfOracle: ofOracle,
	}
}

// judged is a cell with a bar of 1.02, in which the yardstick reaches 1.01, 1.015 and 0.99.
func judged(rows ...sim.Row) *cell {
	yardstick := row("reactive", 1.01, 1.015, 0.5, 0.99)
	c := &cell{Name: "a cell", Limit: 1.02, Report: &sim.Report{Rows: rows, Reactive: &yardstick, Oracle: 0.5}}
	c.judge()
	return c
}

func TestJudge(t *testing.T) {
	none := row("none", 9, 9, 0.9, 1.8)
	for _, tt := range []struct {
		name   string
		rows   []sim.Row
		missed []string // what does not hold
		line   string   // how the line ends
	}{
		{"all hold", []sim.Row{row("heddle", 1.01, 1.02, 0.5, 0.96), none}, nil, "share 0.500 of oracle 0.960  ok"},
		{"exactly at the bars", []sim.Row{row("heddle", 1.02, 1.02, 0.5, 0.95), none}, nil, "ok"},
		{"p50 does not", []sim.Row{row("heddle", 1.021, 1.02, 0.5, 0.96), none}, []string{"p50"}, "MISSED p50 (yardstick 1.010)"},
		{"p99 does not", []sim.Row{row("heddle", 1.01, 1.03, 0.5, 0.96), none}, []string{"p99"}, "MISSED p99 (yardstick 1.015)"},
		{"the share does not", []sim.Row{row("heddle", 1.01, 1.01, 0.5, 0.94), none}, []string{"share"}, "MISSED share (yardstick 0.990)"},
		{"several do not", []sim.Row{row("heddle", 1.1, 1.1, 0.5, 0.5), none}, []string{"p50", "p99", "share"},
			"MISSED p50 (yardstick 1.010) p99 (yardstick 1.015) share (yardstick 0.990)"},
		{"the lower class gets nothing of what is there", []sim.Row{row("heddle", 1, 1, 0, 0), none}, []string{"share"},
			"share 0.000 of oracle 0.000  MISSED share (yardstick 0.990)"},
		{"another is better in everything", []sim.Row{row("heddle", 1.02, 1.02, 0.5, 0.96), row("orion", 1.01, 1.01, 0.51, 0.97), none},
			[]string{"best"}, "MISSED best (orion)"},
		{"another is better, but not clearly", []sim.Row{row("heddle", 1.012, 1.012, 0.5, 0.96), row("orion", 1.008, 1.008, 0.504, 0.97)}, nil, "ok"},
		{"another is better in two of three", []sim.Row{row("heddle", 1.02, 1.02, 0.5, 0.96), row("orion", 1.01, 1.01, 0.49, 0.95)}, nil, "ok"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := judged(tt.rows...)
			var missed []string
			for _, b := range c.Bars {
				if !b.OK {
					missed = append(missed, b.What)
				}
			}
			if diff := cmp.Diff(tt.missed, missed); diff != "" {
				t.Error(diff)
			}
			var line bytes.Buffer
			c.print(&line)
			if got := strings.TrimSpace(line.String()); !strings.HasPrefix(got, "a cell") || !strings.HasSuffix(got, tt.line) {
				t.Errorf("%q, want its end %q", got, tt.line)
			}
		})
	}
}

func TestWhereThereIsLittleToBeHad(t *testing.T) {
	for _, tt := range []struct {
		name   string
		oracle float64
		pauses bool
		want   string
	}{
		{"pauses inside requests", 0.5, true, "of oracle 0.920  ok"},
		{"idle time between requests", 0.5, false, "of oracle 0.920  MISSED share (yardstick 0.990)"},
		{"nothing", 0.0005, false, "of oracle -  ok"},
	} {
		c := judged(row("heddle", 1, 1, 0.46, 0.92))
		c.Report.Oracle, c.pauses = tt.oracle, tt.pauses
		c.judge()
		var line bytes.Buffer
		c.print(&line)
		if !strings.HasSuffix(strings.TrimSpace(line.String()), tt.want) {
			t.Errorf("%s: %q", tt.name, line.String())
		}
	}
}

func TestEveryBarStandsBesideTheYardstick(t *testing.T) {
	c := judged(row("heddle", 1.005, 1.03, 0.5, 0.96))
	want := []bar{
		{What: "p50", Value: 1.005, Limit: 1.02, OK: true, Yardstick: 1.01},
		{What: "p99", Value: 1.03, Limit: 1.02, Yardstick: 1.015},
		{What: "share", Value: 0.96, Limit: 0.95, OK: true, Yardstick: 0.99},
		{What: "best", Value: 0.5, OK: true},
	}
	if diff := cmp.Diff(want, c.Bars); diff != "" {
		t.Error(diff)
	}
}

func TestACellWithoutTheJudgedPolicyIsAMistake(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("judged all the same")
		}
	}()
	judged(row("none", 1, 1, 1, 1))
}

func TestSum(t *testing.T) {
	r := result{Cells: []*cell{
		{Shared: true, Bars: []bar{{What: "p50", OK: true}, {What: "p99"}, {What: "best", OK: true}}},
		{Shared: true, Bars: []bar{{What: "p50", OK: true}, {What: "p99", OK: true}, {What: "share"}, {What: "best", OK: true}}},
		{Bars: []bar{{What: "p50"}}},
	}}
	r.sum()
	want := map[string][2]int{
		"side by side p50": {2, 2}, "side by side p99": {1, 2}, "side by side share": {0, 1}, "side by side best": {2, 2}, "in turns p50": {0, 1},
	}
	if diff := cmp.Diff(want, r.Held); diff != "" || r.Bars != 8 || r.Missed != 3 {
		t.Errorf("%d bars, %d missed\n%s", r.Bars, r.Missed, diff)
	}
	var out bytes.Buffer
	r.print(&out)
	if got := out.String(); strings.Count(got, "\n") != 8 || !strings.Contains(got, "side by side p99     holds in 1 of 2 cells\n") {
		t.Error(got)
	}
}
