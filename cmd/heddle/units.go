package main

import (
	"fmt"
	"strings"
	"time"
	"unicode"
)

const unknown = "-"

// formatBytes writes a size in binary units with three digits at most, without a space, so that a
// column stays one word.
func formatBytes(n uint64) string {
	if n < 1024 {
		return fmt.Sprintf("%dB", n)
	}
	value, units := float64(n), []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	unit := -1
	// 999.5 would print as a four-digit 1000.
	for value >= 999.5 && unit < len(units)-1 {
		value /= 1024
		unit++
	}
	if value < 9.95 {
		return fmt.Sprintf("%.1f%s", value, units[max(unit, 0)])
	}
	return fmt.Sprintf("%.0f%s", value, units[max(unit, 0)])
}

// formatRate writes a count per second: 0, 0.5, 12, 4.6k, 1.2M.
func formatRate(perSecond float64) string {
	value, unit := perSecond, ""
	for _, next := range []string{"k", "M", "G"} {
		if value < 999.5 {
			break
		}
		value, unit = value/1000, next
	}
	switch {
	case perSecond <= 0:
		return "0"
	case perSecond < 0.1:
		return "<0.1"
	case value < 9.95 && (unit != "" || value != float64(int(value))):
		return fmt.Sprintf("%.1f%s", value, unit)
	default:
		return fmt.Sprintf("%.0f%s", value, unit)
	}
}

// formatShare writes a part of one as per cent. Something is never shown as nothing.
func formatShare(share float64) string {
	switch {
	case share <= 0:
		return "0%"
	case share < 0.01:
		return "<1%"
	default:
		return fmt.Sprintf("%.0f%%", min(share, 1)*100)
	}
}

// formatAge writes how long something lasts, in its two largest units.
func formatAge(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
	}
}

// printable replaces what could move the cursor or hide text: names and commands are chosen by
// other users, and the reader may be root.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}

func orUnknown(s string) string {
	if s == "" {
		return unknown
	}
	return s
}

// plural writes a count with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
