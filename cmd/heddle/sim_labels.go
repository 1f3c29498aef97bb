package main

import (
	"slices"

	"github.com/heddle-project/heddle/runtime/sim"
)

// Measures of a label, in SVG units: no browser is asked how wide it draws a letter, so a little wider
// than it will be.
const (
	letterWidth = 7.5
	lineHeight  = 15
	dotRadius   = 5
	dotGap      = 4 // between a dot and its label
)

// box is what a dot or a label covers.
type box struct{ left, top, right, bottom float64 }

func (a box) meets(b box) bool {
	return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom
}

type plotted struct {
	name  string
	x, y  float64
	label box
	far   bool // the label stands away from the dot
}

// anchor is where the label's text is held, and how: at the side of the dot, since it is narrower than
// the box.
func (p *plotted) anchor() (x float64, how string) {
	switch {
	case p.label.left >= p.x:
		return p.label.left, "start"
	case p.label.right <= p.x:
		return p.label.right, "end"
	}
	return (p.label.left + p.label.right) / 2, "middle"
}

// leader is where a line from the dot meets the label.
func (p *plotted) leader() (x, y float64) {
	x = max(p.label.left, min(p.x, p.label.right))
	if p.label.bottom < p.y {
		return x, p.label.bottom
	}
	return x, p.label.top
}

// placeLabels puts each label where it covers no dot and no other label: beside its dot if it can, else
// in growing distance. Where there is no such place it stands beside its dot all the same.
func placeLabels(r *sim.Report, x func(float64) float64, y func(float64) float64) []plotted {
	out := make([]plotted, len(r.Rows))
	var taken []box
	for i := range r.Rows {
		p := &out[i]
		*p = plotted{name: r.Rows[i].Policy, x: x(r.Rows[i].Share), y: y(r.Rows[i].P99.OfAlone)}
		taken = append(taken, box{p.x - dotRadius, p.y - dotRadius, p.x + dotRadius, p.y + dotRadius})
	}
	for i := range out {
		out[i].place(taken)
		taken = append(taken, out[i].label)
	}
	return out
}

// place chooses the first free place.
func (p *plotted) place(taken []box) {
	width := letterWidth * float64(len(p.name))
	at := func(left, top float64) box { return box{left, top, left + width, top + lineHeight} }
	free := func(b box) bool {
		if b.left < plotLeft || b.right > plotWidth || b.top < plotTop-lineHeight || b.bottom > plotHeight-plotBottom+lineHeight/2+1 {
			return false
		}
		return !slices.ContainsFunc(taken, b.meets)
	}
	const beside = dotRadius + dotGap
	for lines := range 12 {
		away := float64(lines) * lineHeight
		for _, b := range []box{
			at(p.x+beside, p.y-lineHeight/2-away), // right, and upwards
			at(p.x-beside-width, p.y-lineHeight/2-away),
			at(p.x-width/2, p.y-beside-lineHeight-away),
			at(p.x+beside, p.y-lineHeight/2+away), // downwards
			at(p.x-beside-width, p.y-lineHeight/2+away),
			at(p.x-width/2, p.y+beside+away),
		} {
			if free(b) {
				p.label, p.far = b, lines > 0
				return
			}
		}
	}
	p.label = at(p.x+beside, p.y-lineHeight/2)
}
