package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSetSaysWhatChanged(t *testing.T) {
	tests := []struct {
		name  string
		args  []string
		want  string
		calls []string
	}{
		{
			"a client by id", []string{"--client", "3", "--priority", "idle", "--weight", "7"},
			"client 3, pid 4711, train: priority low -> idle, weight 100 -> 7\n", []string{"client 3"},
		},
		{
			"a client by pid", []string{"--pid", "4242", "-p", "5"},
			"client 1, pid 4242, resnet: priority high -> normal\n", []string{"client 1"},
		},
		{
			"a class without a name", []string{"--client", "3", "-p", "8"},
			"client 3, pid 4711, train: priority low -> 8\n", []string{"client 3"},
		},
		{
			"an objective", []string{"--client", "3", "--slo", "20ms"},
			"client 3, pid 4711, train: slo as the node's -> 20ms\n", []string{"client 3"},
		},
		{
			"no objective", []string{"--client", "1", "--slo", "0%"},
			"client 1, pid 4242, resnet: slo 2% -> none\n", []string{"client 1"},
		},
		{
			"the value that was there", []string{"--client", "3", "--weight", "100"},
			"client 3, pid 4711, train: weight 100 as before\n", []string{"client 3"},
		},
		{
			"a tenant", []string{"--tenant", "research", "--priority", "Low", "--weight", "50"},
			"tenant research (3 clients now): priority low, weight 50\n", []string{"tenant research"},
		},
		{
			"a client back to its configuration", []string{"--client", "3", "--reset"},
			"client 3, pid 4711, train: priority low -> normal, weight 100 as before\n", []string{"client 3", "reset"},
		},
		{
			"a tenant back to its configuration", []string{"--tenant", "research", "--reset"},
			"tenant research (3 clients now): as configured\n", []string{"tenant research", "reset"},
		},
		{
			"json of a reset tenant", []string{"--tenant", "web", "--reset", "--json"},
			"{\n  \"changes\": [],\n  \"clients\": 1\n}\n", []string{"tenant web", "reset"},
		},
		{
			"json", []string{"--client", "3", "--weight", "7", "--json"},
			"{\n  \"changes\": [\n    {\n      \"what\": \"weight\",\n      \"before\": \"100\",\n      \"after\": \"7\"\n    }\n  ],\n  \"clients\": 1\n}\n",
			[]string{"client 3"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := startFake(t, true)
			got := invoke(t, d.env(), screen{}, append([]string{"set"}, tt.args...)...)
			if diff := cmp.Diff(result{stdout: tt.want}, got, cmp.AllowUnexported(result{})); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.calls, d.changes()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
