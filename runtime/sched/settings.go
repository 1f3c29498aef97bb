package sched

import "time"

// Settings are the numbers of all policies. Each takes those that it knows.
type Settings struct {
	// Classes holds the parameters for the clients of each class.
	Classes [Classes]Parameters
	// Interval is how often a policy that adapts plans anew.
	Interval time.Duration
	// Ahead is how much device time a client may be before the slowest of its class.
	Ahead time.Duration
	// SLO is the slowdown objective of clients in classes that others yield to and that name none;
	// 0 = none.
	SLO float64
	// MinBeside is the least work beside a peer that is worth the disturbance.
	MinBeside time.Duration
	// Forgive is how long a pair of clients that hurt each other stays apart.
	Forgive time.Duration
	// Quantum is the turn of a client under the policy of exclusive turns.
	Quantum time.Duration
	// Without takes mechanisms away from the policy heddle, to see what each of them adds.
	Without Without
}

// Without names mechanisms of the policy heddle that are taken away. It is meant for experiments.
type Without struct {
	Window bool // work of a lower class that nobody waits for has no bound
	Fill   bool // no predicted gap is filled, only one that has lasted
	Margin bool // the margin on predictions is that of the class, however well they are known
	Token  bool // clients take turns in predictable gaps as they do elsewhere
	Turns  bool // all clients of a class go on at once
	// Allowance: what fits no gap waits for as long as it may wait at most.
	Allowance bool
	CoRun     bool // none runs beside a more urgent one
	// Control: what may run beside a client, and together, is not moved by how that client fares.
	Control bool
}

// DefaultSettings are the numbers of a configuration that sets none, for policies that are
// compared without one.
func DefaultSettings() Settings {
	s := Settings{
		// Short against a request, long against what it costs to look at all clients.
		Interval: 2 * time.Millisecond,
		// Two plans of it: a client is throttled in time, and not for every launch.
		Ahead: 4 * time.Millisecond,
		// What users notice is above it; what is below it cannot be measured in a few requests.
		SLO:       1.02,
		MinBeside: 5 * time.Microsecond,
		Forgive:   10 * time.Minute,
		// nvshare's own default is 30 s. A tenth of a second is kinder to latency.
		Quantum: 100 * time.Millisecond,
	}
	for class := range s.Classes {
		s.Classes[class] = Parameters{
			// One kernel on the device and a few short ones behind it, so that it has no pause.
			Window: 200 * time.Microsecond, Estimate: 200 * time.Microsecond,
			// Longer than the pause between a wait that returns and the next launch.
			Quiet:   20 * time.Microsecond,
			MaxHold: 10 * time.Second,
			// Kernel times repeat within a few percent; a third covers most of the rest.
			MarginPPM: 300_000,
			// Shorter gaps are over before a filler is on its way.
			MinGap: 20 * time.Microsecond, CoRunBound: 200 * time.Microsecond, Token: 5 * time.Millisecond,
		}
	}
	return s
}
