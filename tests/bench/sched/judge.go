package main

import (
	"fmt"
	"io"

	"github.com/heddle-project/heddle/runtime/sim"
)

// cell is one combination and what came out of it.
type cell struct {
	Name     string      `json:"name"`
	Service  string      `json:"service"`
	Load     string      `json:"load"`
	Training string      `json:"training"`
	Trainers int         `json:"trainers"`
	Shared   bool        `json:"shared"`
	Limit    float64     `json:"limit"` // on the service's latency, times alone
	Report   *sim.Report `json:"report"`
	Bars     []bar       `json:"bars,omitempty"`

	clients []sim.Client
	pauses  bool // inside requests, and hardly any other idle time
}

// bar is one promise in one cell.
type bar struct {
	What  string  `json:"what"`
	Value float64 `json:"value"`
	Limit float64 `json:"limit"`
	OK    bool    `json:"ok"`
	// Yardstick is what the reactive yardstick reaches of the same.
	Yardstick float64 `json:"yardstick,omitempty"`
	Better    string  `json:"better,omitempty"` // the policy that is better in everything
}

// leastShare is the part of the oracle's share that the lower class must get, and leastInGaps where all
// there is to get are the pauses inside requests: of each, reacting to it takes some.
const leastShare, leastInGaps = 0.95, 0.90

// leastToBeHad is the part of the device from which on there is a share to be had.
const leastToBeHad = 0.001

// clearly is how far apart two figures must be for one to be called better.
const clearly = 0.005

func (c *cell) judge() {
	heddle, yardstick := c.row("heddle"), c.Report.Reactive
	c.Bars = []bar{
		{What: "p50", Value: heddle.P50.OfAlone, Limit: c.Limit, OK: heddle.P50.OfAlone <= c.Limit, Yardstick: yardstick.P50.OfAlone},
		{What: "p99", Value: heddle.P99.OfAlone, Limit: c.Limit, OK: heddle.P99.OfAlone <= c.Limit, Yardstick: yardstick.P99.OfAlone},
	}
	if c.Report.Oracle >= leastToBeHad {
		least := leastShare
		if c.pauses {
			least = leastInGaps
		}
		c.Bars = append(c.Bars, bar{
			What: "share", Value: heddle.OfOracle, Limit: least, OK: heddle.OfOracle >= least, Yardstick: yardstick.OfOracle,
		})
	}
	better := bar{What: "best", Value: heddle.Share, OK: true}
	for i := range c.Report.Rows {
		other := &c.Report.Rows[i]
		if other.P50.OfAlone < heddle.P50.OfAlone-clearly && other.P99.OfAlone < heddle.P99.OfAlone-clearly && other.Share > heddle.Share+clearly {
			better.OK, better.Better = false, other.Policy
		}
	}
	c.Bars = append(c.Bars, better)
}

func (c *cell) row(policy string) *sim.Row {
	for i := range c.Report.Rows {
		if c.Report.Rows[i].Policy == policy {
			return &c.Report.Rows[i]
		}
	}
	panic("no row of " + policy) // every policy was run
}

func (c *cell) print(w io.Writer) {
	h := c.row("heddle")
	verdict := "ok"
	for _, b := range c.Bars {
		if b.OK {
			continue
		}
		if verdict == "ok" {
			verdict = "MISSED"
		}
		switch b.What {
		case "best":
			verdict += " best (" + b.Better + ")"
		default:
			verdict += fmt.Sprintf(" %s (yardstick %.3f)", b.What, b.Yardstick)
		}
	}
	fmt.Fprintf(w, "%-78s p50 %.3f p99 %.3f share %.3f of oracle %s  %s\n", c.Name, h.P50.OfAlone, h.P99.OfAlone, h.Share, c.ofOracle(h), verdict)
}

// ofOracle shows a row's share of what there is to be had, if there is anything.
func (c *cell) ofOracle(r *sim.Row) string {
	if c.Report.Oracle < leastToBeHad {
		return "-"
	}
	return fmt.Sprintf("%.3f", r.OfOracle)
}

// result is the file.
type result struct {
	Source  string            `json:"source"`
	GPU     string            `json:"gpu"`
	Seconds float64           `json:"seconds"`
	Seeds   int               `json:"seeds"`
	Bars    int               `json:"bars"`
	Missed  int               `json:"missed"`
	Held    map[string][2]int `json:"held"` // by sharing and bar: held, of
	Cells   []*cell           `json:"cells"`
	// Ablation has the policy without one of its mechanisms after the other, on some of the cells.
	Ablation []*cell `json:"ablation"`
}

func (r *result) sum() {
	r.Held = map[string][2]int{}
	for _, c := range r.Cells {
		how := "side by side "
		if !c.Shared {
			how = "in turns "
		}
		for _, b := range c.Bars {
			n := r.Held[how+b.What]
			n[1]++
			r.Bars++
			if b.OK {
				n[0]++
			} else {
				r.Missed++
			}
			r.Held[how+b.What] = n
		}
	}
}

func (r *result) print(w io.Writer) {
	for _, how := range []string{"side by side ", "in turns "} {
		for _, what := range []string{"p50", "p99", "share", "best"} {
			n := r.Held[how+what]
			fmt.Fprintf(w, "%-20s holds in %d of %d cells\n", how+what, n[0], n[1])
		}
	}
}
