package main

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWrongUseOfProbe(t *testing.T) {
	tests := []struct {
		args   []string
		code   int
		stderr string
	}{
		{nil, 2, "no command given (heddle probe [flags] -- COMMAND [ARG...])"},
		{[]string{"--seconds", "0", "--", "true"}, 2, "--seconds 0: not between 0.1 and 600"},
		{[]string{"--learn", "-1s", "--", "true"}, 2, "--learn -1s: must be more than zero"},
		{[]string{"--channel", "dram,l3", "--", "true"}, 2, `--channel: no channel is called "l3"`},
	}
	for _, tt := range tests {
		d := startFake(t, true)
		got := invoke(t, d.env(), screen{}, append([]string{"probe"}, tt.args...)...)
		want := result{code: tt.code, stderr: "heddle probe: " + tt.stderr + "\n"}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(result{})); diff != "" {
			t.Errorf("%v: %s", tt.args, diff)
		}
		if calls := d.changes(); len(calls) != 0 {
			t.Errorf("%v changed something: %v", tt.args, calls)
		}
	}
}

func TestProbeTable(t *testing.T) {
	rows := []probeRow{
		{Channel: "dram", Kept: true, Slowdown: []float64{1, 1.124, 1.2, 2.5}},
		{Channel: "tensor", Skipped: "the device has no such tensor instruction"},
		{Channel: "l1", Slowdown: []float64{1, 1, 1, 1}},
	}
	var out bytes.Buffer
	if err := probeTable(rows).write(&out, 100, palette{}); err != nil {
		t.Fatal(err)
	}
	want := "CHANNEL    25%    50%    75%   100%  NOTE\n" +
		"dram     1.00x  1.12x  1.20x  2.50x  \n" +
		"tensor       -      -      -      -  the device has no such tensor instruction\n" +
		"l1       1.00x  1.00x  1.00x  1.00x  not used by policies\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}
