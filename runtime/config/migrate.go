package config

import (
	"fmt"
	"strconv"
)

// migration rewrites the statements of one version into those of the next.
// Lines stay, so that later problems still point into the person's file.
type migration func([]statement) []statement

// migrations returns the step from each version to its successor, by the
// version it starts from. Version 1 is the first.
func migrations() map[int]migration { return map[int]migration{} }

// migrate takes the version out of the statements and brings the rest up to
// Version.
func migrate(statements []statement) ([]statement, Problems) {
	version, rest := 0, statements[:0]
	for _, s := range statements {
		if s.path != "version" {
			rest = append(rest, s)
			continue
		}
		n, err := strconv.Atoi(s.value.text)
		if err != nil || s.value.kind != kindInteger || n < 1 {
			return nil, Problems{{Line: s.line, Key: "version", Text: "want a number such as 1"}}
		}
		if n > Version {
			return nil, Problems{{Line: s.line, Key: "version",
				Text: fmt.Sprintf("%d is newer than this heddled, which reads up to %d", n, Version)}}
		}
		version = n
	}
	if version == 0 {
		return nil, Problems{{Line: 1, Key: "version",
			Text: fmt.Sprintf("missing; the file must say version = %d", Version)}}
	}
	steps := migrations()
	for ; version < Version; version++ {
		rest = steps[version](rest)
	}
	return rest, nil
}
