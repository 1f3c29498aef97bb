package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Part is how one part of the tests went.
type Part struct {
	Name    string  `json:"name"`
	OK      bool    `json:"ok"`
	Seconds float64 `json:"seconds"`
	Passed  int     `json:"passed"`
	Failed  int     `json:"failed"`
	Skips   []Skip  `json:"skips,omitempty"`
}

// Skip is a test that did not run, with the reason that it gave.
type Skip struct {
	Test   string `json:"test"`
	Reason string `json:"reason"`
}

// event is one line of `go test -json`.
type event struct {
	Action  string
	Package string
	Test    string
	Elapsed float64
	Output  string
}

var (
	skipLine = regexp.MustCompile(`(?i)^\s*(?:skip(?:ped)?)\b[:\s]+(.+)$`)
	passLine = regexp.MustCompile(`(?i)^\s*(?:ok|pass(?:ed)?)\b[:\s]|^\S+: ok$`)
	// countLine is how a program with many tests ends: "NAME: 12 tests passed", "NAME: 12 tests, 1 failures".
	countLine = regexp.MustCompile(`^\S+: (\d+) tests?(?: passed|, (\d+) failures?)$`)
	// position is what testing puts before the text of t.Skip.
	position = regexp.MustCompile(`^\s*\S+\.go:\d+: `)
)

// readText passes the output of a plain program on and counts the lines that say ok and skip.
func (p *Part) readText(r io.Reader, w io.Writer) error {
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		line := in.Text()
		fmt.Fprintln(w, line)
		if m := countLine.FindStringSubmatch(line); m != nil {
			// The expression lets digits through, or nothing, which counts as zero.
			tests, _ := strconv.Atoi(m[1])
			failures, _ := strconv.Atoi(m[2])
			p.Passed += tests - failures
			p.Failed += failures
		} else if m := skipLine.FindStringSubmatch(line); m != nil {
			name, reason, found := strings.Cut(m[1], ": ")
			if !found {
				name, reason = p.Name, m[1]
			}
			p.Skips = append(p.Skips, Skip{Test: name, Reason: reason})
		} else if passLine.MatchString(line) {
			p.Passed++
		}
	}
	return in.Err()
}

// readGo prints one line per package and, of what failed, everything that it wrote.
func (p *Part) readGo(r io.Reader, w io.Writer) error {
	in := bufio.NewReader(r)
	output := make(map[string][]string) // by package and test
	tests := make(map[string]int)       // by package
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				fmt.Fprint(w, string(line)) // the go command itself, before any test
			} else {
				p.take(e, output, tests, w)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (p *Part) take(e event, output map[string][]string, tests map[string]int, w io.Writer) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "build-output":
		fmt.Fprint(w, e.Output)
	case "output":
		output[key] = append(output[key], e.Output)
	case "pass", "fail", "skip":
		text := output[key]
		delete(output, key)
		if e.Test == "" {
			p.endPackage(e, text, tests[e.Package], w)
			return
		}
		tests[e.Package]++
		switch e.Action {
		case "pass":
			p.Passed++
		case "fail":
			p.Failed++
			fmt.Fprint(w, strings.Join(text, ""))
		case "skip":
			p.Skips = append(p.Skips, Skip{Test: e.Test, Reason: reason(text)})
		}
	}
}

func (p *Part) endPackage(e event, text []string, tests int, w io.Writer) {
	switch {
	case e.Action == "fail":
		fmt.Fprint(w, strings.Join(text, ""))
		fmt.Fprintf(w, "FAIL  %-64s %6.1fs\n", e.Package, e.Elapsed)
	case tests > 0:
		fmt.Fprintf(w, "ok    %-64s %6.1fs  %d tests\n", e.Package, e.Elapsed, tests)
	}
}

// reason is the last thing a skipped test said before testing said that it skipped.
func reason(text []string) string {
	for _, line := range slices.Backward(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "---") || strings.HasPrefix(line, "===") {
			continue
		}
		return position.ReplaceAllString(line, "")
	}
	return "no reason given"
}

func save(path string, p Part) error {
	line, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

func load(path string) ([]Part, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	var parts []Part
	for dec := json.NewDecoder(f); ; {
		var p Part
		switch err := dec.Decode(&p); {
		case errors.Is(err, io.EOF):
			return parts, nil
		case err != nil:
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		parts = append(parts, p)
	}
}

// summarize prints the table of parts, then every reason for a skip with the tests that gave it.
func summarize(w io.Writer, parts []Part) error {
	byReason := make(map[string][]string)
	failed := 0
	fmt.Fprintf(w, "\n%-28s %-6s %7s %7s %7s %9s\n", "part", "", "passed", "failed", "skipped", "time")
	for _, p := range parts {
		verdict := "ok"
		if !p.OK {
			verdict = "FAILED"
			failed++
		}
		took := (time.Duration(p.Seconds * float64(time.Second))).Round(time.Second / 10)
		passed := strconv.Itoa(p.Passed)
		if p.Passed+p.Failed == 0 {
			passed = "-" // programs that say nothing when all is well
		}
		fmt.Fprintf(w, "%-28s %-6s %7s %7d %7d %9s\n", p.Name, verdict, passed, p.Failed, len(p.Skips), took)
		for _, s := range p.Skips {
			byReason[s.Reason] = append(byReason[s.Reason], s.Test)
		}
	}
	if len(byReason) == 0 {
		fmt.Fprintln(w, "nothing was skipped")
	} else {
		fmt.Fprintln(w, "\nskipped, and why:")
	}
	for _, why := range slices.Sorted(maps.Keys(byReason)) {
		tests := byReason[why]
		names := strings.Join(tests[:min(len(tests), 3)], ", ")
		if len(tests) > 3 {
			names += fmt.Sprintf(" and %d more", len(tests)-3)
		}
		fmt.Fprintf(w, "  %s: %s\n", why, names)
	}
	switch {
	case len(parts) == 0:
		return errors.New("no part ran")
	case failed > 0:
		return fmt.Errorf("%d of %d parts failed", failed, len(parts))
	}
	fmt.Fprintf(w, "all %d parts passed\n", len(parts))
	return nil
}
