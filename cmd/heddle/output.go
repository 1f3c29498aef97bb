package main

import "encoding/json"

// printJSON prints one value, indented: people read it too.
func (a *app) printJSON(value any) error {
	encoder := json.NewEncoder(a.stdout)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// printJSONLine prints one value as one line, for streams of them.
func (a *app) printJSONLine(value any) error {
	encoder := json.NewEncoder(a.stdout)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// width is what a table may take: all it wants in a file, in a pipe and with --no-trunc.
func (a *app) width(noTrunc bool) int {
	if noTrunc || !a.screen.tty {
		return 0
	}
	return a.screen.width
}
