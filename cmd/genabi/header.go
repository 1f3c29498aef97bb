package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// A header is what only the source text knows: which types there are, and what is said about them.
// Everything about their layout comes from the compiler.
type header struct {
	path     string
	lines    []string
	types    []typeName
	comments map[int]string // by line: the comment that belongs to a declaration on that line
}

type typeName struct {
	keyword string // "struct" or "enum"
	name    string
	line    int
}

var (
	typePattern      = regexp.MustCompile(`^(struct|enum)\s+(\w+)\s*\{`)
	anonymousPattern = regexp.MustCompile(`^(?:typedef\s+)?(struct|enum|union)\s*\{`)
)

// parseHeader finds the named types at file scope and the comments. A type without a name could
// not be instantiated by name, so it would be missing from the mirror without a word: refused.
func parseHeader(path, text string) (header, error) {
	h := header{path: path, lines: strings.Split(text, "\n"), comments: map[int]string{}}
	for i, line := range h.lines {
		if m := typePattern.FindStringSubmatch(line); m != nil {
			h.types = append(h.types, typeName{m[1], m[2], i + 1})
		} else if m := anonymousPattern.FindStringSubmatch(line); m != nil {
			return h, fmt.Errorf("line %d: %s without a name", i+1, m[1])
		}
	}
	if len(h.types) == 0 {
		return h, errors.New("no types")
	}
	h.readComments()
	return h, nil
}

// readComments gives every comment to a line: one that follows code on its first line to that
// line, one that stands alone to the line after its end. The line after a run of declarations is
// not a declaration of the same writer group, so a group's comment goes to its first member only.
func (h *header) readComments() {
	lines := h.lines
	for i := 0; i < len(lines); i++ {
		before, after, found := strings.Cut(lines[i], "/*")
		if !found {
			continue
		}
		start := i
		for !strings.Contains(after, "*/") && i+1 < len(lines) {
			i++
			after += "\n" + lines[i]
		}
		text, _, _ := strings.Cut(after, "*/")
		target := start + 1
		if strings.TrimSpace(before) == "" {
			target = i + 2
		}
		if said := plain(text); said != "" {
			if h.comments[target] != "" {
				said = h.comments[target] + "; " + said
			}
			h.comments[target] = said
		}
	}
}

// plain takes the decoration off a comment and puts it on one line.
func plain(comment string) string {
	var words []string
	for line := range strings.SplitSeq(comment, "\n") {
		line = strings.TrimPrefix(strings.TrimSpace(line), "*")
		words = append(words, strings.Fields(line)...)
	}
	return strings.Trim(strings.Join(words, " "), "- ")
}

var enumeratorPattern = regexp.MustCompile(`^\s*(\w+)\s*(?:=|,|/\*|$)`)

// enumComments returns the comment of each enumerator of one enum. Debug information gives no line
// for an enumerator, so they are found in the text that follows the enum's own line.
func (h *header) enumComments(from int) map[string]string {
	comments := map[string]string{}
	for i := from; i < len(h.lines); i++ {
		line := h.lines[i]
		if strings.HasPrefix(line, "}") {
			break
		}
		if m := enumeratorPattern.FindStringSubmatch(line); m != nil {
			comments[m[1]] = h.comments[i+1]
		}
	}
	return comments
}
