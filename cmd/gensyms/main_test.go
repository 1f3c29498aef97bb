package main

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestParseList(t *testing.T) {
	got, err := parseList("# head\n\ncuLaunch gate 2.0 -\ncuMemcpyDtoH_v2 observe 3.2 cuMemcpyDtoH_v2_ptds\n" +
		"cuMemcpyDtoH_v2_ptds observe - -\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []symbol{
		{name: "cuLaunch", action: "gate", since: "2.0"},
		{name: "cuMemcpyDtoH_v2", action: "observe", since: "3.2", variant: "cuMemcpyDtoH_v2_ptds"},
		{name: "cuMemcpyDtoH_v2_ptds", action: "observe"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(symbol{})); diff != "" {
		t.Error(diff)
	}
	if base := got[2].base(); base != "cuMemcpyDtoH" {
		t.Errorf("base is %q", base)
	}
}

func TestParseListRefuses(t *testing.T) {
	tests := []struct {
		name string
		list string
		want string
	}{
		{"an empty list", "# nothing\n", "no symbols"},
		{"a missing column", "cuInit pass 2.0\n", "line 1: 3 columns"},
		{"a name that is no driver function", "main pass 2.0 -\n", "driver function's name"},
		{"an unknown action", "cuInit watch 2.0 -\n", `unknown action "watch"`},
		{"a version without a dot", "cuInit pass 2 -\n", `version "2"`},
		{"another function as variant", "cuInit pass 2.0 cuExit\n", `variant "cuExit"`},
		{"a variant that is not listed", "cuInit pass 2.0 cuInit_ptsz\n", "cuInit_ptsz is not in the list"},
		{"a variant with another action", "cuInit pass 2.0 cuInit_ptsz\n" + "cuInit_ptsz gate - -\n", "action gate, want pass"},
		{"names out of order", "cuInit pass - -\ncuGetErrorName pass - -\n", "cuGetErrorName is not after cuInit"},
		{"a name twice", "cuInit pass - -\n" + "cuInit pass - -\n", "cuInit is not after cuInit"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := parseList(tt.list)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is %v, want %q in it", err, tt.want)
			}
		})
	}
}

func TestEveryMistakeIsReported(t *testing.T) {
	_, err := parseList("cuInit watch 2.0 -\ncuInit pass 2 -\n")
	if err == nil || !strings.Contains(err.Error(), "line 1") || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("error is %v, want both lines in it", err)
	}
}

func FuzzParseList(f *testing.F) {
	f.Add("cuInit pass 2.0 -\n")
	f.Add("# x\ncuLaunch gate - -\ncuLaunch_v2 pass 1.0 cuLaunch_v2_ptsz")
	f.Fuzz(func(t *testing.T, list string) {
		symbols, err := parseList(list)
		if err == nil && !slices.IsSortedFunc(symbols, func(a, b symbol) int { return strings.Compare(a.name, b.name) }) {
			t.Error("an accepted list is not sorted")
		}
	})
}

func tree(list, source string) fstest.MapFS {
	return fstest.MapFS{
		listPath:                      {Data: []byte(list)},
		hooksPath + "/hook_a.c":       {Data: []byte(source)},
		hooksPath + "/not_a_source.h": {Data: []byte("HEDDLE_HOOK(cuLaunch, (void)) {\n")},
	}
}

func TestHooksAndListMustAgree(t *testing.T) {
	const list = "cuInit observe - -\ncuLaunch pass - -\n"
	tests := []struct {
		name   string
		source string
		want   string // empty: accepted
	}{
		{"a hook for each action", "HEDDLE_HOOK(cuInit, (unsigned flags)) {\n", ""},
		{"a hook made by a family's macro", "HEDDLE_HOOK_KERNEL(cuInit, false)\n", ""},
		{"no hook", "/* HEDDLE_HOOK(cuInit) is planned */\n", "cuInit has action observe and no hook"},
		{"a hook for a trampoline", "HEDDLE_HOOK(cuInit, (void)) {\nHEDDLE_HOOK(cuLaunch, (void)) {\n", "cuLaunch has action pass and a hook"},
		{"a hook for an unknown name", "HEDDLE_HOOK(cuInit, (void)) {\nHEDDLE_HOOK(cuOther, (void)) {\n", "cuOther has a hook in hook_a.c and is not"},
		{"two hooks", "HEDDLE_HOOK(cuInit, (void)) {\nHEDDLE_HOOK(cuInit, (void)) {\n", "hook cuInit is already in hook_a.c"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := generate(tree(list, tt.source))
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("error is %v, want %q in it", err, tt.want)
			}
		})
	}
}

func TestOutputs(t *testing.T) {
	files, err := generate(tree("cuInit observe 2.0 -\ncuLaunch_v2 pass - -\n", "HEDDLE_HOOK(cuInit, (unsigned flags)) {\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"interpose/gen/symbols.inc":     "HEDDLE_SYMBOL_HOOK(0, cuInit, 6)\nHEDDLE_SYMBOL_PASS(1, cuLaunch_v2, 8)\n",
		"interpose/gen/libcuda.map":     "  global:\n    cuInit;\n    cuLaunch_v2;\n    heddle_wanted_v1;\n    heddle_yield_v1;\n  local:\n    *;\n",
		"tests/softgpu/gen/libcuda.map": "  global:\n    cuInit;\n    cuLaunch_v2;\n  local:\n    *;\n",
		"tests/softgpu/gen/stubs.c":     "STUB(0, cuInit)\nSTUB(1, cuLaunch_v2)\n",
		"docs/coverage.md":              "| `cuInit` | 2.0 |  | `hook_a.c` |\n",
	}
	for _, f := range files {
		part, ok := want[f.path]
		if !ok {
			t.Errorf("unexpected output %s", f.path)
		}
		if !strings.Contains(string(f.content), part) {
			t.Errorf("%s lacks\n%s\nin\n%s", f.path, part, f.content)
		}
		if !strings.Contains(string(f.content), generated) {
			t.Errorf("%s does not say that it is generated", f.path)
		}
		delete(want, f.path)
	}
	if len(want) != 0 {
		t.Errorf("outputs missing: %v", want)
	}
}

func TestCommittedFilesAreUpToDate(t *testing.T) {
	files, err := generate(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		got, err := os.ReadFile("../../" + f.path)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(f.content) {
			t.Errorf("%s is out of date; run go run ./cmd/gensyms", f.path)
		}
	}
}
