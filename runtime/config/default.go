package config

import (
	"path/filepath"
	"strings"
	"time"
)

// System is what the defaults depend on.
type System struct {
	EffectiveUID int
	Environ      []string // as os.Environ gives it
}

func (s System) getenv(name string) string {
	for _, kv := range s.Environ {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value
		}
	}
	return ""
}

// SystemFile is where a system-wide heddled looks for its configuration.
const SystemFile = "/etc/heddle/heddled.toml"

// Default returns the configuration of an empty file. For another user than
// root the paths lie in the XDG folders; APISocket and AttachDir stay empty
// if there is no XDG_RUNTIME_DIR, which Validate reports.
func Default(sys System) Config {
	cfg := Config{
		// The group exists only where the package made it. Without it, root
		// and heddled's own user administer.
		AdminGroup: "heddle",
		// What a person wants to know tomorrow, in a form that journald and a
		// terminal both show well.
		Log: Log{Level: "info", Format: "text"},
		Clients: Clients{
			// A client costs heddled four descriptors and some 20 KiB of mapped
			// memory; 1024 of them stay far inside common limits.
			Max: 1024,
			// One user cannot take all the places.
			MaxPerUser: 768,
			// The interposer sends its HELLO right after connecting. A second
			// is far more than a loaded machine needs and short enough that
			// idle connections do not pile up.
			HandshakeTimeout: time.Second,
		},
		Scheduling: Scheduling{
			// All that is known against all that is in the way. What it does not know
			// of a workload yet it treats as "priority" does.
			Policy: "heddle",
			// A lost daemon must never stop anybody's work unless asked to.
			Fail: FailOpen,
			// The middle, so that rules and hints can go both ways.
			Priority: 5,
			// A round number with room on both sides of it.
			Weight: 100,
			// Short against a request, long against what it costs to look at all
			// clients.
			Interval: 2 * time.Millisecond,
			// A measured launch costs some microseconds. Of a request with a hundred
			// kernels this measures one.
			Measure: 100,
			// nvshare's own default is 30 s; a tenth of a second is kinder to
			// latency and still hides what a switch costs.
			Quantum: 100 * time.Millisecond,
			// What users notice is above it.
			SLO: 0.02,
		},
	}
	for class := range cfg.Classes {
		cfg.Classes[class] = defaultClass(class)
	}
	defaultPaths(&cfg, sys)
	return cfg
}

func defaultClass(class int) Class {
	c := Class{
		// A kernel of a training step takes some 10 to 500 us; guessing in the
		// upper half keeps the window honest for long kernels and costs short
		// ones little, because the window holds several.
		Estimate: 200 * time.Microsecond,
		// A higher-class client waits for at most this much of our work. It is
		// two kernels of the default estimate: one running, one queued behind
		// it, so that the device has no gap between them.
		Window: 400 * time.Microsecond,
		// Inside one request, kernels follow each other in some 10 us even when
		// the host does a little work in between; requests are milliseconds
		// apart. Ten times the former is still small against the latter.
		Quiet: 100 * time.Microsecond,
		// A higher class that never falls idle must not stop a lower one for
		// good: one launch a second keeps connections and watchdogs alive.
		MaxHold: time.Second,
		// Kernel times repeat within a few percent; 10 % covers clock changes.
		Margin: 0.1,
		// A wake-up takes some 15 us: there must be more of the gap left than it.
		MinGap: 50 * time.Microsecond,
		// A kernel or two of a training job.
		Beside: 200 * time.Microsecond,
		// Longer than nearly every kernel; a dead holder costs its class this much.
		Token: 5 * time.Millisecond,
	}
	if class >= 7 {
		// Batch work waits for longer pauses: it wants throughput, and every
		// start of it inside a busy phase of its betters costs them.
		c.Quiet = 200 * time.Microsecond
	}
	if class == Classes-1 {
		// The idle class promised nothing.
		c.MaxHold = 10 * time.Second
	}
	return c
}

func defaultPaths(cfg *Config, sys System) {
	if sys.EffectiveUID == 0 {
		cfg.APISocket = "/run/heddle/heddled.sock"
		cfg.AttachDir = "/run/heddle/attach"
		cfg.StateDir = "/var/lib/heddle"
		return
	}
	if run := sys.getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(run) {
		cfg.APISocket = filepath.Join(run, "heddle", "heddled.sock")
		cfg.AttachDir = filepath.Join(run, "heddle", "attach")
	}
	if state := sys.getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		cfg.StateDir = filepath.Join(state, "heddle")
	} else if home := sys.getenv("HOME"); filepath.IsAbs(home) {
		cfg.StateDir = filepath.Join(home, ".local", "state", "heddle")
	}
}

// DefaultFile is the configuration file that is read, if it exists, when none
// is named.
func DefaultFile(sys System) string {
	if sys.EffectiveUID == 0 {
		return SystemFile
	}
	if dir := sys.getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "heddle", "heddled.toml")
	}
	if home := sys.getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".config", "heddle", "heddled.toml")
	}
	return SystemFile
}
