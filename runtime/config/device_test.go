package config

import (
	"strings"
	"testing"
	"time"
)

func TestDevicesGetThePolicyOfTheFirstRuleThatMatches(t *testing.T) {
	l, err := load(t, `version = 1
[scheduling]
policy = "priority"
[[device]]
match = ["GPU-11111111-0000-4000-8000-00000000000a", "NVIDIA A100*"]
policy = "timeslice"
[[device]]
match = "* MIG 1g.*"
policy = "none"
`, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ uuid, name, want, origin string }{
		{"GPU-11111111-0000-4000-8000-00000000000A", "NVIDIA H100", "timeslice", "file:4"},
		{"GPU-22222222-0000-4000-8000-00000000000a", "NVIDIA A100-SXM4-80GB", "timeslice", "file:4"},
		{"MIG-33333333-0000-4000-8000-00000000000a", "NVIDIA H100 MIG 1g.10gb", "none", "file:7"},
		{"GPU-44444444-0000-4000-8000-00000000000a", "NVIDIA H100", "priority", ""},
	} {
		if got, origin := l.PolicyFor(test.uuid, test.name); got != test.want || origin != test.origin {
			t.Errorf("%s %s: %s from %q, want %s from %q", test.uuid, test.name, got, origin, test.want, test.origin)
		}
	}
	again, err := load(t, l.TOML(), nil)
	if err != nil || len(again.Devices) != 2 || again.Devices[0].Policy != "timeslice" || len(again.Devices[0].Match) != 2 {
		t.Errorf("the dump reads back as %+v, %v", again, err)
	}
}

func TestADeviceRuleMustMakeSense(t *testing.T) {
	_, err := load(t, `version = 1
[[device]]
match = "["
[[device]]
policy = "fair"
[[device]]
match = "GPU-1"
policy = "unfair"
colour = "red"
`, nil)
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		"heddled.toml:2: device.0.policy: not set",
		`heddled.toml:3: device.0.match: "[" is neither a UUID nor a pattern of a model's name`,
		"heddled.toml:7: device.2.match: never reached: device.1 matches every device",
		`heddled.toml:8: device.2.policy: "unfair" is not one of`,
		"heddled.toml:9: device.2.colour: unknown key",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in:\n%v", want, err)
		}
	}
}

func TestObjectivesAreSlowdownsOrLatencies(t *testing.T) {
	l, err := load(t, `version = 1
[[rule]]
user = "a"
slo = "5%"
[[rule]]
user = "b"
slo = "20ms"
[[rule]]
user = "c"
`, nil)
	if err != nil {
		t.Fatal(err)
	}
	if o := l.Rules[0].SLO; o == nil || o.Slowdown != 0.05 || o.Latency != 0 {
		t.Errorf("5%% is %+v", o)
	}
	if o := l.Rules[1].SLO; o == nil || o.Latency != 20*time.Millisecond {
		t.Errorf("20ms is %+v", o)
	}
	if o := l.Rules[2].SLO; o != nil {
		t.Errorf("nothing is %+v", o)
	}
	again, err := load(t, l.TOML(), nil)
	if err != nil || *again.Rules[0].SLO != *l.Rules[0].SLO || *again.Rules[1].SLO != *l.Rules[1].SLO {
		t.Errorf("the dump reads back otherwise: %v\n%s", err, l.TOML())
	}
	for _, bad := range []string{`"fast"`, `20`, `"-1%"`, `"1us"`, `"2000%"`, `"NaN%"`} {
		if _, err := load(t, "version = 1\n[[rule]]\nslo = "+bad+"\n", nil); err == nil || !strings.Contains(err.Error(), "rule.0.slo") {
			t.Errorf("slo = %s: %v", bad, err)
		}
	}
}
