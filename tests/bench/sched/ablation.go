package main

import (
	"fmt"
	"io"
	"time"

	"github.com/heddle-project/heddle/runtime/sched"
	"github.com/heddle-project/heddle/tests/bench/kernels"
)

// variant is the policy heddle without one of its mechanisms, or a policy that has few of them.
type variant struct {
	name    string
	policy  string
	without sched.Without
}

// variants begins with the whole policy, to which the others are compared.
func variants() []variant {
	return []variant{
		{"heddle", "heddle", sched.Without{}},
		{"- window", "heddle", sched.Without{Window: true}},
		{"- filling", "heddle", sched.Without{Fill: true}},
		{"- margin", "heddle", sched.Without{Margin: true}},
		{"- token", "heddle", sched.Without{Token: true}},
		{"- allowance", "heddle", sched.Without{Allowance: true}},
		{"- co-run", "heddle", sched.Without{CoRun: true}},
		{"- turns", "heddle", sched.Without{Turns: true}},
		{"- control", "heddle", sched.Without{Control: true}},
		{"priority", "priority", sched.Without{}},
		{"none", "none", sched.Without{}},
	}
}

// newVariant makes the policy of a variant.
func newVariant(name string, settings sched.Settings) (sched.Policy, error) {
	for _, v := range variants() {
		if v.name == name {
			settings.Without = v.without
			return sched.NewPolicy(v.policy, settings)
		}
	}
	return nil, fmt.Errorf("no variant is named %q", name)
}

// ablation are the cells on which the variants are compared: every kind of load of the first service
// beside the first training, side by side.
func ablation(set *kernels.Set) []*cell {
	var cells []*cell
	for _, l := range append(loads(), pausing(3*time.Millisecond)) {
		for _, trainers := range []int{1, 4} {
			cells = append(cells, newCell(true, set.Services[0].Workload, l, set.Trainings[0].Workload, trainers))
		}
	}
	return cells
}

// printVariants shows one line for each variant.
func (c *cell) printVariants(w io.Writer) {
	fmt.Fprintln(w, c.Name)
	for i := range c.Report.Rows {
		r := &c.Report.Rows[i]
		fmt.Fprintf(w, "  %-12s p50 %8.3f  p99 %8.3f  share %.3f  of oracle %s\n", r.Policy, r.P50.OfAlone, r.P99.OfAlone, r.Share, c.ofOracle(r))
	}
}
