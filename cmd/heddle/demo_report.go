package main

import (
	"fmt"
	"path/filepath"
)

// The promise at this stage.
const (
	demoPromiseP99 = 1.25 // with Heddle, times alone
	// Below this, sharing did no harm that anybody would mend, and the demo shows nothing.
	demoVisibleP99 = 1.5 // without Heddle, times alone
	// The p99 of fewer requests is the luck of one of them.
	demoMinRequests = 100
)

// broken says how far the promise did not hold; nothing if it did.
func (r *demoResult) broken() []string {
	var problems []string
	say := func(bad bool, format string, args ...any) {
		if bad {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	say(r.Alone.P99Ms <= 0 || r.Alone.TrainItS <= 0, "the runs alone measured nothing")
	say(r.Requests < demoMinRequests, "%d requests are too few for a p99, at least %d are needed", r.Requests, demoMinRequests)
	if len(problems) > 0 {
		return problems
	}
	say(r.Heddle.P99Ms > demoPromiseP99*r.Alone.P99Ms, "with Heddle the service's p99 is %.2f times that of the service alone, promised are %.2f",
		r.Heddle.P99Ms/r.Alone.P99Ms, demoPromiseP99)
	say(r.Heddle.TrainItS <= 0, "with Heddle the training did not go on")
	say(r.Naive.P99Ms < demoVisibleP99*r.Alone.P99Ms, "without Heddle the service's p99 is only %.2f times that of the service alone: there was nothing to mend",
		r.Naive.P99Ms/r.Alone.P99Ms)
	return problems
}

// reportDemo prints the result; the error is the exit code of a promise that did not hold.
func (a *app) reportDemo(o *demoOptions, r *demoResult) error {
	if o.asJSON {
		if err := a.printJSON(r); err != nil {
			return err
		}
	} else if err := a.printDemo(r); err != nil {
		return err
	}
	if !r.Held {
		for _, problem := range r.Problems {
			fmt.Fprintf(a.stderr, "heddle demo: %s\n", problem)
		}
		return errReported
	}
	return nil
}

func (a *app) printDemo(r *demoResult) error {
	fmt.Fprintf(a.stdout, "\n%s on %s\n%s beside %s, requests %s, %d measured in each run\n\n",
		"One GPU, an inference service and a training job", r.GPU,
		filepath.Base(r.HP), filepath.Base(r.LP), filepath.Base(r.Arrivals), r.Requests)
	t := table{columns: []column{
		{title: ""}, {title: "P50", right: true}, {title: "P99", right: true}, {title: "P99/ALONE", right: true},
		{title: "TRAINING", right: true}, {title: "OF ALONE", right: true},
	}}
	row := func(name string, m demoMeasure, verdict tone) {
		t.add(cell{name, tonePlain},
			cell{fmt.Sprintf("%.2f ms", m.P50Ms), tonePlain},
			cell{fmt.Sprintf("%.2f ms", m.P99Ms), verdict},
			cell{fmt.Sprintf("%.2f", ratio(m.P99Ms, r.Alone.P99Ms)), verdict},
			cell{fmt.Sprintf("%.2f it/s", m.TrainItS), tonePlain},
			cell{formatShare(ratio(m.TrainItS, r.Alone.TrainItS)), tonePlain})
	}
	row("alone, each", r.Alone, tonePlain)
	row("shared without Heddle", r.Naive, toneBad)
	verdict := toneGood
	if !r.Held {
		verdict = toneBad
	}
	row("shared with Heddle", r.Heddle, verdict)
	if err := t.write(a.stdout, 0, a.palette()); err != nil {
		return err
	}
	if r.Held {
		_, err := fmt.Fprintf(a.stdout, "\nThe promise held: p99 at most %.2f times alone, and the training went on.\n", demoPromiseP99)
		return err
	}
	return nil
}

func ratio(a, b float64) float64 {
	if b <= 0 {
		return 0
	}
	return a / b
}
