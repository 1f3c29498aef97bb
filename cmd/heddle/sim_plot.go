package main

import (
	"bytes"
	"fmt"
	"html"
	"math"

	"github.com/heddle-project/heddle/runtime/sim"
)

// Geometry of the plot, in SVG units.
const (
	plotWidth, plotHeight = 720, 440
	plotLeft, plotRight   = 70, 30
	plotTop, plotBottom   = 50, 60
)

// simPlot draws one dot per policy: how much the service's p99 suffers, on a logarithmic axis,
// against how much work the lower class gets done. Good is at the lower right. It follows the
// reader's light or dark setting.
func simPlot(o *simOptions, r *sim.Report) []byte {
	most, share := 2.0, 0.1
	for i := range r.Rows {
		most = max(most, r.Rows[i].P99.OfAlone)
		share = max(share, r.Rows[i].Share)
	}
	share = math.Ceil(max(share, r.Oracle)*10+0.5) / 10
	decades := math.Ceil(math.Log10(most)*2) / 2
	x := func(v float64) float64 { return plotLeft + v/share*(plotWidth-plotLeft-plotRight) }
	y := func(times float64) float64 {
		return plotHeight - plotBottom - math.Log10(max(times, 1))/decades*(plotHeight-plotTop-plotBottom)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13">
<style>
.ink { fill: #222 } .line { stroke: #999; stroke-width: 1 } .grid { stroke: #ddd; stroke-width: 1 } .dot { fill: #2a6fb0 } .ours { fill: #c0392b } .paper { fill: #fff }
@media (prefers-color-scheme: dark) { .ink { fill: #ddd } .line { stroke: #777 } .grid { stroke: #333 } .dot { fill: #6db3f2 } .ours { fill: #ff7b6b } .paper { fill: #161616 } }
</style>
<rect class="paper" width="%d" height="%d"/>
`, plotWidth, plotHeight, plotWidth, plotHeight)
	sharing := "side by side"
	if o.timeSliced {
		sharing = "in turns"
	}
	fmt.Fprintf(&b, `<text class="ink" x="%d" y="24" font-size="15">%s, programs %s: %d policies, medians of %d runs</text>`+"\n",
		plotLeft, html.EscapeString(o.gpu), sharing, len(r.Rows), r.Seeds)
	for i := 0; float64(i)*0.1 <= share+1e-9; i++ {
		v := float64(i) * 0.1
		fmt.Fprintf(&b, `<line class="grid" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/><text class="ink" x="%.1f" y="%d" text-anchor="middle">%.1f</text>`+"\n",
			x(v), plotTop, x(v), plotHeight-plotBottom, x(v), plotHeight-plotBottom+18, v)
	}
	for _, times := range []float64{1, 1.1, 1.5, 2, 3, 5, 10, 30, 100, 300, 1000, 3000, 10000} {
		if math.Log10(times) > decades+1e-9 || decades > 1 && (times == 1.1 || times == 1.5 || times == 2 || times == 5) {
			continue
		}
		fmt.Fprintf(&b, `<line class="grid" x1="%d" y1="%.1f" x2="%d" y2="%.1f"/><text class="ink" x="%d" y="%.1f" text-anchor="end">%g x</text>`+"\n",
			plotLeft, y(times), plotWidth-plotRight, y(times), plotLeft-8, y(times)+4, times)
	}
	fmt.Fprintf(&b, `<text class="ink" x="%d" y="%d" text-anchor="middle">work of the lower class, as a part of the device's time</text>`+"\n",
		(plotLeft+plotWidth-plotRight)/2, plotHeight-16)
	fmt.Fprintf(&b, `<text class="ink" x="18" y="%d" text-anchor="middle" transform="rotate(-90 18 %d)">p99 of the service, times alone</text>`+"\n",
		(plotTop+plotHeight-plotBottom)/2, (plotTop+plotHeight-plotBottom)/2)
	if r.Oracle > 0 {
		fmt.Fprintf(&b, `<line class="line" stroke-dasharray="4 4" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/><text class="ink" x="%.1f" y="%d" text-anchor="middle">oracle</text>`+"\n",
			x(r.Oracle), plotTop, x(r.Oracle), plotHeight-plotBottom, x(r.Oracle), plotTop-6)
	}
	for _, p := range placeLabels(r, x, y) {
		class := "dot"
		if p.name == "heddle" {
			class = "ours"
		}
		if p.far {
			toX, toY := p.leader()
			fmt.Fprintf(&b, `<line class="line" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, p.x, p.y, toX, toY)
		}
		at, how := p.anchor()
		fmt.Fprintf(&b, `<circle class="%s" cx="%.1f" cy="%.1f" r="%d"/><text class="ink" x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n",
			class, p.x, p.y, dotRadius, at, p.label.bottom-3, how, html.EscapeString(p.name))
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}
