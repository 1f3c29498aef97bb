package config

import (
	"strings"
	"testing"
)

func TestParseGang(t *testing.T) {
	long := strings.Repeat("x", 63)
	for _, test := range []struct {
		text string
		name string // empty = refused
		size int
	}{
		{"job:4", "job", 4},
		{"A.b_c-9:1", "A.b_c-9", 1},
		{"job:1024", "job", 1024},
		{long + ":2", long, 2},
		{long + "x:2", "", 0},
		{"job:0", "", 0},
		{"job:1025", "", 0},
		{"job:-1", "", 0},
		{"job:+4", "", 0},
		{"job:4x", "", 0},
		{"job: 4", "", 0},
		{"job:", "", 0},
		{"job", "", 0},
		{":4", "", 0},
		{"", "", 0},
		{"a b:4", "", 0},
		{"a:b:4", "", 0},
		{"jöb:4", "", 0},
		{"job:18446744073709551620", "", 0},
	} {
		name, size, err := ParseGang(test.text)
		if name != test.name || size != test.size || (err == nil) != (test.name != "") {
			t.Errorf("ParseGang(%q) = %q, %d, %v; want %q, %d", test.text, name, size, err, test.name, test.size)
		}
	}
}
