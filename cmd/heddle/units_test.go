package main

import (
	"testing"
	"time"
)

func TestUnits(t *testing.T) {
	tests := []struct{ got, want string }{
		{formatBytes(0), "0B"},
		{formatBytes(1023), "1023B"},
		{formatBytes(1024), "1.0KiB"},
		{formatBytes(1<<20 - 1), "1.0MiB"},
		{formatBytes(10 << 20), "10MiB"},
		{formatBytes(1023 << 20), "1.0GiB"},
		{formatBytes(80 << 30), "80GiB"},
		{formatBytes(1<<64 - 1), "16EiB"},
		{formatRate(0), "0"},
		{formatRate(-1), "0"},
		{formatRate(0.01), "<0.1"},
		{formatRate(0.5), "0.5"},
		{formatRate(7), "7"},
		{formatRate(9.96), "10"},
		{formatRate(999.4), "999"},
		{formatRate(999.6), "1.0k"},
		{formatRate(4560), "4.6k"},
		{formatRate(456000), "456k"},
		{formatRate(2.5e6), "2.5M"},
		{formatShare(0), "0%"},
		{formatShare(-0.5), "0%"},
		{formatShare(0.001), "<1%"},
		{formatShare(0.614), "61%"},
		{formatShare(1), "100%"},
		{formatShare(3), "100%"},
		{formatAge(-time.Second), "0s"},
		{formatAge(59 * time.Second), "59s"},
		{formatAge(61 * time.Second), "1m01s"},
		{formatAge(3*time.Hour + 12*time.Minute), "3h12m"},
		{formatAge(50 * time.Hour), "2d02h"},
		{printable("a\x1b[2Jb\nc\u202ed"), "a?[2Jb?c?d"},
		{printable("größe 网"), "größe 网"},
		{plural(1, "client"), "1 client"},
		{plural(0, "client"), "0 clients"},
		{cut("abcdef", 6), "abcdef"},
		{cut("abcdef", 4), "abc~"},
		{cut("网网网", 2), "网~"},
		{cut("abc", 0), ""},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}

func TestNearestWord(t *testing.T) {
	words := []string{"run", "ps", "gpus", "set", "status", "config"}
	tests := map[string]string{
		"rnu": "run", "p": "", "ss": "ps", "statsu": "status", "cnfig": "config", "gpu": "gpus", "xyz": "", "": "",
	}
	for typed, want := range tests {
		if got := nearest(typed, words); got != want {
			t.Errorf("nearest(%q) = %q, want %q", typed, got, want)
		}
	}
}
