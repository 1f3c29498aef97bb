package sim

import (
	"time"

	"github.com/heddle-project/heddle/runtime/sched"
)

// Reactive is a yardstick for policies that learn of a request only when it comes: the lower class
// runs one kernel at a time whenever the upper one is idle, on streams of the least priority, and
// neither the gate nor a wake-up takes any time. What a request waits for then is the kernel that
// was on the device when it came; who makes it wait for less leaves the device idle. An experiment
// runs it with the costs of [Costs.Free] and with one client of the lower class.
type Reactive struct{}

var _ sched.Policy = Reactive{}

// Name implements [sched.Policy].
func (Reactive) Name() string { return "reactive" }

// Interval implements [sched.Policy].
func (Reactive) Interval() time.Duration { return 0 }

// Plan implements [sched.Policy].
func (Reactive) Plan(view sched.View) []sched.Verdict {
	var p sched.Priority
	for class := range p.Classes {
		p.Classes[class] = sched.Parameters{Window: 1, MaxHold: 1000 * time.Second}
	}
	verdicts := p.Plan(view)
	for i := range verdicts {
		verdicts[i].StreamPriority = 1
		if len(verdicts[i].Yields) != 0 {
			verdicts[i].StreamPriority = -1
		}
	}
	return verdicts
}

// Free returns c without what a scheduler costs.
func (c Costs) Free() Costs {
	c.Wake, c.Poll = 0, 0
	return c
}
