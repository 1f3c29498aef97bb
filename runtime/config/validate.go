package config

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"time"
)

// Bounds that heddled's other parts rely on.
const (
	// sunPathMax is the longest path that a unix socket address holds.
	sunPathMax = 107
	// durationMax is the longest duration that the gate takes seriously.
	durationMax = 1000 * time.Second
	// WeightMax is the largest weight.
	WeightMax  = 10000
	clientsMax = 1 << 16
	marginMax  = 10 // 1000 %, the gate's own bound
	measureMax = 1_000_000
	sloMax     = 10 // 1000 %: beyond it nobody has an objective
)

// AttachSocket is the name of the socket inside attach_dir.
const AttachSocket = "attach.sock"

// Validate reports every problem of the values as one error of type Problems.
func (c *Config) Validate() error {
	return validate(c).orNil()
}

// checker gathers problems; its methods are the checks that several keys share.
type checker struct{ problems Problems }

func (k *checker) fail(key, format string, args ...any) {
	k.problems = append(k.problems, Problem{Key: key, Text: fmt.Sprintf(format, args...)})
}

func (k *checker) path(key, path, missing string) bool {
	if path == "" {
		k.fail(key, "%s", missing)
		return false
	}
	if !filepath.IsAbs(path) {
		k.fail(key, "%s is not an absolute path", quote(path))
		return false
	}
	return true
}

func (k *checker) socket(key, path string) {
	if len(path) > sunPathMax {
		k.fail(key, "%s is %d bytes long; a unix socket's path has at most %d",
			quote(path), len(path), sunPathMax)
	}
}

func (k *checker) between(key string, n, low, high int) {
	if n < low || n > high {
		k.fail(key, "%d is not between %d and %d", n, low, high)
	}
}

func (k *checker) duration(key string, d, low, high time.Duration) {
	if d < low || d > high {
		k.fail(key, "%v is not between %v and %v", d, low, high)
	}
}

func (k *checker) class(key string, n int) { k.between(key, n, 0, Classes-1) }

func validate(c *Config) Problems {
	var k checker
	const runtimeDir = "not set, and there is no XDG_RUNTIME_DIR to put it in: set one of the two"
	if k.path("api_socket", c.APISocket, runtimeDir) {
		k.socket("api_socket", c.APISocket)
	}
	if k.path("attach_dir", c.AttachDir, runtimeDir) {
		k.socket("attach_dir", filepath.Join(c.AttachDir, AttachSocket))
	}
	k.path("state_dir", c.StateDir, "not set, and there is no XDG_STATE_HOME or HOME to put it in: set one of them")
	if c.NVMLLibrary != "" {
		k.path("nvml_library", c.NVMLLibrary, "")
	}
	k.between("clients.max", c.Clients.Max, 1, clientsMax)
	k.between("clients.max_per_user", c.Clients.MaxPerUser, 1, clientsMax)
	k.duration("clients.handshake_timeout", c.Clients.HandshakeTimeout, 10*time.Millisecond, time.Minute)
	k.class("scheduling.priority", c.Scheduling.Priority)
	k.between("scheduling.weight", c.Scheduling.Weight, 1, WeightMax)
	// Planning costs heddled some microseconds for each client.
	k.duration("scheduling.interval", c.Scheduling.Interval, 500*time.Microsecond, time.Second)
	k.between("scheduling.measure", c.Scheduling.Measure, 0, measureMax)
	k.duration("scheduling.quantum", c.Scheduling.Quantum, time.Millisecond, durationMax)
	k.slowdown("scheduling.slo", c.Scheduling.SLO)
	for n := range c.Classes {
		k.classParameters("class."+ClassName(n)+".", c.Classes[n])
	}
	k.devices(c.Devices)
	k.rules(c.Rules, c.Scheduling.Weight)
	return k.problems
}

func (k *checker) classParameters(path string, c Class) {
	k.duration(path+"window", c.Window, 0, durationMax)
	// Zero would make every launch free, and with it the window boundless.
	k.duration(path+"estimate", c.Estimate, time.Microsecond, durationMax)
	k.duration(path+"quiet", c.Quiet, 0, durationMax)
	k.duration(path+"max_hold", c.MaxHold, time.Millisecond, durationMax)
	k.duration(path+"min_gap", c.MinGap, 0, durationMax)
	k.duration(path+"beside", c.Beside, 0, durationMax)
	k.duration(path+"token", c.Token, 0, durationMax)
	k.duration(path+"max_block", c.MaxBlock, 0, durationMax)
	if math.IsNaN(c.Keep) || c.Keep < 0 || c.Keep > 1 {
		k.fail(path+"keep", "%v%% is not between 0%% and 100%%", c.Keep*100)
	}
	if math.IsNaN(c.Margin) || c.Margin < 0 || c.Margin > marginMax {
		k.fail(path+"margin", "%v is not between 0 and %d", c.Margin, marginMax)
	}
}

func (k *checker) rules(rules []Rule, inherited int) {
	everything := ""
	for i := range rules {
		r := &rules[i]
		at := fmt.Sprintf("rule.%d.", i)
		if everything != "" {
			k.fail(at+"tenant", "never reached: %s matches every client", everything)
		}
		if len(r.Users)+len(r.Groups)+len(r.Cgroups)+len(r.Executables) == 0 && everything == "" {
			everything = fmt.Sprintf("rule.%d", i)
		}
		if r.Refuse {
			continue
		}
		k.class(at+"priority", r.Priority)
		k.class(at+"max_priority", r.MaxPriority)
		if r.Priority < r.MaxPriority {
			k.fail(at+"priority", "%s is more urgent than max_priority, %s",
				ClassName(r.Priority), ClassName(r.MaxPriority))
		}
		k.objective(at+"slo", r.SLO)
		// A weight that the rule took from [scheduling] is judged there, once.
		if r.Weight != inherited {
			k.between(at+"weight", r.Weight, 1, WeightMax)
		}
		if strings.ContainsAny(r.Tenant, " \t\r\n") || len(r.Tenant) > 63 {
			k.fail(at+"tenant", "%s has spaces or more than 63 bytes", quote(r.Tenant))
		}
	}
}
