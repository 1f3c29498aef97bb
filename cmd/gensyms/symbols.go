package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// The actions that a symbol can have; see the head of interpose/symbols.txt.
const (
	actionGate    = "gate"
	actionAccount = "account"
	actionObserve = "observe"
	actionPass    = "pass"
)

// A symbol is one line of the list.
type symbol struct {
	name    string
	action  string
	since   string // first CUDA version, empty if not known
	variant string // export for the per-thread default stream, empty if none
}

var (
	nameForm    = regexp.MustCompile(`^cu[A-Za-z0-9]+(_v[0-9]+)?(_ptsz|_ptds)?$`)
	sinceForm   = regexp.MustCompile(`^[0-9]+\.[0-9]+$`)
	suffixForm  = regexp.MustCompile(`(_v[0-9]+)?(_ptsz|_ptds)?$`)
	knownAction = []string{actionGate, actionAccount, actionObserve, actionPass}
)

// base returns the name that a program asks cuGetProcAddress for.
func (s symbol) base() string {
	return suffixForm.ReplaceAllString(s.name, "")
}

func (s symbol) hooked() bool {
	return s.action != actionPass
}

// parseList reads the list and returns every mistake in it at once.
func parseList(text string) ([]symbol, error) {
	var symbols []symbol
	var problems []error
	number := 0
	for line := range strings.Lines(text) {
		number++
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		s, err := parseLine(fields)
		if err != nil {
			problems = append(problems, fmt.Errorf("line %d: %w", number, err))
			continue
		}
		if n := len(symbols); n > 0 && symbols[n-1].name >= s.name {
			problems = append(problems, fmt.Errorf("line %d: %s is not after %s", number, s.name, symbols[n-1].name))
		}
		symbols = append(symbols, s)
	}
	for _, s := range symbols {
		if s.variant == "" {
			continue
		}
		at := slices.IndexFunc(symbols, func(o symbol) bool { return o.name == s.variant })
		switch {
		case at < 0:
			problems = append(problems, fmt.Errorf("%s: variant %s is not in the list", s.name, s.variant))
		case symbols[at].action != s.action:
			problems = append(problems, fmt.Errorf("%s has action %s, want %s as %s", s.variant, symbols[at].action, s.action, s.name))
		}
	}
	if len(symbols) == 0 && len(problems) == 0 {
		problems = append(problems, errors.New("no symbols"))
	}
	return symbols, errors.Join(problems...)
}

func parseLine(fields []string) (symbol, error) {
	if len(fields) != 4 {
		return symbol{}, fmt.Errorf("%d columns, want 4", len(fields))
	}
	s := symbol{name: fields[0], action: fields[1], since: fields[2], variant: fields[3]}
	if !nameForm.MatchString(s.name) {
		return symbol{}, fmt.Errorf("%q is not a driver function's name", s.name)
	}
	if !slices.Contains(knownAction, s.action) {
		return symbol{}, fmt.Errorf("%s: unknown action %q", s.name, s.action)
	}
	switch {
	case s.since == "-":
		s.since = ""
	case !sinceForm.MatchString(s.since):
		return symbol{}, fmt.Errorf("%s: version %q", s.name, s.since)
	}
	switch s.variant {
	case "-":
		s.variant = ""
	case s.name + "_ptsz", s.name + "_ptds":
	default:
		return symbol{}, fmt.Errorf("%s: variant %q", s.name, s.variant)
	}
	return s, nil
}
