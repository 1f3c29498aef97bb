package config

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Identity is what heddled found out about a client by itself; nothing in it
// was said by the client.
type Identity struct {
	UID        int
	User       string // empty if the number has no name
	GIDs       []int  // primary and supplementary
	Groups     []string
	Cgroup     string
	Executable string
	// Genuine reports whether the file at Executable is the one that runs; nil =
	// it is not. It is asked only where a rule names that path.
	Genuine func() bool
}

// Grant is what a client may have.
type Grant struct {
	Tenant      string // empty = the caller names one
	MaxPriority int
	Priority    int
	Weight      int
	SLO         *Objective // nil = none of its own
	Isolation   Isolation
	Refuse      bool
	Origin      string // of the rule, empty for the default
}

// Matcher finds the grant of a client.
type Matcher struct {
	rules    []compiledRule
	fallback Grant
}

type compiledRule struct {
	Rule
	cgroups     []*regexp.Regexp
	executables []*regexp.Regexp
}

// NewMatcher prepares the rules of a valid configuration.
func NewMatcher(c *Config) *Matcher {
	m := &Matcher{fallback: Grant{
		MaxPriority: c.Scheduling.Priority,
		Priority:    c.Scheduling.Priority,
		Weight:      c.Scheduling.Weight,
		Isolation:   IsolationShared,
	}}
	for _, r := range c.Rules {
		m.rules = append(m.rules, compiledRule{
			Rule: r, cgroups: globs(r.Cgroups), executables: globs(r.Executables),
		})
	}
	return m
}

// Match returns the grant of the first rule that matches, or the default.
func (m *Matcher) Match(id *Identity) Grant {
	for i := range m.rules {
		r := &m.rules[i]
		if r.matches(id) {
			return Grant{
				Tenant:      r.Tenant,
				MaxPriority: r.MaxPriority,
				Priority:    r.Priority,
				Weight:      r.Weight,
				SLO:         r.SLO,
				Isolation:   r.Isolation,
				Refuse:      r.Refuse,
				Origin:      r.Origin,
			}
		}
	}
	return m.fallback
}

func (r *compiledRule) matches(id *Identity) bool {
	return (len(r.Users) == 0 || namesMatch(r.Users, []int{id.UID}, []string{id.User})) &&
		(len(r.Groups) == 0 || namesMatch(r.Groups, id.GIDs, id.Groups)) &&
		(len(r.cgroups) == 0 || anyMatches(r.cgroups, id.Cgroup)) &&
		(len(r.executables) == 0 || anyMatches(r.executables, id.Executable) && id.Genuine != nil && id.Genuine())
}

func namesMatch(wanted []string, numbers []int, names []string) bool {
	for _, w := range wanted {
		if w != "" && slices.Contains(names, w) {
			return true
		}
		if n, err := strconv.Atoi(w); err == nil && slices.Contains(numbers, n) {
			return true
		}
	}
	return false
}

func anyMatches(patterns []*regexp.Regexp, s string) bool {
	return s != "" && slices.ContainsFunc(patterns, func(p *regexp.Regexp) bool {
		return p.MatchString(s)
	})
}

func globs(patterns []string) []*regexp.Regexp {
	compiled := make([]*regexp.Regexp, len(patterns))
	for i, p := range patterns {
		compiled[i] = glob(p)
	}
	return compiled
}

// glob compiles a pattern in which * stands for anything inside one part of a
// path, ** for anything, and ? for one byte of a part. Every text is a valid
// pattern, and matching takes linear time.
func glob(pattern string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	for i := 0; i < len(pattern); i++ {
		switch {
		case strings.HasPrefix(pattern[i:], "**"):
			b.WriteString(".*")
			i++
		case pattern[i] == '*':
			b.WriteString("[^/]*")
		case pattern[i] == '?':
			b.WriteString("[^/]")
		default:
			end := i + 1
			for end < len(pattern) && pattern[end] != '*' && pattern[end] != '?' {
				end++
			}
			b.WriteString(regexp.QuoteMeta(strings.ToValidUTF8(pattern[i:end], "\uFFFD")))
			i = end - 1
		}
	}
	b.WriteString(`\z`)
	return regexp.MustCompile(b.String())
}
