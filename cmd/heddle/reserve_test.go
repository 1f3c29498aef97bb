package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReserve(t *testing.T) {
	const header = " PID  PERIOD  BUDGET  DEADLINE  RESPONSE  MAX BLOCK  STATE  GPU\n"
	tests := []struct {
		name  string
		args  []string
		want  result
		calls []string
	}{
		{
			"a list", nil,
			result{stdout: " PID  PERIOD  BUDGET  DEADLINE  RESPONSE  MAX BLOCK  STATE                                                         GPU\n" +
				"4242    20ms     2ms      10ms       3ms          -  kept                                                          " + uuidA + "\n" +
				"4711      1s     1ms        1s        2s      500µs  at risk: client 3 is in class realtime without a reservation  " + uuidB + "\n"},
			nil,
		},
		{
			"a promise", []string{"--pid", "4242", "--period", "20ms", "--budget", "2ms", "--device", "0"},
			result{stdout: header + "4242    20ms     2ms      20ms       3ms          -  kept   " + uuidA + "\n"},
			[]string{"reserve 4242 " + uuidA + " 2ms false"},
		},
		{
			"a release", []string{"--pid", "4242", "--release"},
			result{stdout: "process 4242: released\n"}, []string{"reserve 4242  0s true"},
		},
		{
			"a release as JSON", []string{"--pid", "4242", "--release", "--json"},
			result{stdout: "{\n  \"reservations\": []\n}\n"}, []string{"reserve 4242  0s true"},
		},
		{
			"a refusal", []string{"--pid", "4242", "--period", "20s", "--budget", "2s"},
			result{code: 1, stderr: "heddle reserve: deadlines cannot be promised: too much\n"}, nil,
		},
		{"no process", []string{"--period", "2ms"}, result{code: 2, stderr: "heddle reserve: give --pid\n"}, nil},
		{"half", []string{"--pid", "1", "--period", "2ms"}, result{code: 2, stderr: "heddle reserve: a reservation needs --period and --budget\n"}, nil},
		{
			"nothing", []string{"--pid", "1", "--period", "2ms", "--budget", "0s"},
			result{code: 2, stderr: "heddle reserve: --budget 0s: must be more than zero\n"}, nil,
		},
		{
			"both", []string{"--pid", "1", "--period", "2ms", "--release"},
			result{code: 2, stderr: "heddle reserve: give --release or a reservation, not both\n"}, nil,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := startFake(t, true)
			got := invoke(t, d.env(), screen{}, append([]string{"reserve"}, tt.args...)...)
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(result{})); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.calls, d.changes()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
