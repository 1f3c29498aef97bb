package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGoEventsBecomeLinesAndCounts(t *testing.T) {
	const in = `go: downloading something
{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestB","Output":"=== RUN   TestB\n"}
{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:7: no GPU here\n"}
{"Action":"output","Package":"p","Test":"TestB","Output":"--- SKIP: TestB (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"TestB"}
{"Action":"output","Package":"p","Test":"TestC","Output":"    c_test.go:9: got 1, want 2\n"}
{"Action":"fail","Package":"p","Test":"TestC"}
{"Action":"fail","Package":"p","Elapsed":1.5}
{"ImportPath":"q","Action":"build-output","Output":"q.go:1: broken\n"}
{"Action":"skip","Package":"empty"}
`
	var out strings.Builder
	p := Part{Name: "go"}
	if err := p.readGo(strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	want := Part{Name: "go", Passed: 1, Failed: 1, Skips: []Skip{{Test: "TestB", Reason: "no GPU here"}}}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("part (-want +got):\n%s", diff)
	}
	for _, line := range []string{"go: downloading something", "c_test.go:9: got 1, want 2", "FAIL  p ", "q.go:1: broken"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("output lacks %q:\n%s", line, out.String())
		}
	}
	if strings.Contains(out.String(), "TestA") || strings.Contains(out.String(), "empty") {
		t.Errorf("output is not silent about what passed:\n%s", out.String())
	}
}

func TestPlainProgramsSayOkAndSkip(t *testing.T) {
	const in = "ok attach_test 12 checks\nbasic: ok\nbuild/test_log: 19 tests, 13 failures\nnvml: 2 tests passed\nskip arm64: no qemu-aarch64\nSKIP: nothing to do\nskipping is not a skip line\n"
	var out strings.Builder
	p := Part{Name: "c"}
	if err := p.readText(strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	want := Part{Name: "c", Passed: 10, Failed: 13, Skips: []Skip{
		{Test: "arm64", Reason: "no qemu-aarch64"}, {Test: "c", Reason: "nothing to do"},
	}}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("part (-want +got):\n%s", diff)
	}
	if out.String() != in {
		t.Errorf("output was changed: %q", out.String())
	}
}

func TestSummaryNamesEveryReasonAndFailsWhenAPartDid(t *testing.T) {
	book := filepath.Join(t.TempDir(), "build", "report.jsonl")
	parts := []Part{
		{Name: "C", OK: true, Seconds: 1, Passed: 3, Skips: []Skip{{"arm64", "no qemu"}}},
		{Name: "Go", OK: false, Seconds: 2, Failed: 1, Skips: []Skip{{"A", "no GPU"}, {"B", "no GPU"}, {"C", "no GPU"}, {"D", "no GPU"}}},
	}
	for _, p := range parts {
		if err := save(book, p); err != nil {
			t.Fatal(err)
		}
	}
	got, err := load(book)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(parts, got); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
	var out strings.Builder
	if err := summarize(&out, got); err == nil || err.Error() != "1 of 2 parts failed" {
		t.Errorf("summarize = %v", err)
	}
	for _, line := range []string{"  no qemu: arm64\n", "  no GPU: A, B, C and 1 more\n", "FAILED"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("summary lacks %q:\n%s", line, out.String())
		}
	}
	if err := summarize(&out, nil); err == nil {
		t.Error("a run without parts passed")
	}
	if err := summarize(&out, parts[:1]); err != nil {
		t.Errorf("a run whose parts passed: %v", err)
	}
}
