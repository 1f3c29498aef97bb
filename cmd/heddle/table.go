package main

import (
	"io"
	"strings"
	"unicode/utf8"
)

// column describes one column of a table.
type column struct {
	title string
	right bool // numbers line up at the right
	// drop orders the columns that a narrow terminal loses: 1 goes first, 0 stays.
	drop int
}

type cell struct {
	text string
	tone tone
}

// table is laid out when it is written: a terminal gets what fits, a pipe gets everything. The
// last column takes the space that is left and is the one to be cut.
type table struct {
	columns []column
	rows    [][]cell
}

const (
	columnGap = 2
	// Narrower than this the last column says nothing any more, and others must go.
	lastColumnMin = 12
)

func (t *table) add(cells ...cell) { t.rows = append(t.rows, cells) }

// write prints the table, width 0 being no limit.
func (t *table) write(w io.Writer, width int, colors palette) error {
	shown := t.fit(width)
	widths := t.widths(shown)
	var out strings.Builder
	header := make([]cell, len(t.columns))
	for i, c := range t.columns {
		header[i] = cell{c.title, toneHeader}
	}
	t.line(&out, header, shown, widths, width, colors)
	for _, row := range t.rows {
		t.line(&out, row, shown, widths, width, colors)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// fit chooses the columns to show in a width.
func (t *table) fit(width int) []int {
	dropped := make(map[int]bool)
	for i, c := range t.columns {
		// Nothing is lost with a column that knows nothing.
		if width > 0 && c.drop > 0 && t.saysNothing(i) {
			dropped[i] = true
		}
	}
	for rank := 0; ; {
		var shown []int
		for i := range t.columns {
			if !dropped[i] {
				shown = append(shown, i)
			}
		}
		if width == 0 || t.needs(shown) <= width {
			return shown
		}
		next := t.nextToDrop(rank)
		if next < 0 {
			return shown
		}
		rank = t.columns[next].drop
		dropped[next] = true
	}
}

func (t *table) saysNothing(column int) bool {
	for _, row := range t.rows {
		if row[column].text != unknown {
			return false
		}
	}
	return true
}

func (t *table) nextToDrop(after int) int {
	next := -1
	for i, c := range t.columns {
		if c.drop > after && (next < 0 || c.drop < t.columns[next].drop) {
			next = i
		}
	}
	return next
}

// needs is the width that the shown columns want, the last one cut as far as is sensible.
func (t *table) needs(shown []int) int {
	widths, total := t.widths(shown), 0
	for n, i := range shown {
		w := widths[i]
		if n == len(shown)-1 {
			w = min(w, max(lastColumnMin, utf8.RuneCountInString(t.columns[i].title)))
		}
		total += w + columnGap
	}
	return total - columnGap
}

func (t *table) widths(shown []int) []int {
	widths := make([]int, len(t.columns))
	for _, i := range shown {
		widths[i] = utf8.RuneCountInString(t.columns[i].title)
		for _, row := range t.rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i].text))
		}
	}
	return widths
}

func (t *table) line(out *strings.Builder, row []cell, shown, widths []int, width int, colors palette) {
	used := 0
	for n, i := range shown {
		last := n == len(shown)-1
		text := row[i].text
		if last && width > 0 {
			text = cut(text, width-used)
		}
		padding := strings.Repeat(" ", max(0, widths[i]-utf8.RuneCountInString(text)))
		if t.columns[i].right {
			out.WriteString(padding)
			padding = ""
		}
		out.WriteString(colors.paint(row[i].tone, text))
		if !last { // no trailing blanks
			out.WriteString(padding)
			out.WriteString(strings.Repeat(" ", columnGap))
		}
		used += widths[i] + columnGap
	}
	out.WriteByte('\n')
}

// cut shortens a text to a width and shows that it did.
func cut(s string, width int) string {
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	if width <= 1 {
		return strings.Repeat("~", max(width, 0))
	}
	return string([]rune(s)[:width-1]) + "~"
}
