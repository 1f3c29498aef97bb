// Package sched decides who may use a device: pure functions over values, without clocks, memory
// or goroutines, so that tables, fuzzing and simulation reach everything.
//
// There are two levels. A [Policy] looks at all clients of the node whenever one comes, goes or
// changes, and plans a [Verdict] for each client on each device: whom it yields to and by which
// numbers. The gate, [Decide], applies a verdict to one launch; the interposer runs the same
// function in C for every launch that its client's gate word does not let pass at once.
//
// # Seams
//
// Gap filling enters at one place: a planner that sets GateFill in a verdict. The gate then lets a
// launch pass that would end, margin included, before the predicted next launch of an idle peer;
// while that peer is not yet quiet its client must hold the token of its class (the arena of the
// contract). A peer that waits for others itself goes first if its launch fits as well. What is
// predicted is written by the peers and the profiles, not here. How sure it is moves the margin
// ([Demand].Spread), and what fits no gap goes by an allowance, as often as an objective bears it.
//
// Running side by side enters through [Verdict].CoRun: a planner that knows resource vectors lists
// the peers beside which a client may run. The gate lets those kernels pass of which the profile
// says that they may, as long as little work of the client is outstanding.
//
// Kernel profiles enter through the estimate: per launch where the interposer knows the kernel,
// [Parameters].Estimate where it does not.
package sched
