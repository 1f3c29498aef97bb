package main

// tone is what a text means; the palette decides what that looks like.
type tone int

const (
	tonePlain tone = iota
	toneHeader
	toneGood
	toneWarn
	toneBad
	toneDim
)

// palette paints with the eight basic colours, which every terminal theme keeps readable.
type palette struct{ on bool }

func (p palette) paint(t tone, s string) string {
	if !p.on || t == tonePlain || s == "" {
		return s
	}
	codes := map[tone]string{
		toneHeader: "1", toneGood: "32", toneWarn: "33", toneBad: "31", toneDim: "2",
	}
	return "\x1b[" + codes[t] + "m" + s + "\x1b[0m"
}
