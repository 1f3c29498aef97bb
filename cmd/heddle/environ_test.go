package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPrependKeepsTheRest(t *testing.T) {
	colon := func(r rune) bool { return r == ':' }
	tests := []struct{ first, list, want string }{
		{"/h", "", "/h"},
		{"/h", "/a", "/h:/a"},
		{"/h", "/a:/h:/b", "/h:/a:/b"},
		{"/h", "/h", "/h"},
		{"/h", "/h:/h", "/h"},
		{"/h", "/a::/b", "/h:/a::/b"},
		{"/h", ":/a", "/h::/a"},
		{"/h", "/hh", "/h:/hh"},
	}
	for _, tt := range tests {
		if got := prepend(tt.first, tt.list, colon); got != tt.want {
			t.Errorf("prepend(%q, %q) = %q, want %q", tt.first, tt.list, got, tt.want)
		}
	}
}

func TestInterposeUnderstandsBothSeparators(t *testing.T) {
	env := interpose([]string{"LD_PRELOAD=a.so /l/libcuda.so.1 b.so", "X=1", "LD_LIBRARY_PATH=/a;/l"}, "/l/libcuda.so.1")
	want := []string{"X=1", "LD_LIBRARY_PATH=/l:/a", "LD_PRELOAD=/l/libcuda.so.1:a.so:b.so"}
	if diff := cmp.Diff(want, env); diff != "" {
		t.Error(diff)
	}
}

func TestSetEnvLeavesOneSetting(t *testing.T) {
	before := []string{"A=1", "B=2", "A=3", "AB=4"}
	got := setEnv(before, "A", "5")
	if diff := cmp.Diff([]string{"B=2", "AB=4", "A=5"}, got); diff != "" {
		t.Error(diff)
	}
	if strings.Join(before, " ") != "A=1 B=2 A=3 AB=4" {
		t.Errorf("the caller's environment was changed: %v", before)
	}
	if value, set := lookupEnv(before, "A"); value != "3" || !set {
		t.Errorf("A is %q, the last setting counts", value)
	}
}

// FuzzPrepend holds what a loader needs: ours is first, once, and nothing else is lost.
func FuzzPrepend(f *testing.F) {
	f.Add("/h", "/a:/b")
	f.Add("/h", ":/h::")
	f.Fuzz(func(t *testing.T, first, list string) {
		if first == "" || strings.Contains(first, ":") {
			t.Skip()
		}
		got := strings.Split(prepend(first, list, func(r rune) bool { return r == ':' }), ":")
		if got[0] != first {
			t.Fatalf("%q is not first in %q", first, got)
		}
		var want []string
		for element := range strings.SplitSeq(list, ":") {
			if element != first && list != "" {
				want = append(want, element)
			}
		}
		if diff := cmp.Diff(want, append([]string(nil), got[1:]...)); diff != "" {
			t.Fatal(diff)
		}
	})
}
