package config

import (
	"fmt"
	"strings"
	"testing"
)

// TestBoundsAreWhereTheyAreSaidToBe loads the last value that is right and the
// first that is wrong, on both sides.
func TestBoundsAreWhereTheyAreSaidToBe(t *testing.T) {
	path := func(n int) string { return `"/` + strings.Repeat("p", n-1) + `"` }
	tests := []struct {
		section, key string
		right, wrong []string
	}{
		{"", "api_socket", []string{path(107)}, []string{path(108), `""`}},
		// The socket's own name comes behind the folder's.
		{"", "attach_dir", []string{path(107 - len("/attach.sock"))}, []string{path(108 - len("/attach.sock"))}},
		{"clients", "max", []string{"1", "65536"}, []string{"0", "65537"}},
		{"clients", "max_per_user", []string{"1", "65536"}, []string{"0", "65537"}},
		{"clients", "handshake_timeout", []string{`"10ms"`, `"1m"`}, []string{`"9ms"`, `"61s"`}},
		{"scheduling", "priority", []string{"0", "9"}, []string{"-1", "10"}},
		{"scheduling", "weight", []string{"1", "10000"}, []string{"0", "10001"}},
		{"class.low", "window", []string{`"0s"`, `"1000s"`}, []string{`"-1ns"`, `"1001s"`}},
		{"class.low", "estimate", []string{`"1us"`, `"1000s"`}, []string{`"0s"`, `"999ns"`, `"1001s"`}},
		{"class.low", "quiet", []string{`"0s"`, `"1000s"`}, []string{`"-1ns"`, `"1001s"`}},
		{"class.low", "max_hold", []string{`"1ms"`, `"1000s"`}, []string{`"999us"`, `"1001s"`}},
		{"class.low", "keep", []string{`"0%"`, `"100%"`}, []string{`"-1%"`, `"100.1%"`, `"NaN%"`}},
		{"class.low", "margin", []string{"0.0", "10.0"}, []string{"-0.1", "10.1", "nan"}},
	}
	for _, tt := range tests {
		text := func(value string) string {
			section := ""
			if tt.section != "" {
				section = "[" + tt.section + "]\n"
			}
			return fmt.Sprintf("version = 1\n%s%s = %s\n", section, tt.key, value)
		}
		t.Run(tt.section+" "+tt.key, func(t *testing.T) {
			for _, value := range tt.right {
				if _, err := load(t, text(value), nil); err != nil {
					t.Errorf("%s is refused: %v", value, err)
				}
			}
			for _, value := range tt.wrong {
				if _, err := load(t, text(value), nil); err == nil || !strings.Contains(err.Error(), tt.key+": ") {
					t.Errorf("%s: error %v does not name the key", value, err)
				}
			}
		})
	}
}
