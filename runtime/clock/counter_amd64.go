package clock

import (
	"bytes"
	"os"
)

// ticks reads the time stamp counter, not before earlier instructions are done.
//
//go:noescape
func ticks() uint64

// frequency is 0: the counter of this architecture does not tell its speed to programs.
func frequency() uint64 { return 0 }

// invariant reports whether the counter runs at one speed on all cores and at all times. The
// processor must say so, and the OS kernel, which watches it, must not have given it up.
func invariant() bool {
	cpuinfo, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return false
	}
	sources, err := os.ReadFile("/sys/devices/system/clocksource/clocksource0/available_clocksource")
	if err != nil {
		return false
	}
	return steady(cpuinfo, sources)
}

func steady(cpuinfo, sources []byte) bool {
	return everyProcessorHas(cpuinfo, "constant_tsc", "nonstop_tsc") && hasWord(sources, "tsc")
}

// everyProcessorHas looks into the flags of all processors; no flags at all is a no.
func everyProcessorHas(cpuinfo []byte, flags ...string) bool {
	processors := 0
	for line := range bytes.Lines(cpuinfo) {
		key, value, _ := bytes.Cut(line, []byte(":"))
		if string(bytes.TrimSpace(key)) != "flags" {
			continue
		}
		processors++
		for _, f := range flags {
			if !hasWord(value, f) {
				return false
			}
		}
	}
	return processors != 0
}

func hasWord(text []byte, word string) bool {
	for w := range bytes.FieldsSeq(text) {
		if string(w) == word {
			return true
		}
	}
	return false
}
