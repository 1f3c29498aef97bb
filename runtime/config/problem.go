package config

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/heddle-project/heddle/runtime/errdefs"
)

// Problem is one thing that is wrong with a configuration.
type Problem struct { //nolint:errname // named for what it is to the reader of a configuration
	File string // empty if it does not come from a file
	Line int    // 0 if it has none
	// Origin names the source of the value when that is not a file: env:NAME,
	// flag:NAME or default.
	Origin string
	Key    string // empty for syntax errors
	Text   string
}

func (p Problem) Error() string {
	var b strings.Builder
	switch {
	case p.File != "" && p.Line > 0:
		fmt.Fprintf(&b, "%s:%d: ", p.File, p.Line)
	case p.File != "":
		fmt.Fprintf(&b, "%s: ", p.File)
	case p.Origin != "":
		fmt.Fprintf(&b, "%s: ", p.Origin)
	}
	if p.Key != "" {
		fmt.Fprintf(&b, "%s: ", p.Key)
	}
	b.WriteString(p.Text)
	return b.String()
}

// Problems is every problem of one configuration; its text has one line for
// each.
type Problems []Problem //nolint:errname // as above

func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.Error()
	}
	return strings.Join(lines, "\n")
}

// Is reports that a configuration with problems is invalid, not unreadable.
func (p Problems) Is(target error) bool { return target == errdefs.ErrInvalid }

// byLine sorts the problems of the file as a reader meets them; those of other
// sources follow in their order.
func (p Problems) byLine() {
	place := func(q Problem) int {
		if q.File == "" {
			return math.MaxInt
		}
		return q.Line
	}
	slices.SortStableFunc(p, func(a, b Problem) int { return cmp.Compare(place(a), place(b)) })
}

func (p Problems) orNil() error {
	if len(p) == 0 {
		return nil
	}
	return p
}
